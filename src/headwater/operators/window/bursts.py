"""The rows of a batch as bursts: the sessions they make among themselves, aggregated by columns.

A burst then goes into the key's sessions as one element would, so that Python is called per burst and not per row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.batch import Batch
from headwater.graph.nodes import WindowNode
from headwater.operators.aggregation import Aggregation
from headwater.operators.grouping import Codes, group
from headwater.operators.keys import key_arrays, keys_of
from headwater.operators.window.slicing import is_in_any_order
from headwater.rows import decode
from headwater.triggers import EventTimeTrigger
from headwater.windows import EVENT, Session, Window


@dataclass(frozen=True, slots=True)
class Burst:
    """Rows of a key that belong together."""

    key: Any
    window: Window
    accumulators: tuple[Any, ...]


class Bursts:
    """Makes bursts of rows."""

    def __init__(self, node: WindowNode, gap_ms: int, aggregation: Aggregation) -> None:
        self._node, self._gap_ms, self._aggregation = node, gap_ms, aggregation

    def late(self, batch: Batch, watermark_ms: int) -> Codes:
        """The places of the rows whose own window is gone; only a session that is there already may still take them."""
        last = batch.timestamps + (self._gap_ms - 1)
        return np.flatnonzero(last <= watermark_ms - self._node.lateness_ms)

    def of(self, batch: Batch) -> Iterator[Burst]:
        """The bursts, by the first rows of their keys and then by time."""
        groups = group(key_arrays(batch, self._node.key), len(batch))
        order = np.lexsort((batch.timestamps, groups.codes))
        codes, times = groups.codes[order], batch.timestamps[order]
        begins = np.ones(len(order), np.bool_)
        begins[1:] = (codes[1:] != codes[:-1]) | (times[1:] - times[:-1] > self._gap_ms)
        numbers = np.cumsum(begins) - 1
        firsts = np.flatnonzero(begins)
        lasts = np.append(firsts[1:], len(order)) - 1
        table = self._aggregation.partial(batch.table.take(pa.array(order)), numbers, len(firsts))
        keys = keys_of(batch.take(order[firsts]), self._node.key)
        accumulators = zip(*(decode(column) for column in table.columns), strict=True)
        ends = (times[lasts] + self._gap_ms).tolist()
        for key, start, end, row in zip(keys, times[firsts].tolist(), ends, accumulators, strict=True):
            yield Burst(key, Window(start, end), row)


def bursts_of(node: WindowNode, step: str) -> Bursts | None:
    """What makes bursts for a step, where results do not depend on single rows."""
    assigner = node.assigner
    if not isinstance(assigner, Session) or assigner.gap_ms is None or assigner.domain != EVENT:
        return None
    if node.aggregates is None or not is_in_any_order(node.aggregates):
        return None
    if type(node.trigger) is not EventTimeTrigger or node.evictor is not None or node.process is not None:
        return None
    if node.panes.mode != "accumulating" or node.panes.has_info:
        return None
    return Bursts(node, assigner.gap_ms, Aggregation(node.aggregates, node.input_schema, step))
