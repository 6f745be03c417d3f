"""Built-in aggregates over tumbling, sliding and cumulating windows in event time, by columns.

A row goes into one slice, however many windows it belongs to; a window that fires merges its slices, or of many, spans of
them that are merged already. The results are those of the general operator, except that several updates of a window in
one epoch come out as one.

Over a changelog a window has the rows that are left, and gives nothing for a key that has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.data.batch import MIN_TIMESTAMP, Batch, flat
from headwater.data.rows import Row
from headwater.graph.nodes import WindowNode
from headwater.late_rows import LateRow
from headwater.operators.contract import Emit, StatefulOperator, StepTime
from headwater.operators.grouping import among, group
from headwater.operators.window.hierarchy import Hierarchy
from headwater.operators.window.late import LateRows
from headwater.operators.window.panes import moments
from headwater.operators.window.schedule import SliceSchedule
from headwater.operators.window.slices import SliceTable
from headwater.operators.window.slicing import Sliced, Slicer
from headwater.operators.window.updates import AT_ONCE, Came, Updates
from headwater.operators.window.whole import WholeWindows
from headwater.state.backend import StateBackend
from headwater.state.memory_backend import MEMORY
from headwater.state.table import StateTable
from headwater.windows.assigners import SlicedAssigner, Window


class SlicedWindowOperator(StatefulOperator):
    """Runs one such step on one subtask."""

    def __init__(self, node: WindowNode, step: str, row: type[Row], *, backend: StateBackend = MEMORY) -> None:
        assert isinstance(node.assigner, SlicedAssigner)
        self._node = node
        self._assigner = node.assigner
        self._slicer = Slicer(node, step)
        self._aggregation, self._keys = self._slicer.aggregation, self._slicer.keys
        self._schedule = SliceSchedule(node.assigner, node.lateness_ms)
        keys = [key.name for key in self._keys]
        schema, shelf = self._slicer.schema, backend.shelf
        self._slices = SliceTable(schema, keys, self._merge, self._schedule.expect, shelf)
        self._hierarchy = Hierarchy(node.assigner, self._schedule, self._slices, self._merge, shelf)
        self._updates = Updates(self._aggregation, len(keys), self._schedule, self._slices, shelf)
        self._whole = None if node.assigner.has_few_slices else WholeWindows(node, step, schema, backend=backend)
        self._late = LateRows(node, step)
        self.needs_order = not self._slicer.is_in_any_order

    def reset(self) -> None:
        self._slices.clear_all()
        self._schedule.reset()
        self._hierarchy.reset()
        self._updates.reset()
        if self._whole is not None:
            self._whole.reset()

    # -- rows -------------------------------------------------------------------------------------------------------

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        self._settle(time.watermark_ms)
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
        self._settle(time.watermark_ms)
        sliced = self._slicer.merge(batch)
        rows = int(sliced.rows.sum())
        is_open = self._schedule.are_open(sliced.starts, time.watermark_ms)
        if not is_open.all():
            gone = sliced.take(np.flatnonzero(~is_open))
            keys = gone.table.select(range(len(self._keys)))
            self._late.dropped.add_combined(keys, gone.starts, gone.rows, time.watermark_ms)
            sliced = sliced.take(np.flatnonzero(is_open))
        if len(sliced.starts):
            self._add(sliced, time.watermark_ms, emit)
        return rows

    def _add(self, sliced: Sliced, watermark_ms: int, emit: Emit) -> None:
        order = np.unique(sliced.starts)
        bounds = [*np.searchsorted(sliced.starts, order).tolist(), len(sliced.starts)]
        came = []
        for place, start in enumerate(order.tolist()):
            part = sliced.table.slice(bounds[place], bounds[place + 1] - bounds[place])
            self._slices.add(start, part)
            if windows := self._schedule.fired(start, watermark_ms):
                came.append(Came(part, windows))
        if came:
            for updated in self._updates.of(came):
                self._emit([(window, self._with_whole(window, table)) for window, table in updated], emit)

    def _settle(self, fired_ms: int) -> None:
        """Take in what was stored before slices; all windows have fired up to this time at least."""
        if self._whole is not None:
            self._whole.settle(self._schedule, fired_ms)

    # -- time -------------------------------------------------------------------------------------------------------

    def advance_watermark(self, time: StepTime, emit: Emit) -> None:
        self._settle(MIN_TIMESTAMP)
        fired = self._schedule.fire(time.watermark_ms)
        ready: list[tuple[Window, pa.Table]] = []
        rows = 0
        for window in fired:
            ready.append((window, self._content(window)))
            rows += len(ready[-1][1])
            if rows >= AT_ONCE:
                self._emit(ready, emit)
                ready, rows = [], 0
        self._emit(ready, emit)
        for start in self._schedule.drop(time.watermark_ms):
            self._slices.remove(start)
            self._updates.forget(start)
        if self._whole is not None:
            self._whole.drop(self._schedule, time.watermark_ms)

    # -- results ----------------------------------------------------------------------------------------------------

    def _content(self, window: Window) -> pa.Table:
        """The accumulators of a window by key."""
        tables = self._hierarchy.tables(window)
        if self._whole is not None and window in self._whole:
            tables.append(self._whole.table(window))
        return self._merge(tables) if len(tables) > 1 else tables[0]

    def _with_whole(self, window: Window, table: pa.Table) -> pa.Table:
        """What slices have of some keys of a window, and what else the window has of them."""
        if self._whole is None or window not in self._whole:
            return table
        width = len(self._keys)
        rest = self._whole.table(window)
        if width:
            rest = rest.filter(pa.array(among(rest.columns[:width], [table.columns[:width]])))
        return self._merge([table, rest])

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
        return {"slices": self._slices, **({} if self._whole is None else self._whole.tables())}

    def counters(self) -> dict[str, int]:
        return {"late_dropped": self._late.take_dropped()}

    def late_rows(self) -> tuple[LateRow, ...]:
        return self._late.take_newest()

    def meta(self) -> dict[str, Any]:
        return {"watermark_ms": self._schedule.watermark_ms}

    def set_meta(self, meta: dict[str, Any]) -> None:
        self._schedule.watermark_ms = meta.get("watermark_ms", MIN_TIMESTAMP)
        if self._whole is not None:
            self._whole.look_again()

    def merged_meta(self, metas: Sequence[dict[str, Any]], subtask: int, parallelism: int) -> dict[str, Any]:
        return {"watermark_ms": min(meta.get("watermark_ms", MIN_TIMESTAMP) for meta in metas)}
