"""Lists and maps on disk: rows for each element, so that a change costs what it changes, however long they are.

They stand where a list or a dictionary stands in memory. What they hold in memory is what was read or changed since
their entry came into the table; `save` hands over what is not on disk yet.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Iterator, KeysView
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.state.codec import Codec, value_codec
from headwater.state.disk.rocks import RocksStore
from headwater.state.handles.maps import one_of_equals

if TYPE_CHECKING:
    from rocksdict import WriteBatch

_PART_BYTES = 150
"""What Python takes for an element of a map or list besides its bytes: the object, and its place in a dictionary."""
_LONG = 64
"""Of a map of more entries than these, those that went are not to be in the way of the first one."""
_FIRST_PAGE, _PAGE = 8, 4_096
"""So many map entries are read first when a map is walked; each page is twice the one before, up to so many."""
_INDEX = struct.Struct(">Q")
_NUMBER = struct.Struct("<Q")
_FACTS = struct.Struct("<QQ")
_MAP_FACTS = struct.Struct("<QQQ")


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
        """The elements; those on disk are read one by one as they are given."""
        items = self._items
        yield from map(self._home.value.decode, self._rows())
        yield from items

    def __getitem__(self, part: slice) -> list[Any]:
        in_memory, start = self._start - self._first, part.start or 0
        if start >= in_memory:
            return self._items[start - in_memory : None if part.stop is None else part.stop - in_memory]
        if part.stop == start + 1:
            raw = self._home.store.get(self._home.prefix + _INDEX.pack(self._first + start))
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

    def _rows(self) -> Iterator[bytes]:
        """The elements that are on disk alone."""
        count = self._start - self._first
        rows = self._home.store.scan(self._home.prefix, _INDEX.pack(self._first)) if count else ()
        return (raw for _, raw in islice(rows, count))

    def _all(self) -> list[Any]:
        if self._start > self._first:
            rows = list(self._rows())
            self._items = [*map(self._home.value.decode, rows), *self._items]
            self._start = self._first
            self._home.charge(sum(map(len, rows)) + _PART_BYTES * len(rows))
        return self._items

    def save(self, batch: WriteBatch) -> bytes:
        """Hand over what is not on disk yet; gives the facts that lead back here."""
        prefix, encode = self._home.prefix, self._home.value.encode
        for number, value in enumerate(self[self._saved - self._first :], self._saved):
            batch.put(prefix + _INDEX.pack(number), encode(value))
        self._saved = self._first + len(self)
        return _FACTS.pack(self._first, self._saved)


def entry_codec(dtype: pa.DataType) -> Codec:
    """The codec of the map entries of a type."""
    codec = value_codec(dtype)
    if not pa.types.is_floating(dtype):
        return codec
    return Codec(codec.encode, lambda data: one_of_equals(codec.decode(data)))


class DiskMap:
    """A map that iterates in the order of insertion: each map entry has a number, and numbers only grow.

    On disk a map entry has two rows: its number and value are found by it, and it is found by its number.
    """

    __slots__ = (
        "_by_entry",
        "_by_number",
        "_changed",
        "_count",
        "_entry",
        "_first",
        "_gone",
        "_home",
        "_is_whole",
        "_known",
        "_next",
        "_saved",
        "_stored",
    )

    def __init__(self, home: Home, entry: Codec, facts: bytes | None = None) -> None:
        """A new map, or the one whose `facts` are given."""
        self._home, self._entry = home, entry
        self._by_entry, self._by_number = home.prefix + b"e", home.prefix + b"n"
        self._count: int = 0
        self._first: int = 0
        """No map entry on disk has a number before this."""
        self._next: int = 0
        if facts is not None:
            self._count, self._first, self._next = _MAP_FACTS.unpack(facts)
        self._stored = self._count
        """How many map entries are on disk, also of those that are gone since."""
        self._saved = self._next
        """Map entries with numbers before this are on disk."""
        self._known: dict[Any, tuple[int, Any] | None] = {}
        """The number and value of map entries, None of those that are not there."""
        self._is_whole = not self._count
        """Whether all map entries are known, in their order and no others."""
        self._changed: dict[Any, None] = {}
        """The map entries that are not on disk as they are; new ones in the order of their numbers."""
        self._gone: list[int] = []
        """The numbers on disk that nothing has any more."""

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
        return iter(self._known) if self._is_whole else self._walk()

    def __setitem__(self, entry: Any, value: Any) -> None:
        found = self._find(entry)
        if found is None:
            self._known[entry] = (self._next, value)
            self._changed.pop(entry, None)
            self._next += 1
            self._count += 1
        else:
            self._known[entry] = (found[0], value)
        self._changed[entry] = None

    def __delitem__(self, entry: Any) -> None:
        found = self._find(entry)
        assert found is not None
        if found[0] < self._saved:
            self._gone.append(found[0])
        if self._is_whole:
            self._forget(entry)
        else:
            self._known[entry] = None
        self._changed[entry] = None
        self._count -= 1

    def _forget(self, entry: Any) -> None:
        """Have no such entry in what is known and whole."""
        if self._count > _LONG and type(self._known) is dict and next(iter(self._known)) == entry:
            self._known = OrderedDict(self._known)
        del self._known[entry]

    def pop(self, entry: Any, default: None) -> None:
        """Take a map entry out, if it is there."""
        if entry in self:
            del self[entry]

    def clear(self) -> None:
        if self._stored:
            self._home.store.remove(self._home.prefix, 2 * self._stored)
        self._count, self._stored, self._known, self._changed, self._gone = 0, 0, {}, {}, []
        self._is_whole = True

    def keys(self) -> KeysView[Any]:
        """All of them, read at once if they are on disk."""
        return self._all().keys()

    def items(self) -> list[tuple[Any, Any]]:
        """All of them with their values, as `keys`."""
        return [(entry, value) for entry, (_, value) in self._all().items()]

    def _find(self, entry: Any) -> tuple[int, Any] | None:
        if self._is_whole or entry in self._known:
            return self._known.get(entry)
        raw = self._home.store.get(self._by_entry + self._entry.encode(entry))
        found = self._known[entry] = None if raw is None else self._decoded(raw)
        self._home.charge(_PART_BYTES + len(raw or b""))
        return found

    def _all(self) -> dict[Any, Any]:
        """The number and value of all map entries, in their order."""
        if not self._is_whole:
            size = 0
            if self._count != sum(one is not None for one in self._known.values()):
                for key, raw in self._home.store.scan(self._by_entry):
                    self._known.setdefault(self._entry.decode(key), self._decoded(raw))
                    size += len(key) + len(raw) + _PART_BYTES
            found = [(one[0], entry, one[1]) for entry, one in self._known.items() if one is not None]
            found.sort(key=itemgetter(0))
            self._known = {entry: (number, value) for number, entry, value in found}
            self._is_whole = True
            self._home.charge(size)
        return self._known

    def _walk(self) -> Iterator[Any]:
        """The map entries in their order. Those on disk are read as they are given, a page at a time."""
        saved, size, has_first = self._saved, _FIRST_PAGE, False
        rows = self._home.store.scan(self._by_number, _INDEX.pack(self._first))
        while page := [(_INDEX.unpack(key)[0], self._entry.decode(raw)) for key, raw in islice(rows, size)]:
            self._read([entry for _, entry in page])
            there = [one for one in page if self._is_at(*one)]
            if there and not has_first:
                self._first, has_first = there[0][0], True
            yield from map(itemgetter(1), there)
            size = min(2 * size, _PAGE)
        there_now = {entry: self._known.get(entry) for entry in self._changed}
        new = {entry: one for entry, one in there_now.items() if one is not None and one[0] >= saved}
        if not has_first:
            self._known, self._is_whole = {**new}, True
        yield from new

    def _is_at(self, number: int, entry: Any) -> bool:
        """Whether a map entry that is known has this number."""
        found = self._known.get(entry)
        return found is not None and found[0] == number

    def _read(self, entries: list[Any]) -> None:
        """Know of map entries what is on disk; what is known already is not read."""
        unread = [] if self._is_whole else [entry for entry in entries if entry not in self._known]
        if unread:
            rows = self._home.store.get_all([self._by_entry + self._entry.encode(entry) for entry in unread])
            for entry, raw in zip(unread, rows, strict=True):
                self._known[entry] = None if raw is None else self._decoded(raw)
            self._home.charge(sum(_PART_BYTES + len(raw or b"") for raw in rows))

    def _decoded(self, raw: bytes) -> tuple[int, Any]:
        return _NUMBER.unpack_from(raw)[0], self._home.value.decode(raw[_NUMBER.size :])

    def save(self, batch: WriteBatch) -> bytes:
        """Hand over what is not on disk yet; gives the facts that lead back here."""
        encode, encode_entry = self._home.value.encode, self._entry.encode
        for number in self._gone:
            batch.delete(self._by_number + _INDEX.pack(number))
        for entry in self._changed:
            place, found = encode_entry(entry), self._known.get(entry)
            if found is None:
                batch.delete(self._by_entry + place)
                continue
            number, value = found
            batch.put(self._by_entry + place, _NUMBER.pack(number) + encode(value))
            if number >= self._saved:
                batch.put(self._by_number + _INDEX.pack(number), place)
        self._changed, self._gone, self._stored, self._saved = {}, [], self._count, self._next
        if self._is_whole:
            self._first = next((one[0] for one in self._known.values() if one is not None), self._next)
        return _MAP_FACTS.pack(self._count, self._first, self._next)
