"""Timers of a step: per key and domain, each fired once, in the order of time and then of registration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from headwater.data.rows import decode
from headwater.state.slices import Slice
from headwater.state.spread import InOneOrder, Spread
from headwater.state.table import PUT, REMOVE, KeyedLayout, chunks_of
from headwater.state.timers import TimerKey, TimerStore


class TimerQueue:
    """The timers of one domain.

    The registration number breaks ties between keys, so firing order depends neither on hashing nor on whether the
    queue was rebuilt; it is stored with the timer.
    """

    cut_since = 3

    def __init__(self, step: str, domain: str, key: pa.DataType, spread: Spread, timers: TimerStore) -> None:
        columns = [("timestamp", pa.int64()), ("registration", pa.int64())]
        self._layout = KeyedLayout(step, f"@timers.{domain}", key, columns)
        self.spread: Spread = InOneOrder(spread, "registration")
        self.next_registration = 0
        self._timers = timers
        self.forget_changes()

    def clear_all(self) -> None:
        self._timers.clear()
        self.forget_changes()

    def forget_changes(self) -> None:
        self._added: dict[TimerKey, int] = {}
        self._removed: dict[TimerKey, None] = {}

    def number_from(self, number: int) -> None:
        """Number timers from here on, and never as one that is there."""
        self.next_registration = max(self.next_registration, number)

    def register(self, timestamp: int, key: Any) -> None:
        timer = (timestamp, key)
        if timer not in self._timers:
            number = self.next_registration
            self.next_registration = number + 1
            self._timers[timer] = self._added[timer] = number

    def delete(self, timestamp: int, key: Any) -> None:
        timer = (timestamp, key)
        if self._timers.pop(timer, None) is not None and self._added.pop(timer, None) is None:
            self._removed[timer] = None

    def keys_due(self, until: int, count: int) -> list[Any]:
        """Keys that have timers set for `until` or before, about so many, as far as it is known without a read."""
        return self._timers.keys_due(until, count)

    def due(self, until: int) -> Iterator[TimerKey]:
        """Take the timers set for `until` or before, one by one; a timer registered meanwhile is taken in its turn."""
        for timestamp, key in self._timers.due(until):
            self.delete(timestamp, key)
            yield timestamp, key

    def changes(self) -> pa.Table | None:
        if not self._added and not self._removed:
            return None
        timers = list(self._removed) + list(self._added)
        table = self._layout.table(
            [REMOVE] * len(self._removed) + [PUT] * len(self._added),
            [key for _, key in timers],
            [timestamp for timestamp, _ in timers],
            [None] * len(self._removed) + list(self._added.values()),
        )
        self.forget_changes()
        return table

    def dump(self) -> pa.Table:
        return self._dumped(self._timers.items())

    def dump_slice(self, part: Slice) -> pa.Table:
        return self._dumped(self._timers.items_in(part, self._layout))

    def _dumped(self, timers: Iterable[tuple[TimerKey, int]]) -> pa.Table:
        rows = ((key, timestamp, number) for (timestamp, key), number in timers)
        return self._layout.puts(rows).sort_by("registration")

    def load(self, dumped: pa.Table) -> None:
        self._timers.expect_slices(self._layout)
        self.apply(dumped)

    def apply(self, changes: pa.Table) -> None:
        for chunk in chunks_of(changes):
            for op, key, timestamp, number in zip(*map(decode, chunk.columns), strict=True):
                if op == PUT:
                    self._timers[timestamp, key] = number
                    self.number_from(number + 1)
                else:
                    self._timers.pop((timestamp, key), None)

    def __len__(self) -> int:
        return len(self._timers)


def merged_numbers(metas: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The registration numbers to go on from, by domain, of those of several subtasks."""
    return {"registrations": [max(numbers) for numbers in zip(*(m["registrations"] for m in metas), strict=True)]}
