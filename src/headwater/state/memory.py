"""The entries of a step in memory, and the cursor that points at one of them.

All states of a step share a table of entries, so that a record costs one dictionary look-up however many states its
function has. An entry is a list: the key, then for each state its value (None when there is none) and a mark that
tells whether it is written since the last delta and whether the changelog holds it. A function's handles reach the
current key's entry through the cursor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat
from typing import Any, ClassVar

from headwater.errors import StateError
from headwater.state.by_hash import ItemsByHash
from headwater.state.slices import Slice, parts_for
from headwater.state.table import KeyedLayout

Entry = Any
"""What stands for a key's states: a list here, where states are plain numbers a place (`state/packed.py`)."""
WRITTEN, STORED = 1, 2
"""The bits of a mark."""


class Cursor:
    """Points at the key whose state is reachable; at first there is none."""

    __slots__ = ("entry", "keys")

    entry: Entry
    """The current key's entry."""
    keys: list[Any]
    """The keys of entries that are places."""

    def __init__(self) -> None:
        self.leave()

    def leave(self) -> None:
        """Point at no key."""
        self.entry = _NoEntry()

    @property
    def key(self) -> Any:
        """The current key."""
        entry = self.entry
        return self.keys[entry] if type(entry) is int else entry[0]


class _NoEntry(list[Any]):
    """Stands where a key's entry will be."""

    def __index__(self) -> int:
        raise StateError.no_key()

    def __getitem__(self, place: Any) -> Any:
        raise StateError.no_key()

    def __setitem__(self, place: Any, value: Any) -> None:
        raise StateError.no_key()


class KeyTable:
    """The entries of a step by key. An entry is in the table from its first write until all its states are gone."""

    HOLDS_ALL: ClassVar[bool] = True
    """Whether all entries are in memory."""

    def __init__(self, states: int) -> None:
        self.entries: dict[Any, Entry] = {}
        self.written: list[list[Entry]] = [[] for _ in range(states)]
        """For each state, the entries written since its last delta, each once."""
        self._blank: list[Any] = [None, 0] * states
        self._empty: list[Any] = [None, *self._blank]
        self._by_hash: ItemsByHash[Any] | None = None
        """The keys of entries, once there are so many that bases have parts."""

    def entry(self, key: Any) -> Entry:
        """The key's entry; a new one is not in the table before it is written to."""
        return self.entries.get(key) or self._new(key)

    def _new(self, key: Any) -> list[Any]:
        """A copy has no room to grow, which a list that is put together has."""
        entry = self._empty.copy()
        entry[0] = key
        return entry

    def fetch(self, keys: Iterable[Any]) -> Iterable[Any]:
        """Have the entries of keys at hand that are asked for next; gives the keys. In memory all are."""
        return keys

    def load(self, state: int, keys: Sequence[Any], values: Sequence[Any]) -> None:
        """Give values to keys that have none, as the changelog holds them; the same key is there once."""
        before = len(self.entries)
        if self.entries.keys().isdisjoint(keys):
            self.entries.update(zip(keys, self._made(state, keys, values), strict=True))
        else:
            value, mark = 1 + 2 * state, 2 + 2 * state
            for key, one in zip(keys, values, strict=True):
                entry = self.entries[key] = self.entry(key)
                entry[value], entry[mark] = one, STORED
        self._name_since(before)

    def _made(self, state: int, keys: Sequence[Any], values: Sequence[Any]) -> Iterator[Entry]:
        """New entries with values of one state, made without a step of Python for each."""
        columns: list[Iterable[Any]] = [keys, *map(repeat, self._blank)]
        columns[1 + 2 * state], columns[2 + 2 * state] = values, repeat(STORED)
        return map(list, zip(*columns, strict=False))  # what is repeated has no end

    def overwrite(self, state: int, keys: Sequence[Any], values: Sequence[Any]) -> int:
        """As `load`, to keys of which some may have a value; tells how many had none."""
        if self.entries.keys().isdisjoint(keys):
            self.load(state, keys, values)
            return len(keys)
        entries, value, mark, new, before = self.entries, 1 + 2 * state, 2 + 2 * state, 0, len(self.entries)
        for key, one in zip(keys, values, strict=True):
            entry = entries.get(key)
            if entry is None:
                entry = entries[key] = self._new(key)
            if not entry[mark]:
                entry[mark] = STORED
                new += 1
            entry[value] = one
        self._name_since(before)
        return new

    def _name_since(self, before: int) -> None:
        """Entries came since there were so many, and none went."""
        if self._by_hash is not None:
            self._by_hash.add_all(islice(reversed(self.entries), len(self.entries) - before))

    def came(self, keys: Iterable[Any], layout: KeyedLayout) -> None:
        """These keys have a state since the last delta that they had not, and maybe others before."""
        if self._by_hash is not None:
            self._by_hash.add_all(keys)
        elif parts_for(len(self.entries)) > 1:
            self.expect_slices(layout)

    def expect_slices(self, layout: KeyedLayout) -> None:
        """Slices will be asked for."""
        if self._by_hash is None:
            self._by_hash = ItemsByHash(layout.key_column)
            self._by_hash.add_all(self.entries)

    def new_list(self, entry: Entry, state: int) -> Any:
        """What holds the list that an entry is to have."""
        return []

    def new_map(self, entry: Entry, state: int) -> Any:
        """What holds the map that an entry is to have."""
        return {}

    def settle(self, state: int, changed: list[Entry], size_bytes: int) -> None:
        """What changed of a state is told, and this is how much it is."""
        if self._by_hash is not None and state == len(self.written) - 1:
            self._by_hash.place_some(self.entries)

    def drop_if_empty(self, entry: Entry) -> None:
        """Take an entry without state out of the table."""
        if all(value is None for value in entry[1::2]):
            self.entries.pop(entry[0], None)

    def scan(self, state: int) -> Iterator[tuple[Any, Any]]:
        """Each key that has a state, with its value, in any order."""
        place = 1 + 2 * state
        return ((entry[0], entry[place]) for entry in self.entries.values() if entry[place] is not None)

    def scan_slice(self, state: int, part: Slice, layout: KeyedLayout) -> Iterator[tuple[Any, Any]]:
        """As `scan`, of the keys that fall into a slice."""
        self.expect_slices(layout)
        assert self._by_hash is not None
        place = 1 + 2 * state
        entries = map(self.entries.__getitem__, self._by_hash.within(part, self.entries))
        return ((entry[0], entry[place]) for entry in entries if entry[place] is not None)

    def clear(self, state: int) -> None:
        """Forget every value of a state."""
        value, mark = 1 + 2 * state, 2 + 2 * state
        for entry in list(self.entries.values()):
            entry[value], entry[mark] = None, 0
            self.drop_if_empty(entry)
        self.written[state] = []
        if not self.entries:
            self._by_hash = None
