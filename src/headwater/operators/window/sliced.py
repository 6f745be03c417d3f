"""Built-in aggregates over tumbling, sliding and cumulating windows in event time, by columns.

A row goes into one slice, however many windows it belongs to; a window that fires merges its slices. The results are those
of the general operator, except that several updates of a window in one epoch come out as one.

Over a changelog a window has the rows that are left, and gives nothing for a key that has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.data.batch import Batch, flat
from headwater.data.rows import Row
from headwater.graph.nodes import WindowNode
from headwater.operators.contract import Emit, StatefulOperator, StepTime
from headwater.operators.grouping import among, group
from headwater.operators.window.late import LateRows
from headwater.operators.window.panes import moments
from headwater.operators.window.schedule import SliceSchedule
from headwater.operators.window.slices import SliceTable
from headwater.operators.window.slicing import Sliced, Slicer
from headwater.state.table import StateTable
from headwater.windows.assigners import SlicedAssigner, Window


class SlicedWindowOperator(StatefulOperator):
    """Runs one such step on one subtask."""

    def __init__(self, node: WindowNode, step: str, row: type[Row]) -> None:
        assert isinstance(node.assigner, SlicedAssigner)
        self._node = node
        self._assigner = node.assigner
        self._slicer = Slicer(node, step)
        self._aggregation, self._keys = self._slicer.aggregation, self._slicer.keys
        self._schedule = SliceSchedule(node.assigner, node.lateness_ms)
        keys = [key.name for key in self._keys]
        self._slices = SliceTable(self._slicer.schema, keys, self._merge, self._schedule.expect)
        self._late = LateRows(node, step)
        self.needs_order = not self._slicer.is_in_any_order

    def reset(self) -> None:
        self._slices.clear_all()
        self._schedule.reset()

    # -- rows -------------------------------------------------------------------------------------------------------

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        starts = self._slicer.starts(batch)
        is_open = self._schedule.are_open(starts, time.watermark_ms)
        if not is_open.all():
            self._late.add_rows(batch, ~is_open, self._assigner, time.watermark_ms)
            batch, starts = batch.take(np.flatnonzero(is_open)), starts[is_open]
        if len(batch):
            self._add(self._slicer.slice(batch, starts), time.watermark_ms, emit)
        for tag, late in self._late.take():
            emit(tag, late)

    def process_combined(self, batch: Batch, time: StepTime, emit: Emit) -> int:
        sliced = self._slicer.merge(batch)
        rows = int(sliced.rows.sum())
        is_open = self._schedule.are_open(sliced.starts, time.watermark_ms)
        if not is_open.all():
            self._late.count_dropped(int(sliced.rows[~is_open].sum()))
            kept = np.flatnonzero(is_open)
            sliced = Sliced(sliced.table.take(pa.array(kept)), sliced.starts[kept], sliced.rows[kept])
        if len(sliced.starts):
            self._add(sliced, time.watermark_ms, emit)
        return rows

    def _add(self, sliced: Sliced, watermark_ms: int, emit: Emit) -> None:
        order = np.unique(sliced.starts)
        bounds = [*np.searchsorted(sliced.starts, order).tolist(), len(sliced.starts)]
        touched: dict[Window, list[pa.Table]] = {}
        for place, start in enumerate(order.tolist()):
            part = sliced.table.slice(bounds[place], bounds[place + 1] - bounds[place])
            self._slices.add(start, part)
            for window in self._schedule.fired(start, watermark_ms):
                touched.setdefault(window, []).append(part)
        for window in sorted(touched, key=lambda w: (w.end, w.start)):
            self._emit([(window, self._content(window, touched[window]))], emit)

    # -- time -------------------------------------------------------------------------------------------------------

    def advance_watermark(self, time: StepTime, emit: Emit) -> None:
        fired = self._schedule.fire(time.watermark_ms)
        self._emit([(window, self._content(window, None)) for window in fired], emit)
        for start in self._schedule.drop(time.watermark_ms):
            self._slices.remove(start)

    # -- results ----------------------------------------------------------------------------------------------------

    def _content(self, window: Window, touched: list[pa.Table] | None) -> pa.Table:
        """The accumulators of a window by key; of the keys in `touched` only, if given."""
        tables = [t for start in self._assigner.slices_of_window(window) for t in self._slices.tables(start)]
        if touched is not None and self._keys:
            wanted = [table.columns[: len(self._keys)] for table in touched]
            tables = [t.filter(pa.array(among(t.columns[: len(self._keys)], wanted))) for t in tables]
        tables = [table for table in tables if len(table)]
        return self._merge(tables) if len(tables) > 1 else tables[0]

    def _merge(self, tables: list[pa.Table]) -> pa.Table:
        together = pa.concat_tables(tables).combine_chunks()
        keys = together.columns[: len(self._keys)]
        groups = group(keys, len(together))
        merged = self._aggregation.merge(
            together.select(range(len(keys), len(together.columns))), groups.codes, len(groups)
        )
        first, kept = pa.array(groups.first), self._aggregation.settle(merged)
        return pa.Table.from_arrays([*(flat(key.take(first)) for key in keys), *kept.columns], schema=together.schema)

    def _emit(self, fired: list[tuple[Window, pa.Table]], emit: Emit) -> None:
        if self._node.takes_back:
            fired = [(window, self._with_rows(table)) for window, table in fired]
            fired = [(window, table) for window, table in fired if len(table)]
        if not fired:
            return
        counts = [len(table) for _, table in fired]
        together = pa.concat_tables([table for _, table in fired]).combine_chunks()
        width = len(self._keys)
        results = self._aggregation.result(together.select(range(width, len(together.columns))))
        windows = [
            np.repeat(np.array(edge, np.int64), counts) for edge in zip(*(window for window, _ in fired), strict=True)
        ]
        arrays = [*together.columns[:width], *map(moments, windows), *results]
        table = pa.Table.from_arrays(arrays, schema=self._node.schema.arrow)
        emit(None, Batch(table, windows[1] - 1))

    def _with_rows(self, table: pa.Table) -> pa.Table:
        """The accumulators of keys that have rows left."""
        return table.filter(pa.array(self._aggregation.left(table) > 0))

    # -- state ------------------------------------------------------------------------------------------------------

    def tables(self) -> dict[str, StateTable]:
        return {"slices": self._slices}

    def counters(self) -> dict[str, int]:
        return {"late_dropped": self._late.take_dropped()}

    def meta(self) -> dict[str, Any]:
        return {"watermark_ms": self._schedule.watermark_ms}

    def set_meta(self, meta: dict[str, Any]) -> None:
        self._schedule.watermark_ms = meta["watermark_ms"]

    def merged_meta(self, metas: Sequence[dict[str, Any]], subtask: int, parallelism: int) -> dict[str, Any]:
        return {"watermark_ms": min(meta["watermark_ms"] for meta in metas)}
