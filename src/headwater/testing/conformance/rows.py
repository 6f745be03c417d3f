"""The rows that a check draws from, and the stream they come on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headwater.connectors.memory import RowsSource
from headwater.data.batch import Batch
from headwater.data.rows import encode_rows
from headwater.data.schema import Schema
from headwater.graph.nodes import WindowNode
from headwater.streams.environment import Environment
from headwater.streams.keyed import KeyedStream

STEP = "conformance"


class Came(NamedTuple):
    """A row of a script: its key, its place among the rows to draw from, and its timestamp."""

    key: str
    row: int
    timestamp: int


class Rows:
    """The rows that scripts draw from."""

    def __init__(self, schema: Schema, rows: Sequence[Any]) -> None:
        self.schema = schema
        self._table = encode_rows(list(rows), schema.arrow, STEP)

    def __len__(self) -> int:
        return len(self._table)

    def batch(self, came: Sequence[Came]) -> Batch:
        """Rows of a script, as they come to a step."""
        table = self._table.take(pa.array([one.row for one in came], pa.int64()))
        times = np.array([one.timestamp for one in came], np.int64)
        return Batch(table, times, pa.array([one.key for one in came], pa.string()))


def window_nodes(schema: Schema, build: Callable[[KeyedStream], object]) -> list[WindowNode]:
    """The window steps that `build` makes of a stream of such rows. Checks say the key of each row."""
    env = Environment(STEP, engine="local")
    build(env.source(RowsSource([[]], schema), schema, name="rows").key_by(_no_key, type="string"))
    return [node for node in env.graph if isinstance(node, WindowNode)]


def _no_key(row: Any) -> str:
    """Nobody asks for it."""
    raise NotImplementedError
