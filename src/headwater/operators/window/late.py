"""Rows too late for their windows: to a side output, with the window they missed, or dropped and counted."""

from __future__ import annotations

import datetime as dt
from typing import Any

from headwater.batch import Batch, timestamp_array
from headwater.graph.nodes import WindowNode
from headwater.rows import UTC, encode_rows
from headwater.windows import Window

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)

WINDOW_START, WINDOW_END, LATE_BY_MS = "window_start", "window_end", "late_by_ms"
EXTRA = {WINDOW_START: "timestamp", WINDOW_END: "timestamp", LATE_BY_MS: "bigint"}
"""What a late row's side output may carry besides the row's own fields."""


class LateRows:
    """The late rows of a step in a call."""

    def __init__(self, node: WindowNode, step: str) -> None:
        self._tag, self._step, self._names = node.late, step, node.input_schema.names
        self._rows: list[Any] = []
        self._times: list[int | None] = []
        self._dropped = 0

    def add(self, row: Any, timestamp: int | None, window: Window, watermark_ms: int) -> None:
        """A row whose windows are all gone; `window` is the last of them."""
        if self._tag is None:
            self.drop()
            return
        values = dict(zip(self._names, row, strict=True))
        values |= {WINDOW_START: _moment(window.start), WINDOW_END: _moment(window.end)}
        values[LATE_BY_MS] = watermark_ms - (watermark_ms if timestamp is None else timestamp)
        self._rows.append(tuple(values[name] for name in self._tag.schema.names))
        self._times.append(timestamp)

    def drop(self) -> None:
        """Count a row that goes nowhere."""
        self._dropped += 1

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
