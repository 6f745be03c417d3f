"""Working state on the local disk of a worker, for state that is larger than memory.

Entries are those of the memory backend, in a table that holds a bounded part of them: when all tables of the worker hold
more than they may, the oldest entries of the largest are written, as far as they are not on disk yet, and let go, but for
those written since the last delta, which the next delta needs. Nothing on disk outlives the worker: a failed attempt, a
retry or a restart rebuilds from the changelog, so when things are written is a matter of speed alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.descriptors import MapState, StateDeclaration
from headwater.errors import RowError
from headwater.state.codec import value_codec
from headwater.state.disk.accumulators import DiskAccumulators
from headwater.state.disk.bound import Bound, Holds
from headwater.state.disk.files import ArrowFiles
from headwater.state.disk.numbers import DiskNumbers
from headwater.state.disk.parts import DiskList, DiskMap, Home, entry_codec
from headwater.state.disk.places import KeyPlaces
from headwater.state.disk.rocks import RocksStore
from headwater.state.disk.shelf import DiskShelf
from headwater.state.disk.timers import DiskTimers
from headwater.state.disk.times import DiskTimes
from headwater.state.memory import STORED, WRITTEN, Entry, KeyTable
from headwater.state.slices import MAX_PARTS, Slice
from headwater.state.table import KeyedLayout

if TYPE_CHECKING:
    from rocksdict import WriteBatch

_ENTRY_BYTES, _STATE_BYTES = 240, 80
"""What Python takes for an entry: the list, the key and its bytes, a dictionary's place; and for each small state of it."""
_NUMBER = struct.Struct(">I")
_first = itemgetter(0)


class DiskBackend:
    """Keeps the working state of a step under `parent`: entries in RocksDB, in a folder of its own, columns in files."""

    def __init__(self, step: str, parent: Path | None, bound: Bound) -> None:
        self._step, self._bound, self._store = step, bound, RocksStore(step, parent, bound)
        self._prefixes = map(_NUMBER.pack, count())
        self._holders: list[Holds] = []
        self.shelf = DiskShelf(ArrowFiles(step, parent), bound)
        self._join(self.shelf)

    def _join(self, holder: Holds) -> None:
        self._holders.append(holder)
        self._bound.join(holder)

    def table(self, declarations: Sequence[StateDeclaration], key: pa.DataType) -> KeyTable:
        table = DiskTable(self._store, next(self._prefixes), declarations, key, step=self._step, bound=self._bound)
        self._join(table)
        return table

    def numbers(self, declarations: Sequence[StateDeclaration], key: pa.DataType) -> DiskNumbers:
        numbers = DiskNumbers(declarations, key, self._step, self.shelf, self._bound)
        self._join(numbers)
        return numbers

    def accumulators(self, layout: KeyedLayout, schema: pa.Schema) -> DiskAccumulators:
        kept = DiskAccumulators(layout, schema, self.shelf, self._bound)
        self._join(kept)
        return kept

    def timers(self, key: pa.DataType) -> DiskTimers:
        return DiskTimers(self._store, next(self._prefixes), KeyPlaces(key, self._step), self._bound)

    def times(self, declaration: StateDeclaration, key: pa.DataType) -> DiskTimes:
        entry = declaration.key_type if isinstance(declaration, MapState) else None
        return DiskTimes(self._store, next(self._prefixes), key, entry)

    def close(self) -> None:
        for holder in self._holders:
            self._bound.leave(holder)
        self._store.close()


class DiskTable(KeyTable):
    """The entries of a step, of which `entries` has those that are in memory. Each ends with its place on disk."""

    HOLDS_ALL = False

    def __init__(
        self,
        store: RocksStore,
        prefix: bytes,
        declarations: Sequence[StateDeclaration],
        key: pa.DataType,
        *,
        step: str,
        bound: Bound,
    ) -> None:
        super().__init__(len(declarations))
        self.store, self.prefix, self._bound = store, prefix, bound
        self._places = KeyPlaces(key, step)
        self._columns = [_column(self, index, declaration, step) for index, declaration in enumerate(declarations)]
        self._unsaved: list[dict[Any, Entry]] = [{} for _ in declarations]
        """For each state, the entries whose value is not on disk as it was at the last delta."""
        self._entry_bytes = _ENTRY_BYTES + _STATE_BYTES * len(declarations)
        self.held_bytes = 0

    def entry(self, key: Any) -> Entry:
        found = self.entries.get(key)
        return self._load(key) if found is None else found

    def _load(self, key: Any) -> Entry:
        data = self._places.of(key)
        entry = self.entries[key] = [key, *self._blank, data]
        size = self._entry_bytes
        columns = [column for column in self._columns if column.is_on_disk]
        if columns:
            rows = self.store.get_all([column.prefix + data for column in columns])
            size += sum(column.take(entry, raw) for column, raw in zip(columns, rows, strict=True))
        self.charge(size)
        return entry

    def fetch(self, keys: Iterable[Any]) -> Sequence[Any]:
        """All at once and in the order in which they are on disk, which costs a fraction of one by one."""
        keys = keys if isinstance(keys, list) else list(keys)
        held = self.entries
        missing = [key for key in keys if key not in held]
        if missing:
            absent = dict(zip(self._places.of_all(missing), missing, strict=True))
            size = self._entry_bytes * len(absent)
            self._bound.make_room(size)
            rows = sorted(absent)
            entries = [[absent[data], *self._blank, data] for data in rows]
            for column in self._columns:
                if column.is_on_disk:
                    found = self.store.get_all([column.prefix + data for data in rows])
                    size += sum(map(column.take, entries, found))
            held.update(zip(map(_first, entries), entries, strict=True))
            self.held_bytes += size
        return keys

    def load(self, state: int, keys: Sequence[Any], values: Sequence[Any]) -> None:
        """Goes to disk without a look at what is there, once something is."""
        column, unsaved = self._columns[state], self._unsaved[state]
        is_direct = any(one.is_on_disk for one in self._columns)
        batch = self.store.batch() if is_direct else None
        for key, data, value in zip(keys, self._places.of_all(keys), values, strict=True):
            entry = self.entries.get(key)
            if entry is None:
                entry = [key, *self._blank, data]
                if batch is None:
                    self.entries[key] = entry
                    self.held_bytes += self._entry_bytes
            entry[column.value], entry[column.mark] = value, STORED
            if batch is None or key in self.entries:
                unsaved[key] = entry
            else:
                column.save(entry, batch)
        if batch is not None:
            self.store.write(batch)
            column.is_on_disk = True
        self._bound.make_room()

    def new_list(self, entry: Entry, state: int) -> Any:
        return self._columns[state].read(entry[-1], None)

    new_map = new_list

    def drop_if_empty(self, entry: Entry) -> None:
        """It goes when room is made: until then memory knows that there is nothing on disk."""

    def settle(self, state: int, changed: list[Entry], size_bytes: int) -> None:
        self._unsaved[state].update(zip(map(_first, changed), changed, strict=True))
        self._bound.told()
        self.held_bytes = max(self.held_bytes, len(self.entries) * self._entry_bytes)  # some came back by being written
        self.charge(0 if self._columns[state].is_small else size_bytes)

    def charge(self, size_bytes: int) -> None:
        """So much came into memory. What is there already is charged again when it is written: nobody knows its size."""
        self.held_bytes += size_bytes
        self._bound.make_room()

    def let_go(self, size_bytes: int) -> int:
        before = len(self.entries)
        wanted = -(-before * size_bytes // self.held_bytes) if self.held_bytes else 0
        marks = [column.mark for column in self._columns]
        gone: list[Entry] = []
        for entry in self.entries.values():
            if len(gone) >= wanted:
                break
            if not any(entry[mark] & WRITTEN for mark in marks):
                gone.append(entry)
        batch = self.store.batch()
        for column, unsaved in zip(self._columns, self._unsaved, strict=True):
            if unsaved:
                column.save_all([entry for entry in gone if unsaved.pop(entry[0], None) is not None], batch)
        self.store.write(batch)
        for entry in gone:
            del self.entries[entry[0]]
        freed = self.held_bytes * len(gone) // max(before, 1)
        self.held_bytes -= freed
        return freed

    def scan(self, state: int) -> Iterator[tuple[Any, Any]]:
        return self._scan(state, range(MAX_PARTS))

    def expect_slices(self, layout: KeyedLayout) -> None:
        """A part is a range on disk."""

    def scan_slice(self, state: int, part: Slice, layout: KeyedLayout) -> Iterator[tuple[Any, Any]]:
        return self._scan(state, part.bytes())

    def _scan(self, state: int, firsts: range) -> Iterator[tuple[Any, Any]]:
        """Each key that has a state and whose place begins with one of these bytes, with its value."""
        column = self._columns[state]
        if not column.is_on_disk:
            held = [entry for entry in self.entries.values() if entry[column.value] is not None]
            yield from ((entry[0], entry[column.value]) for entry in held if entry[-1][0] in firsts)
            return
        self.settle(state, self.written[state], 0)
        batch, unsaved = self.store.batch(), self._unsaved[state]
        due = [entry for entry in unsaved.values() if entry[-1][0] in firsts]
        column.save_all(due, batch)
        for entry in due:
            del unsaved[entry[0]]
        self.store.write(batch)
        for data, raw in self.store.scan(column.prefix, bytes(firsts[:1])):
            if data[0] not in firsts:
                return
            yield self._places.key_at(data), column.read(data, raw, is_passing=True)

    def clear(self, state: int) -> None:
        column = self._columns[state]
        for entry in self.entries.values():
            entry[column.value], entry[column.mark] = None, 0
        self.written[state] = []
        self._unsaved[state].clear()
        if column.is_on_disk:
            column.remove_all()
            column.is_on_disk = False


class _Column:
    """One state of all entries: a row for each key that has it, with the value."""

    def __init__(self, table: DiskTable, index: int, codec_type: pa.DataType, where: str) -> None:
        self._table, self._type, self._where = table, codec_type, where
        self._codec = value_codec(codec_type)
        self.value, self.mark = 1 + 2 * index, 2 + 2 * index
        self.prefix = table.prefix + _NUMBER.pack(index) + b"v"
        self.is_small = pa.types.is_primitive(codec_type)
        """Whether a value takes no more than what an entry is charged for anyway."""
        self.is_on_disk = False
        """Whether there may be more than what is in memory."""

    def take(self, entry: Entry, raw: bytes | None) -> int:
        """Let an entry have what was read for it; tells what to charge for it."""
        if raw is None:
            return 0
        entry[self.value], entry[self.mark] = self.read(entry[-1], raw), STORED
        return 0 if self.is_small else len(raw)

    def read(self, key: bytes, raw: bytes | None, *, is_passing: bool = False) -> Any:
        """The value out of a row; nothing of one that is passing is charged."""
        return self._codec.decode(raw or b"")

    def save_all(self, entries: list[Entry], batch: WriteBatch) -> None:
        """Hand over the rows of entries."""
        for entry in entries:
            self.save(entry, batch)
        self.is_on_disk = self.is_on_disk or bool(entries)

    def save(self, entry: Entry, batch: WriteBatch) -> None:
        """Hand over the row of an entry."""
        value, row = entry[self.value], self.prefix + entry[-1]
        if value is None:
            batch.delete(row)
            return
        try:
            batch.put(row, self._packed(value, batch))
        except (struct.error, OverflowError, UnicodeError) as error:
            raise RowError.value_does_not_fit(self._where, "value", value, self._type, str(error)) from None

    def _packed(self, value: Any, batch: WriteBatch) -> bytes:
        return self._codec.encode(value)

    def remove_all(self) -> None:
        """Remove all rows."""
        self._table.store.remove(self.prefix)


class _PartsColumn(_Column):
    """One state of lists or maps: the row of a key has the facts of its list or map, and each element has a row too."""

    def __init__(self, table: DiskTable, index: int, declaration: Any, where: str) -> None:
        self._entry = entry_codec(declaration.key_type) if isinstance(declaration, MapState) else None
        dtype = declaration.value_type if isinstance(declaration, MapState) else declaration.type
        super().__init__(table, index, dtype, where)
        self.is_small = False
        self._parts = table.prefix + _NUMBER.pack(index) + b"p"

    def read(self, key: bytes, raw: bytes | None, *, is_passing: bool = False) -> Any:
        prefix = self._parts + _NUMBER.pack(len(key)) + key + b"\0"
        home = Home(self._table.store, prefix, self._codec, _free if is_passing else self._table.charge)
        return DiskList(home, raw) if self._entry is None else DiskMap(home, self._entry, raw)

    def _packed(self, value: Any, batch: WriteBatch) -> bytes:
        packed: bytes = value.save(batch)
        return packed

    def remove_all(self) -> None:
        super().remove_all()
        self._table.store.remove(self._parts)


def _free(size_bytes: int) -> None:
    """Charge nothing."""


def _column(table: DiskTable, index: int, declaration: StateDeclaration, step: str) -> _Column:
    where = f"{step}, state {declaration.name!r}"
    if declaration.kind in ("list", "map"):
        return _PartsColumn(table, index, declaration, where)
    return _Column(table, index, declaration.columns()[0][1], where)
