"""Rows too late for their windows: to a side output, with the window they missed, or dropped and counted."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, Timestamps, concat, timestamp_array
from headwater.graph.nodes import WindowNode
from headwater.operators.window.panes import moments
from headwater.rows import UTC, encode_rows
from headwater.windows import Window

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)

WINDOW_START, WINDOW_END, LATE_BY_MS = "window_start", "window_end", "late_by_ms"


@dataclass(frozen=True)
class MissedWindows:
    """For each row the last of its windows, all of which are gone; some rows have none."""

    starts: Timestamps
    ends: Timestamps
    exist: npt.NDArray[np.bool_]


class LateRows:
    """The late rows of a step in a call."""

    def __init__(self, node: WindowNode, step: str) -> None:
        self._tag, self._step, self._names = node.late, step, node.input_schema.names
        self._lateness_ms = node.lateness_ms
        self._rows: list[Any] = []
        self._times: list[int | None] = []
        self._batches: list[Batch] = []
        self._dropped = 0

    def add(self, row: Any, timestamp: int, window: Window | None, watermark_ms: int) -> None:
        """A row that is in no window. It is late if it is behind the watermark, and lateness does not help.

        `window` is the last of those that are gone; between windows there is none, and a row that is not late is just that.
        """
        if not self.is_late(timestamp, watermark_ms):
            return
        if self._tag is None:
            self.count_dropped(1)
            return
        values = dict(zip(self._names, row, strict=True))
        values |= {WINDOW_START: window and _moment(window.start), WINDOW_END: window and _moment(window.end)}
        values[LATE_BY_MS] = watermark_ms - timestamp
        self._rows.append(tuple(values[name] for name in self._tag.schema.names))
        self._times.append(timestamp)

    def is_late(self, timestamp: int, watermark_ms: int) -> bool:
        """Whether a row is behind the watermark by more than the allowed lateness."""
        return min(timestamp + self._lateness_ms, MAX_TIMESTAMP) <= watermark_ms

    def add_batch(self, batch: Batch, missed: MissedWindows, watermark_ms: int) -> None:
        """Rows that are in no window, as `add` takes them one by one."""
        if not len(batch):
            return
        is_late = (batch.timestamps <= watermark_ms - self._lateness_ms) & (batch.timestamps > MIN_TIMESTAMP)
        if self._tag is None:
            self.count_dropped(int(np.count_nonzero(is_late)))
            return
        late = np.flatnonzero(is_late)
        batch, none = batch.take(late), pa.array(~missed.exist[late])
        columns = dict(zip(batch.table.column_names, batch.table.columns, strict=True))
        columns[WINDOW_START] = moments(missed.starts[late], none)
        columns[WINDOW_END] = moments(missed.ends[late], none)
        furthest = max(watermark_ms - MAX_TIMESTAMP, MIN_TIMESTAMP)
        columns[LATE_BY_MS] = pa.array(watermark_ms - np.maximum(batch.timestamps, furthest))
        schema = self._tag.schema.arrow
        table = pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
        self._batches.append(Batch(table, batch.timestamps))

    def count_dropped(self, rows: int) -> None:
        """Count late rows that go nowhere."""
        self._dropped += rows

    def take(self) -> tuple[str, Batch] | None:
        """The rows for the side output since the last call."""
        if self._tag is None or not (self._rows or self._batches):
            return None
        if self._rows:
            table = encode_rows(self._rows, self._tag.schema.arrow, f"{self._step}[{self._tag.name}]")
            self._batches.append(Batch(table, timestamp_array(self._times)))
        batch = concat(self._batches)
        self._rows, self._times, self._batches = [], [], []
        return self._tag.name, batch

    def take_dropped(self) -> int:
        """How many rows were dropped since the last call."""
        dropped, self._dropped = self._dropped, 0
        return dropped


def _moment(millis: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(milliseconds=millis)
