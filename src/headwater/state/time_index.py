"""Which keys, or entries of maps, may have expired: those that were written at a time, found by it.

It is made of the state and not stored. It may name what was written again since, or is gone: whoever asks looks at the
state itself. Nothing is moved when something is written again, so a write costs nothing here but the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any, Protocol


class TimeIndex(Protocol):
    """What was written, by time."""

    def add(self, time_ms: int | None, item: Any) -> None:
        """This was written at a time; None when nobody knows yet what time it is."""

    def add_all(self, time_ms: int | None, items: Sequence[Any]) -> None:
        """These were all written at a time."""

    def until(self, time_ms: int) -> list[Any]:
        """Take out what was added under a time or an earlier one, in any order and maybe some of it twice."""

    def untimed(self) -> list[Any]:
        """Take out what was added without a time."""

    def clear(self) -> None:
        """Forget all."""

    def __len__(self) -> int: ...


class Buckets:
    """The index in memory: a list for each time. All that an epoch writes has one time, so there are few."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._lists: dict[int | None, list[Any]] = {}
        self._times: list[int] = []
        """A heap of the times that have a list."""
        self._size = 0

    def add(self, time_ms: int | None, item: Any) -> None:
        self._list(time_ms).append(item)
        self._size += 1

    def add_all(self, time_ms: int | None, items: Sequence[Any]) -> None:
        if items:
            self._list(time_ms).extend(items)
            self._size += len(items)

    def _list(self, time_ms: int | None) -> list[Any]:
        found = self._lists.get(time_ms)
        if found is None:
            found = self._lists[time_ms] = []
            if time_ms is not None:
                heappush(self._times, time_ms)
        return found

    def until(self, time_ms: int) -> list[Any]:
        found: list[Any] = []
        while self._times and self._times[0] <= time_ms:
            found += self._lists.pop(heappop(self._times))
        self._size -= len(found)
        return found

    def untimed(self) -> list[Any]:
        found = self._lists.pop(None, [])
        self._size -= len(found)
        return found

    def items(self) -> list[tuple[int | None, Any]]:
        """All of it."""
        return [(time_ms, item) for time_ms, found in self._lists.items() for item in found]

    def __len__(self) -> int:
        return self._size
