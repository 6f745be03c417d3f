"""Rows too late for their windows: to a side output, with the window they missed, or dropped and counted."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np

from headwater.batch import MAX_TIMESTAMP, Batch, Timestamps, timestamp_array
from headwater.graph.nodes import WindowNode
from headwater.rows import UTC, encode_rows
from headwater.windows import Window

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)

WINDOW_START, WINDOW_END, LATE_BY_MS = "window_start", "window_end", "late_by_ms"


class LateRows:
    """The late rows of a step in a call."""

    def __init__(self, node: WindowNode, step: str) -> None:
        self._tag, self._step, self._names = node.late, step, node.input_schema.names
        self._lateness_ms = node.lateness_ms
        self._rows: list[Any] = []
        self._times: list[int | None] = []
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

    def drop(self, timestamps: Timestamps, watermark_ms: int) -> None:
        """Count the late ones of rows that go nowhere."""
        self.count_dropped(int(np.count_nonzero(timestamps <= watermark_ms - self._lateness_ms)))

    def count_dropped(self, rows: int) -> None:
        """Count late rows that go nowhere."""
        self._dropped += rows

    def take(self) -> tuple[str, Batch] | None:
        """The rows for the side output since the last call."""
        if not self._rows or self._tag is None:
            return None
        table = encode_rows(self._rows, self._tag.schema.arrow, f"{self._step}[{self._tag.name}]")
        batch = Batch(table, timestamp_array(self._times))
        self._rows, self._times = [], []
        return self._tag.name, batch

    def take_dropped(self) -> int:
        """How many rows were dropped since the last call."""
        dropped, self._dropped = self._dropped, 0
        return dropped


def _moment(millis: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(milliseconds=millis)
