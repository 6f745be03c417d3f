"""What holds the timers of a step: a mapping of (time, key) to the number of the registration, that knows what is due."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

TimerKey = tuple[int, Any]
"""A time and a key: there is one timer for both at most."""


class TimerStore(Protocol):
    """Timers by time and key."""

    def __contains__(self, timer: object, /) -> bool: ...

    def __setitem__(self, timer: TimerKey, number: int, /) -> None: ...

    def pop(self, timer: TimerKey, default: None, /) -> int | None:
        """Take a timer out; its number, if it was there."""

    def items(self) -> Iterable[tuple[TimerKey, int]]:
        """All timers, in any order."""

    def due(self, until: int) -> Iterator[TimerKey]:
        """The timers set for `until` or before, by time and then number, also those that are set meanwhile.

        Whoever asks takes each out before asking for the next.
        """

    def clear(self) -> None:
        """Forget all."""

    def __len__(self) -> int: ...


_FEW_GONE = 64
"""Timers that may be gone and in the heap still, however few there are."""


class HeapTimers(dict[TimerKey, int]):
    """Timers in memory. A heap has them in the order of firing, and some that are gone: about as many as there are at most."""

    def __init__(self) -> None:
        super().__init__()
        self._heap: list[tuple[int, int, Any]] = []

    def __setitem__(self, timer: TimerKey, number: int) -> None:
        super().__setitem__(timer, number)
        heap = self._heap
        heapq.heappush(heap, (timer[0], number, timer[1]))
        if len(heap) > 2 * len(self) + _FEW_GONE:
            heap[:] = [(timestamp, one, key) for (timestamp, key), one in self.items()]
            heapq.heapify(heap)

    def due(self, until: int) -> Iterator[TimerKey]:
        end = (until + 1,)
        while (timer := self.take_before(end)) is not None:
            yield timer

    def take_before(self, bound: tuple[int, ...]) -> TimerKey | None:
        """The first timer before a time, or a time and number; the heap has it no more."""
        heap = self._heap
        while heap and heap[0] < bound:
            timestamp, number, key = heapq.heappop(heap)
            if self.get((timestamp, key)) == number:
                return timestamp, key
        return None

    def clear(self) -> None:
        super().clear()
        self._heap.clear()
