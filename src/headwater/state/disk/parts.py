"""Lists and maps on disk: a row for each element, so that a change costs what it changes, however long they are.

They stand where a list or a dictionary stands in memory. What they hold in memory is what was read or changed since
their entry came into the table; `save` hands over what is not on disk yet.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from headwater.state.codec import Codec
from headwater.state.disk.rocks import RocksStore

if TYPE_CHECKING:
    from rocksdict import WriteBatch

_PART_BYTES = 150
"""What Python takes for an element of a map or list besides its bytes: the object, and its place in a dictionary."""
_INDEX = struct.Struct(">Q")
_NUMBER = struct.Struct("<Q")
_FACTS = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class Home:
    """Where the elements of one list or map are, and how they get there."""

    store: RocksStore
    prefix: bytes
    value: Codec
    charge: Callable[[int], None]
    """Told how many bytes came into memory."""


class DiskList:
    """A list. Of one that is only appended to, what is on disk is not read.

    An element keeps its number while those in front of it are dropped.
    """

    __slots__ = ("_first", "_home", "_items", "_saved", "_start")

    def __init__(self, home: Home, facts: bytes | None = None) -> None:
        """A new list, or the one whose `facts` are given."""
        self._home = home
        self._first: int = 0
        """The number of the first element."""
        self._saved: int = 0
        """The elements before this number are on disk."""
        if facts is not None:
            self._first, self._saved = _FACTS.unpack(facts)
        self._start = self._saved
        """The number from which on elements are in memory."""
        self._items: list[Any] = []

    def extend(self, values: list[Any]) -> None:
        self._items.extend(values)

    def clear(self) -> None:
        if self._saved > self._first:
            self._home.store.remove(self._home.prefix, self._saved - self._first)
        self._first, self._saved, self._start, self._items = 0, 0, 0, []

    def __len__(self) -> int:
        return self._start - self._first + len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all())

    def __getitem__(self, part: slice) -> list[Any]:
        in_memory = self._start - self._first
        if part.start >= in_memory:
            return self._items[part.start - in_memory : None if part.stop is None else part.stop - in_memory]
        if part.stop == part.start + 1:
            raw = self._home.store.get(self._home.prefix + _INDEX.pack(self._first + part.start))
            assert raw is not None
            return [self._home.value.decode(raw)]
        return self._all()[part]

    def __delitem__(self, part: slice) -> None:
        """Drop the first elements."""
        home, first = self._home, self._first + part.stop
        batch = home.store.batch()
        for number in range(self._first, min(first, self._saved)):
            batch.delete(home.prefix + _INDEX.pack(number))
        home.store.write(batch)
        del self._items[: max(0, first - self._start)]
        self._first, self._start, self._saved = first, max(self._start, first), max(self._saved, first)

    def _all(self) -> list[Any]:
        if self._start > self._first:
            home, decode = self._home, self._home.value.decode
            rows = [raw for key, raw in home.store.scan(home.prefix) if _INDEX.unpack(key)[0] < self._start]
            self._items[:0] = map(decode, rows)
            self._start = self._first
            home.charge(sum(map(len, rows)) + _PART_BYTES * len(rows))
        return self._items

    def save(self, batch: WriteBatch) -> bytes:
        """Hand over what is not on disk yet; gives the facts that lead back here."""
        prefix, encode = self._home.prefix, self._home.value.encode
        for number, value in enumerate(self[self._saved - self._first :], self._saved):
            batch.put(prefix + _INDEX.pack(number), encode(value))
        self._saved = self._first + len(self)
        return _FACTS.pack(self._first, self._saved)


class DiskMap:
    """A map that iterates in the order of insertion: each map entry has a number, and numbers only grow."""

    __slots__ = ("_changed", "_count", "_entry", "_home", "_known", "_next", "_saved")

    def __init__(self, home: Home, entry: Codec, facts: bytes | None = None) -> None:
        """A new map, or the one whose `facts` are given."""
        self._home, self._entry = home, entry
        self._count: int = 0
        self._next: int = 0
        if facts is not None:
            self._count, self._next = _FACTS.unpack(facts)
        self._saved = self._count
        """How many map entries are on disk, also of those that are gone since."""
        self._known: dict[Any, tuple[int, Any] | None] = {}
        """The number and value of map entries, None of those that are not there."""
        self._changed: dict[Any, None] = {}

    def get(self, entry: Any) -> Any:
        found = self._find(entry)
        return None if found is None else found[1]

    def __getitem__(self, entry: Any) -> Any:
        return self.get(entry)

    def __contains__(self, entry: Any) -> bool:
        return self._find(entry) is not None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        return (entry for entry, _ in self.items())

    def __setitem__(self, entry: Any, value: Any) -> None:
        found = self._find(entry)
        if found is None:
            self._known[entry] = (self._next, value)
            self._next += 1
            self._count += 1
        else:
            self._known[entry] = (found[0], value)
        self._changed[entry] = None

    def __delitem__(self, entry: Any) -> None:
        self._known[entry] = None
        self._changed[entry] = None
        self._count -= 1

    def pop(self, entry: Any, default: None) -> None:
        """Take a map entry out, if it is there."""
        if entry in self:
            del self[entry]

    def clear(self) -> None:
        if self._saved:
            self._home.store.remove(self._home.prefix, self._saved)
        self._count, self._saved, self._known, self._changed = 0, 0, {}, {}

    def items(self) -> Iterable[tuple[Any, Any]]:
        if self._saved:
            self._read_all()
        found = [(one[0], entry, one[1]) for entry, one in self._known.items() if one is not None]
        return [(entry, value) for _, entry, value in sorted(found, key=itemgetter(0))]

    def _find(self, entry: Any) -> tuple[int, Any] | None:
        if entry in self._known or not self._saved:
            return self._known.get(entry)
        home = self._home
        raw = home.store.get(home.prefix + self._entry.encode(entry))
        found = self._known[entry] = None if raw is None else self._decoded(raw)
        home.charge(_PART_BYTES + len(raw or b""))
        return found

    def _read_all(self) -> None:
        if self._count == sum(one is not None for one in self._known.values()):
            return
        size = 0
        for key, raw in self._home.store.scan(self._home.prefix):
            self._known.setdefault(self._entry.decode(key), self._decoded(raw))
            size += len(key) + len(raw) + _PART_BYTES
        self._home.charge(size)

    def _decoded(self, raw: bytes) -> tuple[int, Any]:
        return _NUMBER.unpack_from(raw)[0], self._home.value.decode(raw[_NUMBER.size :])

    def save(self, batch: WriteBatch) -> bytes:
        """Hand over what is not on disk yet; gives the facts that lead back here."""
        prefix, encode = self._home.prefix, self._home.value.encode
        for entry in self._changed:
            place, found = prefix + self._entry.encode(entry), self._known[entry]
            if found is None:
                batch.delete(place)
            else:
                batch.put(place, _NUMBER.pack(found[0]) + encode(found[1]))
        self._changed, self._saved = {}, self._count
        return _FACTS.pack(self._count, self._next)
