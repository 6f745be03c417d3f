"""Timers on disk: the nearest ones are in memory, the others in RocksDB in the order in which they fire."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar

from headwater.state.disk.bound import Bound
from headwater.state.disk.places import KeyPlaces
from headwater.state.disk.rocks import RocksStore
from headwater.state.slices import Slice
from headwater.state.table import KeyedLayout
from headwater.state.timers import HeapTimers, TimerKey

_TIMER_BYTES = 300
"""What Python takes for a timer in memory."""
_PAGE = 4096
"""How many are fetched from disk at a time."""
_BIAS = 1 << 63
_WHEN = struct.Struct(">QQ")
_TIME = struct.Struct(">Q")
_NUMBER = struct.Struct("<Q")
_NOWHERE = (1 << 64, 0)


class DiskTimers:
    """A timer is either in memory or on disk. There it has two rows: one by time and number, one by key and time."""

    SHARE: ClassVar[float] = 0.05
    """The part of a worker's bound that timers of one kind may take."""

    def __init__(self, store: RocksStore, prefix: bytes, places: KeyPlaces, bound: Bound) -> None:
        self._store, self._places, self._bound = store, places, bound
        self._by_time, self._by_key = prefix + b"t", prefix + b"k"
        self._near = HeapTimers()
        self._far = 0
        self._far_from = _NOWHERE
        """No timer on disk comes before this time and number."""

    def __len__(self) -> int:
        return len(self._near) + self._far

    def __contains__(self, timer: object) -> bool:
        return timer in self._near or self._far_number(timer) is not None

    def __setitem__(self, timer: TimerKey, number: int) -> None:
        self._near[timer] = number
        if len(self._near) * _TIMER_BYTES > self._bound.size_bytes * self.SHARE:
            self._move_far()

    def pop(self, timer: TimerKey, default: None) -> int | None:
        number = self._near.pop(timer, None)
        if number is None and (number := self._far_number(timer)) is not None:
            self._remove_far([(timer, number)])
        return number

    def items(self) -> Iterator[tuple[TimerKey, int]]:
        yield from self._near.items()
        if self._far:
            yield from self._scan()

    def keys_due(self, until: int, count: int) -> list[Any]:
        return self._near.keys_due(until, count)

    def items_in(self, part: Slice, layout: KeyedLayout) -> Iterator[tuple[TimerKey, int]]:
        yield from self._near.items_in(part, layout)
        firsts = part.bytes()
        if self._far:
            for row, number in self._store.scan(self._by_key, bytes(firsts[:1])):
                if row[0] not in firsts:
                    return
                place, (timestamp,) = row[: -_TIME.size], _TIME.unpack(row[-_TIME.size :])
                yield (timestamp - _BIAS, self._places.key_at(place)), _NUMBER.unpack(number)[0]

    def expect_slices(self, layout: KeyedLayout) -> None:
        """On disk timers are in the order of hashes anyway."""

    def due(self, until: int) -> Iterator[TimerKey]:
        end: tuple[int, ...] = (until + 1,)
        while True:
            bound = min(end, self._far_from)
            if (timer := self._near.take_before(bound)) is not None:
                yield timer
            elif bound == end:
                return
            else:
                self._fetch(until)

    def clear(self) -> None:
        self._near.clear()
        if self._far:
            self._store.remove(self._by_time)
            self._store.remove(self._by_key)
        self._far, self._far_from = 0, _NOWHERE

    def _far_number(self, timer: Any) -> int | None:
        raw = self._store.get(self._key_row(self._places.of(timer[1]), timer)) if self._far else None
        return None if raw is None else int(_NUMBER.unpack(raw)[0])

    def _key_row(self, place: bytes, timer: TimerKey) -> bytes:
        return self._by_key + place + _TIME.pack(timer[0] + _BIAS)

    def _rows(self, timers: list[tuple[TimerKey, int]]) -> Iterator[tuple[bytes, bytes, bytes]]:
        """Of each timer the place of its key, and the keys of its two rows: by time and by place."""
        places = self._places.of_all([key for (_, key), _ in timers])
        for (timer, number), place in zip(timers, places, strict=True):
            yield place, self._by_time + _WHEN.pack(timer[0] + _BIAS, number), self._key_row(place, timer)

    def _move_far(self) -> None:
        """Let the later half go to disk."""
        timers = sorted(self._near.items(), key=lambda item: (item[0][0], item[1]))
        cut = len(timers) // 2
        batch = self._store.batch()
        moved = timers[cut:]
        for (_, number), (place, by_time, by_key) in zip(moved, self._rows(moved), strict=True):
            batch.put(by_time, place)
            batch.put(by_key, _NUMBER.pack(number))
        self._store.write(batch)
        self._near = HeapTimers()
        for timer, number in timers[:cut]:
            self._near[timer] = number
        self._far += len(timers) - cut
        first, number = timers[cut]
        self._far_from = min(self._far_from, (first[0], number))

    def _fetch(self, until: int) -> None:
        """Bring the next ones set for `until` or before into memory."""
        page = [(timer, number) for timer, number in islice(self._scan(), _PAGE) if timer[0] <= until]
        self._remove_far(page)
        for timer, number in page:
            self._near[timer] = number
        last, number = page[-1] if page else ((until + 1, None), -1)
        self._far_from = (last[0], number + 1) if self._far else _NOWHERE

    def _scan(self) -> Iterator[tuple[TimerKey, int]]:
        """The timers on disk in the order of firing."""
        start = _WHEN.pack(self._far_from[0] + _BIAS, self._far_from[1])
        for when, place in self._store.scan(self._by_time, start):
            timestamp, number = _WHEN.unpack(when)
            yield (timestamp - _BIAS, self._places.key_at(place)), number

    def _remove_far(self, timers: list[tuple[TimerKey, int]]) -> None:
        batch = self._store.batch()
        for _, by_time, by_key in self._rows(timers):
            batch.delete(by_time)
            batch.delete(by_key)
        self._store.write(batch)
        self._far -= len(timers)
