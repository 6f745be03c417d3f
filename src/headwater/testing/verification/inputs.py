"""The rows that a job is verified with, and the ways in which they may come."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.clock.event_time import timestamps_of
from headwater.data.batch import Timestamps
from headwater.data.rows import encode_rows
from headwater.graph.graph import Graph
from headwater.graph.nodes import AssignWatermarksNode, SourceNode
from headwater.streams.given_rows import rows_of
from headwater.testing.script_source import Script
from headwater.testing.verification.failure import UnfitInput

MOST_EPOCHS = 20
"""Enough to have a row or a few in each; a run of so many takes a fraction of a second."""
_MOST_SPLITS = 3


@dataclass(frozen=True)
class Input:
    """The rows of a source, in the order in which they were given."""

    table: pa.Table
    times: Timestamps | None
    """Their event time, as far as the source has a bound for how much they are out of order."""
    bound_ms: int = 0

    def at_once(self) -> list[Script]:
        """All rows in one epoch."""
        return [Script(self.table, [len(self.table)])]

    def evenly(self, most_epochs: int = MOST_EPOCHS) -> list[Script]:
        """A row, or a few, in each epoch."""
        rows = len(self.table)
        size = max(1, -(-rows // most_epochs))
        return [Script(self.table, [*range(size, rows, size), rows])]

    def sliced(self, chance: random.Random, most_epochs: int = MOST_EPOCHS) -> list[Script]:
        """Epochs that end anywhere."""
        return [Script(self.table, _cuts(len(self.table), chance, most_epochs))]

    def shuffled(self, chance: random.Random) -> list[Script]:
        """In another order, and over several splits, in none of which a row is later than the bound allows.

        Each row comes at its event time and up to the bound later. So a row that comes before another is at most the bound
        ahead of it.
        """
        if self.times is None:
            return self.sliced(chance)
        comes = [(int(time) + chance.randint(0, self.bound_ms), chance.random()) for time in self.times]
        splits: list[list[int]] = [[] for _ in range(chance.randint(1, _MOST_SPLITS))]
        for row in sorted(range(len(comes)), key=comes.__getitem__):
            chance.choice(splits).append(row)
        tables = [self.table.take(pa.array(rows, pa.int64())) for rows in splits]
        return [Script(table, _cuts(len(table), chance, MOST_EPOCHS)) for table in tables]


def inputs_of(graph: Graph, given: Any) -> dict[str, Input]:
    """The rows for each source of a job, by uid; refuses those that the job could not be verified with."""
    sources = {graph.uid(node): node for node in graph if isinstance(node, SourceNode)}
    if not isinstance(given, Mapping):
        if len(sources) != 1:
            raise UnfitInput.not_by_name(list(sources))
        given = dict.fromkeys(sources, given)
    if given.keys() != sources.keys():
        raise UnfitInput.other_sources(list(given), list(sources))
    return {uid: _input(graph, node, uid, given[uid]) for uid, node in sources.items()}


def _input(graph: Graph, node: SourceNode, uid: str, given: Any) -> Input:
    rows, schema = rows_of(given, node.schema, uid)
    table = rows if isinstance(rows, pa.Table) else encode_rows(list(rows), schema.arrow, uid)
    if node.watermarks.column is None or node.watermarks.generator is not None:
        return Input(table, None)
    times = timestamps_of(table, node.watermarks.column, uid)
    bound_ms = node.watermarks.delay_ms
    if len(times):
        reached = np.maximum.accumulate(times)
        late = np.flatnonzero(reached - times > bound_ms)
        if len(late):
            at = int(late[0])
            raise UnfitInput.late_row(uid, at, int(reached[at] - times[at]), bound_ms)
    takes_time_anew = any(isinstance(other, AssignWatermarksNode) and graph.between(node, other) for other in graph)
    return Input(table, None if takes_time_anew else times, bound_ms)


def _cuts(rows: int, chance: random.Random, most_epochs: int) -> list[int]:
    """Where epochs end."""
    inner = range(1, rows)
    most = min(len(inner), most_epochs - 1)
    return [*sorted(chance.sample(inner, chance.randint(min(1, most), most))), rows]
