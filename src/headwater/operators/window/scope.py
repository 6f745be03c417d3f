"""State and timers per window: the key of an entry is the key together with the window."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headwater.clock.timers import TimerQueue
from headwater.functions import Timers
from headwater.windows import Window

Scope = tuple[Any, int, int]
"""A key and the bounds of one of its windows."""


def scope_type(key: pa.DataType) -> pa.DataType:
    """The type of a scope as the key of an entry."""
    return pa.struct([pa.field("key", key), pa.field("start", pa.int64()), pa.field("end", pa.int64())])


def scope_of(key: Any, window: Window) -> Scope:
    """The scope of a key's window."""
    return (key, window.start, window.end)


class ScopeTimers(Timers):
    """The timers of one window at a time."""

    __slots__ = ("_event", "_processing", "scope")

    def __init__(self, event: TimerQueue, processing: TimerQueue) -> None:
        self._event, self._processing = event, processing
        self.scope: Scope = (None, 0, 0)

    def event_time(self, timestamp: int) -> None:
        self._event.register(timestamp, self.scope)

    def processing_time(self, timestamp: int) -> None:
        self._processing.register(timestamp, self.scope)

    def delete_event_time(self, timestamp: int) -> None:
        self._event.delete(timestamp, self.scope)

    def delete_processing_time(self, timestamp: int) -> None:
        self._processing.delete(timestamp, self.scope)
