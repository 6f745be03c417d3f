"""Built-in aggregates over tumbling, sliding and cumulating windows in event time, by columns.

A row goes into one slice, however many windows it belongs to; a window that fires merges its slices. The results are those
of the general operator, except that several updates of a window in one epoch come out as one.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, Timestamps
from headwater.graph.nodes import WindowNode
from headwater.operators.contract import Emit, StepTime
from headwater.operators.grouping import group
from headwater.operators.window.late import LateRows, MissedWindows
from headwater.operators.window.panes import moments
from headwater.operators.window.slices import SliceTable
from headwater.operators.window.slicing import Sliced, Slicer, flat
from headwater.rows import Row
from headwater.state.table import StateTable
from headwater.windows import SlicedAssigner, Window


class SlicedWindowOperator:
    """Runs one such step on one subtask."""

    def __init__(self, node: WindowNode, step: str, row: type[Row]) -> None:
        assert isinstance(node.assigner, SlicedAssigner)
        self._node = node
        self._assigner = node.assigner
        self._slicer = Slicer(node, step)
        self._aggregation, self._keys = self._slicer.aggregation, self._slicer.keys
        self._slices = SliceTable(self._slicer.schema, self._merge, self._expect)
        self._late = LateRows(node, step)
        self.needs_order = not self._slicer.is_in_any_order
        self.reset()

    def reset(self) -> None:
        self._slices.clear_all()
        self._watermark_ms = MIN_TIMESTAMP
        """Up to where windows have fired."""
        self._to_fire: list[tuple[int, int, int]] = []
        self._expected: set[Window] = set()
        self._to_drop: list[tuple[int, int]] = []

    # -- rows -------------------------------------------------------------------------------------------------------

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        starts = self._slicer.starts(batch.timestamps)
        is_open = self._are_open(starts, time.watermark_ms)
        if not is_open.all():
            gone = np.flatnonzero(~is_open)
            self._take_late(batch.take(gone), starts[gone], time.watermark_ms)
            batch, starts = batch.take(np.flatnonzero(is_open)), starts[is_open]
        if len(batch):
            self._add(self._slicer.slice(batch, starts), time.watermark_ms, emit)
        late = self._late.take()
        if late is not None:
            emit(*late)

    def process_combined(self, batch: Batch, time: StepTime, emit: Emit) -> int:
        sliced = self._slicer.merge(batch)
        rows = int(sliced.rows.sum())
        is_open = self._are_open(sliced.starts, time.watermark_ms)
        if not is_open.all():
            self._late.count_dropped(int(sliced.rows[~is_open].sum()))
            kept = np.flatnonzero(is_open)
            sliced = Sliced(sliced.table.take(pa.array(kept)), sliced.starts[kept], sliced.rows[kept])
        if len(sliced.starts):
            self._add(sliced, time.watermark_ms, emit)
        return rows

    def _are_open(self, starts: Timestamps, watermark_ms: int) -> npt.NDArray[np.bool_]:
        """Whether a slice is part of a window that is not gone; a row between windows is in none."""
        open_starts = [s for s in np.unique(starts).tolist() if self._dropped_at(s) > watermark_ms]
        return np.isin(starts, np.array(open_starts, np.int64))

    def _take_late(self, batch: Batch, starts: Timestamps, watermark_ms: int) -> None:
        slices, at = np.unique(starts, return_inverse=True)
        lasts = [self._assigner.windows_of_slice(start)[-1:] for start in slices.tolist()]
        edges = np.array([last[0] if last else (0, 0) for last in lasts], np.int64)[at]
        exist = np.array([bool(last) for last in lasts])[at]
        self._late.add_batch(batch, MissedWindows(edges[:, 0], edges[:, 1], exist), watermark_ms)

    def _add(self, sliced: Sliced, watermark_ms: int, emit: Emit) -> None:
        order = np.unique(sliced.starts)
        bounds = [*np.searchsorted(sliced.starts, order).tolist(), len(sliced.starts)]
        touched: dict[Window, list[pa.Table]] = {}
        for place, start in enumerate(order.tolist()):
            part = sliced.table.slice(bounds[place], bounds[place + 1] - bounds[place])
            self._slices.add(start, part)
            for window in self._assigner.windows_of_slice(start):
                if window.last <= watermark_ms < self._cleanup_time(window):
                    touched.setdefault(window, []).append(part)
        for window in sorted(touched, key=lambda w: (w.end, w.start)):
            self._emit([(window, self._content(window, touched[window]))], emit)

    # -- time -------------------------------------------------------------------------------------------------------

    def advance_watermark(self, time: StepTime, emit: Emit) -> None:
        fired: list[tuple[Window, pa.Table]] = []
        while self._to_fire and self._to_fire[0][0] <= time.watermark_ms:
            last, start, end = heapq.heappop(self._to_fire)
            window = Window(start, end)
            self._expected.discard(window)
            if last > self._watermark_ms:
                fired.append((window, self._content(window, None)))
        self._watermark_ms = max(self._watermark_ms, time.watermark_ms)
        self._emit(fired, emit)
        while self._to_drop and self._to_drop[0][0] <= time.watermark_ms:
            self._slices.remove(heapq.heappop(self._to_drop)[1])

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        """These windows do not know processing time."""

    def _expect(self, start: int) -> None:
        """A slice is new: its windows are to fire, and it is to be dropped."""
        for window in self._assigner.windows_of_slice(start):
            if window not in self._expected:
                self._expected.add(window)
                heapq.heappush(self._to_fire, (window.last, window.start, window.end))
        heapq.heappush(self._to_drop, (self._dropped_at(start), start))

    def _dropped_at(self, start: int) -> int:
        windows = self._assigner.windows_of_slice(start)
        return self._cleanup_time(windows[-1]) if windows else MIN_TIMESTAMP

    def _cleanup_time(self, window: Window) -> int:
        return min(window.last + self._node.lateness_ms, MAX_TIMESTAMP)

    # -- results ----------------------------------------------------------------------------------------------------

    def _content(self, window: Window, touched: list[pa.Table] | None) -> pa.Table:
        """The accumulators of a window by key; of the keys in `touched` only, if given."""
        tables = [t for start in self._assigner.slices_of_window(window) for t in self._slices.tables(start)]
        if touched is not None and self._keys:
            tables = [_only(table, touched, len(self._keys)) for table in tables]
        tables = [table for table in tables if len(table)]
        return self._merge(tables) if len(tables) > 1 else tables[0]

    def _merge(self, tables: list[pa.Table]) -> pa.Table:
        together = pa.concat_tables(tables).combine_chunks()
        keys = together.columns[: len(self._keys)]
        groups = group(keys, len(together))
        merged = self._aggregation.merge(
            together.select(range(len(keys), len(together.columns))), groups.codes, len(groups)
        )
        first = pa.array(groups.first)
        return pa.Table.from_arrays([*(flat(key.take(first)) for key in keys), *merged.columns], schema=together.schema)

    def _emit(self, fired: list[tuple[Window, pa.Table]], emit: Emit) -> None:
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

    # -- state ------------------------------------------------------------------------------------------------------

    def tables(self) -> dict[str, StateTable]:
        return {"slices": self._slices}

    def counters(self) -> dict[str, int]:
        return {"late_dropped": self._late.take_dropped()}

    def meta(self) -> dict[str, Any]:
        return {"watermark_ms": self._watermark_ms}

    def set_meta(self, meta: dict[str, Any]) -> None:
        self._watermark_ms = meta["watermark_ms"]


def _only(table: pa.Table, touched: list[pa.Table], width: int) -> pa.Table:
    """The rows of a table whose keys are in one of the others."""
    together = pa.concat_tables([*(t.select(range(width)) for t in touched), table.select(range(width))])
    codes = group(together.columns, len(together)).codes
    wanted = codes[: len(together) - len(table)]
    return table.filter(pa.array(np.isin(codes[len(wanted) :], wanted)))
