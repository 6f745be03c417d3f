"""Rows too late for their windows: to a side output, with the window they missed, or dropped and counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, Timestamps, concat, timestamp_array
from headwater.data.rows import encode_rows
from headwater.data.schema import Schema
from headwater.functions import OutputTag
from headwater.graph.edges import Key
from headwater.graph.nodes import WindowNode
from headwater.late_rows import LateRow, newest
from headwater.operators.dropped import DroppedRows
from headwater.operators.window.panes import moments
from headwater.operators.window.schedule import slice_starts
from headwater.windows.assigners import SlicedAssigner, Window

WINDOW_START, WINDOW_END, LATE_BY_MS = "window_start", "window_end", "late_by_ms"


@dataclass(frozen=True)
class MissedWindows:
    """For each row the last of its windows, all of which are gone; some rows have none."""

    starts: Timestamps
    ends: Timestamps
    exist: npt.NDArray[np.bool_]


class WindowedInput(Protocol):
    """Rows that go into windows, and what becomes of late ones."""

    @property
    def input_schema(self) -> Schema: ...

    @property
    def key(self) -> Key: ...

    @property
    def lateness_ms(self) -> int: ...

    @property
    def late(self) -> OutputTag | None: ...


class LateRows:
    """The late rows of an input in a call."""

    def __init__(self, rows: WindowedInput, step: str) -> None:
        self._tag, self._step, self._schema = rows.late, step, rows.input_schema.arrow
        self._key = rows.key
        self._lateness_ms = rows.lateness_ms
        self._rows: list[tuple[Any, int, Window | None]] = []
        self._watermark_ms = MIN_TIMESTAMP
        self._batches: list[Batch] = []
        self.dropped = DroppedRows()

    def add(self, key: Any, row: Any, timestamp: int, window: Window | None, watermark_ms: int) -> None:
        """A row that is in no window. It is late if it is behind the watermark, and lateness does not help.

        `window` is the last of those that are gone; between windows there is none, and a row that is not late is just that.
        """
        if not self.is_late(timestamp, watermark_ms):
            return
        if self._tag is None:
            self.dropped.add_row(key, row, timestamp, watermark_ms)
            return
        self._rows.append((tuple(row), timestamp, window))
        self._watermark_ms = watermark_ms

    def is_late(self, timestamp: int, watermark_ms: int) -> bool:
        """Whether a row is behind the watermark by more than the allowed lateness."""
        return min(timestamp + self._lateness_ms, MAX_TIMESTAMP) <= watermark_ms

    def add_batch(self, batch: Batch, missed: MissedWindows, watermark_ms: int) -> None:
        """Rows that are in no window, as `add` takes them one by one."""
        if not len(batch):
            return
        is_late = (batch.timestamps <= watermark_ms - self._lateness_ms) & (batch.timestamps > MIN_TIMESTAMP)
        late = np.flatnonzero(is_late)
        if self._tag is None:
            if len(late):
                self.dropped.add(batch, late, watermark_ms, self._key)
            return
        batch, none = batch.take(late), pa.array(~missed.exist[late])
        columns = dict(zip(batch.table.column_names, batch.table.columns, strict=True))
        columns[WINDOW_START] = moments(missed.starts[late], none)
        columns[WINDOW_END] = moments(missed.ends[late], none)
        furthest = max(watermark_ms - MAX_TIMESTAMP, MIN_TIMESTAMP)
        columns[LATE_BY_MS] = pa.array(watermark_ms - np.maximum(batch.timestamps, furthest))
        schema = self._tag.schema.arrow
        table = pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
        self._batches.append(Batch(table, batch.timestamps, None, batch.kinds))

    def add_rows(
        self, batch: Batch, are_gone: npt.NDArray[np.bool_], assigner: SlicedAssigner, watermark_ms: int
    ) -> None:
        """The rows of a batch that are in no window."""
        gone = batch.take(np.flatnonzero(are_gone))
        slices, at = np.unique(slice_starts(assigner, gone, self._step), return_inverse=True)
        lasts = [assigner.windows_of_slice(start)[-1:] for start in slices.tolist()]
        edges = np.array([last[0] if last else (0, 0) for last in lasts], np.int64)[at]
        exist = np.array([bool(last) for last in lasts])[at]
        self.add_batch(gone, MissedWindows(edges[:, 0], edges[:, 1], exist), watermark_ms)

    def take(self) -> Iterator[tuple[str, Batch]]:
        """The rows for the side output since the last call, if any."""
        if self._tag is None or not (self._rows or self._batches):
            return
        if self._rows:
            rows, times, windows = zip(*self._rows, strict=True)
            table = encode_rows(rows, self._schema, f"{self._step}[{self._tag.name}]")
            edges = np.array([window or (0, 0) for window in windows], np.int64)
            missed = MissedWindows(edges[:, 0], edges[:, 1], np.array([window is not None for window in windows]))
            self.add_batch(Batch(table, timestamp_array(times)), missed, self._watermark_ms)
        batch = concat(self._batches)
        self._rows, self._batches = [], []
        yield self._tag.name, batch

    def take_dropped(self) -> int:
        """How many rows were dropped since the last call."""
        return self.dropped.take_count()

    def take_newest(self) -> tuple[LateRow, ...]:
        """The newest of those that were dropped since the last call."""
        return self.dropped.take_newest()


class LateSides:
    """The late rows of a step whose rows come from two inputs, each as one column of them."""

    def __init__(self, left: LateRows, right: LateRows) -> None:
        self._left, self._right = left, right

    def add(self, key: Any, row: Any, timestamp: int, window: Window | None, watermark_ms: int) -> None:
        """As `LateRows.add`, for the side that the row is of."""
        if row.left is not None:
            self._left.add(key, row.left, timestamp, window, watermark_ms)
        else:
            self._right.add(key, row.right, timestamp, window, watermark_ms)

    def take(self) -> Iterator[tuple[str, Batch]]:
        """The rows for the side outputs since the last call."""
        yield from self._left.take()
        yield from self._right.take()

    def take_dropped(self) -> int:
        """How many rows were dropped since the last call."""
        return self._left.take_dropped() + self._right.take_dropped()

    def take_newest(self) -> tuple[LateRow, ...]:
        """The newest of those that were dropped since the last call."""
        return newest((), [self._left.take_newest(), self._right.take_newest()])


def late_rows(node: WindowNode, step: str) -> LateRows | LateSides:
    """The late rows of a window step."""
    return LateRows(node, step) if node.sides is None else LateSides(*(LateRows(side, step) for side in node.sides))
