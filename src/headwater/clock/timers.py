"""Timers of a step: per key and domain, each fired once, in the order of time and then of registration."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from headwater.rows import decode
from headwater.state.spread import BY_KEY, InOneOrder, Spread
from headwater.state.table import PUT, REMOVE, KeyedLayout

EVENT, PROCESSING = "event", "processing"


class TimerQueue:
    """The timers of one domain.

    The registration number breaks ties between keys, so firing order depends neither on hashing nor on whether the
    queue was rebuilt; it is stored with the timer.
    """

    def __init__(self, step: str, domain: str, key: pa.DataType, spread: Spread = BY_KEY) -> None:
        columns = [("timestamp", pa.int64()), ("registration", pa.int64())]
        self._layout = KeyedLayout(step, f"@timers.{domain}", key, columns)
        self.spread: Spread = InOneOrder(spread, "registration")
        self.next_registration = 0
        self.clear_all()

    def clear_all(self) -> None:
        self._timers: dict[tuple[int, Any], int] = {}
        self._heap: list[tuple[int, int, Any]] = []
        self._added: dict[tuple[int, Any], int] = {}
        self._removed: dict[tuple[int, Any], None] = {}

    def number_from(self, number: int) -> None:
        """Number timers from here on, and never as one that is there."""
        self.next_registration = max(self.next_registration, number)

    def register(self, timestamp: int, key: Any) -> None:
        timer = (timestamp, key)
        if timer not in self._timers:
            number = self.next_registration
            self.next_registration = number + 1
            self._timers[timer] = self._added[timer] = number
            heapq.heappush(self._heap, (timestamp, number, key))

    def delete(self, timestamp: int, key: Any) -> None:
        timer = (timestamp, key)
        if self._timers.pop(timer, None) is not None and self._added.pop(timer, None) is None:
            self._removed[timer] = None

    def due(self, until: int) -> Iterator[tuple[int, Any]]:
        """Take the timers set for `until` or before, one by one; a timer registered meanwhile is taken in its turn."""
        while self._heap and self._heap[0][0] <= until:
            timestamp, number, key = heapq.heappop(self._heap)
            if self._timers.get((timestamp, key)) == number:
                self.delete(timestamp, key)
                yield timestamp, key

    def changes(self) -> pa.Table | None:
        if not self._added and not self._removed:
            return None
        table = self._table(list(self._removed), self._added)
        self.forget_changes()
        return table

    def forget_changes(self) -> None:
        self._added, self._removed = {}, {}

    def dump(self) -> pa.Table:
        return self._table([], self._timers)

    def _table(self, removed: list[tuple[int, Any]], added: dict[tuple[int, Any], int]) -> pa.Table:
        timers = removed + list(added)
        return self._layout.table(
            [REMOVE] * len(removed) + [PUT] * len(added),
            [key for _, key in timers],
            [timestamp for timestamp, _ in timers],
            [None] * len(removed) + list(added.values()),
        )

    def apply(self, changes: pa.Table) -> None:
        columns = (decode(changes[c]) for c in ("op", "key", "timestamp", "registration"))
        for op, key, timestamp, number in zip(*columns, strict=True):
            if op == PUT:
                self._timers[timestamp, key] = number
                self.number_from(number + 1)
                heapq.heappush(self._heap, (timestamp, number, key))
            else:
                self._timers.pop((timestamp, key), None)

    def __len__(self) -> int:
        return len(self._timers)


def merged_numbers(metas: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The registration numbers to go on from, by domain, of those of several subtasks."""
    return {"registrations": [max(numbers) for numbers in zip(*(m["registrations"] for m in metas), strict=True)]}
