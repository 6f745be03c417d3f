"""What holds the timers of a step: a mapping of (time, key) to the number of the registration, that knows what is due."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from headwater.state.by_hash import ItemsByHash
from headwater.state.slices import Slice
from headwater.state.table import KeyedLayout

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

    def keys_due(self, until: int, count: int) -> list[Any]:
        """Keys that have timers set for `until` or before, about so many, as far as these are in memory."""

    def items_in(self, part: Slice, layout: KeyedLayout) -> Iterable[tuple[TimerKey, int]]:
        """The timers whose keys fall into a slice, in any order."""

    def expect_slices(self, layout: KeyedLayout) -> None:
        """There are many to come, and slices of them will be asked for."""

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
    """Timers in memory. A heap has them in the order of firing, and some that are gone: about as many as there are at most.

    From the first slice on they are found by the hashes of their keys too.
    """

    def __init__(self) -> None:
        super().__init__()
        self._heap: list[tuple[int, int, Any]] = []
        self._by_hash: ItemsByHash[TimerKey] | None = None

    def __setitem__(self, timer: TimerKey, number: int) -> None:
        super().__setitem__(timer, number)
        heap = self._heap
        heapq.heappush(heap, (timer[0], number, timer[1]))
        if len(heap) > 2 * len(self) + _FEW_GONE:
            heap[:] = [(timestamp, one, key) for (timestamp, key), one in self.items()]
            heapq.heapify(heap)
        if self._by_hash is not None:
            self._by_hash.add(timer, self)

    def items_in(self, part: Slice, layout: KeyedLayout) -> Iterator[tuple[TimerKey, int]]:
        self.expect_slices(layout)
        assert self._by_hash is not None
        return ((timer, self[timer]) for timer in self._by_hash.within(part, self))

    def expect_slices(self, layout: KeyedLayout) -> None:
        if self._by_hash is None:
            self._by_hash = ItemsByHash(lambda timers: layout.key_column([key for _, key in timers]))
            self._by_hash.add_all(self)

    def due(self, until: int) -> Iterator[TimerKey]:
        end = (until + 1,)
        while (timer := self.take_before(end)) is not None:
            yield timer

    def keys_due(self, until: int, count: int) -> list[Any]:
        heap, looked_at, places = self._heap, 0, [0]
        found: list[Any] = []
        while looked_at < len(places) and len(found) < count:  # what is below a place in a heap comes after it
            place = places[looked_at]
            looked_at += 1
            if place < len(heap) and heap[place][0] <= until:
                found.append(heap[place][2])
                places += [2 * place + 1, 2 * place + 2]
        return found

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
        self._by_hash = None
