"""The timers of a step: a queue for each domain, and the handle that user code sets them with."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headwater.clock.timers import TimerQueue, merged_numbers
from headwater.data.rows import milliseconds_of
from headwater.errors import StateError
from headwater.functions import EVENT, PROCESSING
from headwater.operators.contract import Emit, StatefulOperator, StepTime
from headwater.state.backend import StateBackend
from headwater.state.memory import Cursor, KeyTable
from headwater.state.memory_backend import MEMORY
from headwater.state.spread import BY_KEY, Spread
from headwater.state.table import StateTable
from headwater.state.timers import TimerKey
from headwater.words import TimeDomain

_AHEAD = 4096
"""Timers whose keys are fetched at once where state is on disk."""


class StepTimers:
    """The timers of the key that the cursor points at. They are state: tables, and the numbers of registrations."""

    __slots__ = ("_cursor", "event", "processing")

    def __init__(
        self,
        step: str,
        key: pa.DataType,
        cursor: Cursor,
        spread: Spread = BY_KEY,
        *,
        backend: StateBackend = MEMORY,
    ) -> None:
        self._cursor = cursor
        self.event, self.processing = (
            TimerQueue(step, domain, key, spread, backend.timers(key)) for domain in (EVENT, PROCESSING)
        )

    def point(self, key: Any) -> None:
        """Make a key the current one, where the cursor is for timers alone."""
        self._cursor.entry = [key]

    def event_time(self, timestamp: int | dt.datetime) -> None:
        self.event.register(_milliseconds(timestamp), self._cursor.key)

    def processing_time(self, timestamp: int | dt.datetime) -> None:
        self.processing.register(_milliseconds(timestamp), self._cursor.key)

    def delete_event_time(self, timestamp: int | dt.datetime) -> None:
        self.event.delete(_milliseconds(timestamp), self._cursor.key)

    def delete_processing_time(self, timestamp: int | dt.datetime) -> None:
        self.processing.delete(_milliseconds(timestamp), self._cursor.key)

    def keys_due(self, domain: TimeDomain, time: StepTime, count: int) -> list[Any]:
        """The keys of timers that are due, of so many, as far as it is known without a read."""
        if domain == EVENT:
            return self.event.keys_due(time.watermark_ms, count)
        return self.processing.keys_due(time.now_ms, count)

    def tables(self) -> dict[str, StateTable]:
        return {"@timers.event": self.event, "@timers.processing": self.processing}

    def meta(self) -> dict[str, Any]:
        return {"registrations": [self.event.next_registration, self.processing.next_registration]}

    def set_meta(self, meta: dict[str, Any]) -> None:
        for queue, number in zip((self.event, self.processing), meta["registrations"], strict=True):
            queue.number_from(number)

    def reset(self) -> None:
        for queue in (self.event, self.processing):
            queue.clear_all()
            queue.next_registration = 0


class KeepsTimers(StatefulOperator):
    """A step that has timers: they fire when time moves. Their numbers are all that it keeps besides its tables."""

    _timers: StepTimers
    _tables: dict[str, StateTable]

    def _keep(self, states: Mapping[str, StateTable]) -> None:
        """Have these tables, and behind them those of the timers."""
        self._tables = {**states, **self._timers.tables()}

    def tables(self) -> dict[str, StateTable]:
        return self._tables

    def advance_watermark(self, time: StepTime, emit: Emit) -> None:
        self._on_timers(EVENT, self._timers.event.due(time.watermark_ms), time, emit)

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        self._on_timers(PROCESSING, self._timers.processing.due(time.now_ms), time, emit)

    def _on_timers(self, domain: TimeDomain, due: Iterable[TimerKey], time: StepTime, emit: Emit) -> None:
        """Handle the timers of a domain that are due. Asking for the next takes it out, so all must be asked for."""
        raise NotImplementedError

    def _fetched(
        self, due: Iterable[TimerKey], entries: KeyTable, domain: TimeDomain, time: StepTime
    ) -> Iterator[TimerKey]:
        """Timers that are due, with the entries of their keys at hand: those of many are fetched at once."""
        for number, timer in enumerate(due):
            if not entries.HOLDS_ALL and number % _AHEAD == 0:
                entries.fetch([timer[1], *self._timers.keys_due(domain, time, _AHEAD)])
            yield timer

    def meta(self) -> dict[str, Any]:
        return self._timers.meta()

    def set_meta(self, meta: dict[str, Any]) -> None:
        self._timers.set_meta(meta)

    def merged_meta(self, metas: Sequence[dict[str, Any]], subtask: int, parallelism: int) -> dict[str, Any]:
        return merged_numbers(metas)

    def reset(self) -> None:
        super().reset()
        self._timers.reset()


class NoTimers:
    """Stands where there is no key, and so no timer."""

    __slots__ = ("_action", "_step", "_without_key")

    def __init__(self, step: str, without_key: str = "its input has none", action: str = "use key_by before") -> None:
        self._step, self._without_key, self._action = step, without_key, action

    def event_time(self, timestamp: int | dt.datetime) -> None:
        raise StateError.misused(self._step, f"timers belong to keys and {self._without_key}", self._action)

    processing_time = delete_event_time = delete_processing_time = event_time


def _milliseconds(timestamp: int | dt.datetime) -> int:
    if type(timestamp) is not int:
        if isinstance(timestamp, dt.datetime):
            return milliseconds_of(timestamp)
        raise TypeError(f"a timer is set for a datetime or an integer of milliseconds, got {timestamp!r}")
    if not -(1 << 63) < timestamp < 1 << 63:
        raise ValueError(f"a timer's time must fit 64 bits, whose smallest number stands for no time, got {timestamp}")
    return timestamp
