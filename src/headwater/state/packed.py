"""The entries of a step whose states are plain numbers: a column of numbers for each state instead of an object for each key.

An entry is the place of a key in these columns, so a key costs its place in a dictionary and the numbers themselves, and
nothing that the garbage collector has to walk. A record still costs one dictionary look-up.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.descriptors import StateDeclaration
from headwater.state.by_hash import PlacesByHash
from headwater.state.memory import KeyTable
from headwater.state.slices import Slice
from headwater.state.table import KeyedLayout

Places = npt.NDArray[np.int64]

HELD, PRESENT = 1, 4
"""The bits of a mark: whether the changelog has a value, and whether there is one."""
TOLD = PRESENT | HELD
"""The mark of a value that is as the changelog has it."""
NEW = 2
"""The bit of what was written since the last delta."""
WRITTEN = PRESENT | NEW
"""Marks from this on are those of values that were written since the last delta: their next write need not be noted."""

_CODES = {pa.int8(): "b", pa.int16(): "h", pa.int32(): "i", pa.int64(): "q", pa.float64(): "d"}
_FIRST = 1
"""The first place: a place is never 0, so that it is as true as a list."""
_LEAST_ROOM, _ROOM_SHARE = 64, 16
"""Columns grow by so many places, or by this share of what they have: one by one takes as long as a new key does else."""


def are_packed(declarations: Sequence[StateDeclaration]) -> bool:
    """Whether the entries of these states are packed: each is one number that nothing but writes changes."""
    return bool(declarations) and all(
        one.kind == "value" and one.ttl is None and one.columns()[0][1] in _CODES for one in declarations
    )


class PackedTable(KeyTable):
    """The entries of a step as places. A place that no key has is given to the next key that is written to.

    One of them is spare: it stands for a key that has no entry yet, and becomes that key's when it is written to.
    """

    entries: dict[Any, int]

    def __init__(self, declarations: Sequence[StateDeclaration]) -> None:
        super().__init__(len(declarations))
        self.keys: list[Any] = [None] * (_FIRST + 1)
        """The key of each place; of a place that no key has, the one that had it."""
        self.values = [array(_CODES[one.columns()[0][1]], [0] * (_FIRST + 1)) for one in declarations]
        self.marks: list[list[int]] = [[0] * (_FIRST + 1) for _ in declarations]
        self._spare = _FIRST
        self._free: list[int] = []
        self._places_by_hash = PlacesByHash()

    def entry(self, key: Any) -> int:
        place = self.entries.get(key)
        return self._spare_for(key) if place is None else place

    def _spare_for(self, key: Any) -> int:
        """The spare place, standing for a key."""
        self.keys[self._spare] = key
        return self._spare

    def write(self, state: int, place: int) -> None:
        """Note that a value is about to change, which was not written since the last delta."""
        if place == self._spare:
            self._take_spare()
        marks = self.marks[state]
        if not marks[place] & NEW:
            marks[place] |= NEW
            self.written[state].append(place)

    def _take_spare(self) -> None:
        """Let the spare place be its key's, and have another."""
        place = self._spare
        self.entries[self.keys[place]] = place
        self._places_by_hash.outdate_one(place)
        if not self._free:
            start = len(self.keys)
            self._grow(max(_LEAST_ROOM, start // _ROOM_SHARE))
            self._free = list(range(len(self.keys) - 1, start - 1, -1))
        self._spare = self._free.pop()

    def _grow(self, count: int) -> None:
        """Have room for more places behind the others."""
        self.keys += [None] * count
        for values, marks in zip(self.values, self.marks, strict=True):
            values.frombytes(bytes(values.itemsize * count))
            marks.extend([0] * count)

    def places_of(self, keys: Sequence[Any]) -> Places:
        """The places of keys, of which each is there once; those without an entry get one, which has to be written to."""
        found = list(map(self.entries.get, keys))
        missing = found.count(None)
        if missing == len(keys) and len(self._free) >= missing:
            free = self._free[-missing:]
            del self._free[-missing:]
            for one, key in zip(free, keys, strict=True):
                self.keys[one] = key
            self.entries.update(zip(keys, free, strict=True))
            self._places_by_hash.outdate(free)
            return np.array(free, np.int64)
        if missing == len(keys):
            start = len(self.keys)
            self._grow(missing)
            self.keys[start:] = keys
            self.entries.update(zip(keys, range(start, start + missing), strict=True))
            return np.arange(start, start + missing)
        if missing:
            for at, place in enumerate(found):
                if place is None:
                    found[at] = self._spare_for(keys[at])
                    self._take_spare()
        return np.array(found, np.int64)

    def put(self, state: int, places: Places, values: npt.NDArray[Any]) -> int:
        """Let places have values, as the changelog has them; tells for how many it had none before."""
        numbers = np.frombuffer(self.values[state], self.values[state].typecode)
        numbers[places] = values
        marks, count = self.marks[state], len(places)
        start = int(places[0])
        if (places == np.arange(start, start + count)).all():  # as they are when a base is read
            new = count - marks[start : start + count].count(TOLD)
            marks[start : start + count] = [TOLD] * count
            return new
        new = 0
        for place in places.tolist():
            new += marks[place] != TOLD
            marks[place] = TOLD
        return new

    def forget(self, state: int, place: int) -> None:
        """A place has no value of a state, and that is told. One without any state is free, with its key left there."""
        self.marks[state][place] = 0
        if not any(marks[place] for marks in self.marks):
            del self.entries[self.keys[place]]
            self._free.append(place)

    def _give_back(self, places: list[int]) -> None:
        """Let keys be without their entries, which are kept elsewhere."""
        for marks in self.marks:
            for place in places:
                marks[place] = 0
        for place in places:
            del self.entries[self.keys[place]]
        self._free += places

    def rest(self, state: int, part: Slice | None = None) -> Iterable[tuple[pa.Array, pa.Array]]:
        """Keys and values of a state that are not at places, as columns, of keys that fall into a slice if one is given."""
        return ()

    def load(self, state: int, keys: Sequence[Any], values: Sequence[Any]) -> None:
        self.put(state, self.places_of(keys), np.asarray(values))

    def places(self, state: int) -> Places:
        """The places that have a value of a state."""
        marks = np.frombuffer(bytes(self.marks[state]), np.uint8)
        return np.flatnonzero(marks >= PRESENT)

    def places_in(self, state: int, part: Slice, layout: KeyedLayout) -> Places:
        """The places that have a value of a state, of keys that fall into a slice."""
        places = self._places_by_hash.within(part, self.keys, layout.key_column)
        return places[self.marks_at(state, places) >= PRESENT]

    def marks_at(self, state: int, places: Places) -> npt.NDArray[np.uint8]:
        """The marks of a state at places, without a step of Python for each."""
        return np.fromiter(map(self.marks[state].__getitem__, places.tolist()), np.uint8, len(places))

    def numbers(self, state: int, places: Places) -> npt.NDArray[Any]:
        """The values at places."""
        found: npt.NDArray[Any] = np.frombuffer(self.values[state], self.values[state].typecode)[places]
        return found

    def scan(self, state: int) -> Iterator[tuple[Any, Any]]:
        places = self.places(state).tolist()
        return ((self.keys[place], self.values[state][place]) for place in places)

    def scan_slice(self, state: int, part: Slice, layout: KeyedLayout) -> Iterator[tuple[Any, Any]]:
        places = self.places_in(state, part, layout).tolist()
        return ((self.keys[place], self.values[state][place]) for place in places)

    def clear(self, state: int) -> None:
        self.marks[state][:] = [0] * len(self.keys)
        self.written[state] = []
        if any(map(any, self.marks)):
            gone = [place for place in self.entries.values() if not any(one[place] for one in self.marks)]
            for place in gone:
                del self.entries[self.keys[place]]
            self._free += gone
            return
        self.entries.clear()
        for column in (self.keys, *self.values, *self.marks):
            del column[_FIRST + 1 :]
        self._spare, self._free = _FIRST, []
        self._places_by_hash.clear()
