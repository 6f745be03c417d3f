"""Working state on the local disk of a worker, for state that is larger than memory.

Entries are those of the memory backend, in a table that holds a bounded part of them: when what came into memory since
the last time is more than that, everything that is not on disk yet is written in one batch and the entries are let go,
but for those written since the last delta, which the next delta needs. Nothing on disk outlives the worker: a failed
attempt, a retry or a restart rebuilds from the changelog, so when things are written is a matter of speed alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.descriptors import MapState, StateDeclaration
from headwater.errors import RowError
from headwater.state.codec import key_codec, value_codec
from headwater.state.disk.parts import DiskList, DiskMap, Home
from headwater.state.disk.rocks import RocksStore
from headwater.state.disk.timers import DiskTimers
from headwater.state.disk.times import DiskTimes
from headwater.state.memory import STORED, Entry, KeyTable

if TYPE_CHECKING:
    from rocksdict import WriteBatch

HELD_BYTES = 64 << 20
"""About how much of a step's state one subtask holds in memory, besides what its epoch changes."""
_ENTRY_BYTES = 400
"""What Python takes for an entry of two small states: the list, the key and its bytes, the values, a dictionary's place."""
_NUMBER = struct.Struct(">I")
_first, _last = itemgetter(0), itemgetter(-1)


class DiskBackend:
    """Keeps the working state of a step in RocksDB, in a folder under `parent` that is its own."""

    def __init__(self, step: str, parent: Path | None) -> None:
        self._step, self._store = step, RocksStore(step, parent)
        self._prefixes = map(_NUMBER.pack, count())

    def table(self, declarations: Sequence[StateDeclaration], key: pa.DataType) -> KeyTable:
        return DiskTable(self._store, next(self._prefixes), declarations, key, step=self._step)

    def timers(self, key: pa.DataType) -> DiskTimers:
        return DiskTimers(self._store, next(self._prefixes), key)

    def times(self, declaration: StateDeclaration, key: pa.DataType) -> DiskTimes:
        entry = declaration.key_type if isinstance(declaration, MapState) else None
        return DiskTimes(self._store, next(self._prefixes), key, entry)

    def close(self) -> None:
        self._store.close()


class DiskTable(KeyTable):
    """The entries of a step, of which `entries` has those that are in memory. Each ends with its key as bytes."""

    is_sorted = True

    def __init__(
        self,
        store: RocksStore,
        prefix: bytes,
        declarations: Sequence[StateDeclaration],
        key: pa.DataType,
        *,
        step: str,
    ) -> None:
        super().__init__(len(declarations))
        self.store, self.prefix, self._codec = store, prefix, key_codec(key)
        self._columns = [_column(self, index, declaration, step) for index, declaration in enumerate(declarations)]
        self._unsaved: list[dict[Any, Entry]] = [{} for _ in declarations]
        """For each state, the entries whose value is not on disk as it was at the last delta."""
        self._is_on_disk = False
        """Whether there may be more than what `entries` has."""
        self._charged = 0

    def entry(self, key: Any) -> Entry:
        found = self.entries.get(key)
        return self._load(key) if found is None else found

    def _load(self, key: Any) -> Entry:
        data = self._codec.encode(key)
        entry = [key, *self._blank, data]
        size = _ENTRY_BYTES
        if self._is_on_disk:
            rows = self.store.get_all([column.prefix + data for column in self._columns])
            for column, raw in zip(self._columns, rows, strict=True):
                if raw is not None:
                    entry[column.value], entry[column.mark] = column.read(data, raw), STORED
                    size += len(raw)
        self.entries[key] = entry
        self.charge(size)
        return entry

    def new_list(self, entry: Entry, state: int) -> Any:
        return self._columns[state].read(entry[-1], None)

    new_map = new_list

    def drop_if_empty(self, entry: Entry) -> None:
        """It goes when room is made: until then memory knows that there is nothing on disk."""

    def settle(self, state: int, changed: list[Entry], size_bytes: int) -> None:
        self._unsaved[state].update(zip(map(_first, changed), changed, strict=True))
        self.charge(size_bytes)

    def charge(self, size_bytes: int) -> None:
        """So much came into memory. What is there already is charged again when it is written: nobody knows its size."""
        self._charged += size_bytes
        if self._charged > HELD_BYTES:
            self._make_room()

    def _make_room(self) -> None:
        self._save()
        self.entries.clear()
        for written in self.written:
            self.entries.update(zip(map(_first, written), written, strict=True))
        self._charged = 0

    def _save(self) -> None:
        batch = self.store.batch()
        for column, unsaved in zip(self._columns, self._unsaved, strict=True):
            for entry in unsaved.values():
                column.save(entry, batch)
            unsaved.clear()
        self.store.write(batch)
        self._is_on_disk = True

    def scan(self, state: int) -> Iterator[tuple[Any, Any]]:
        column = self._columns[state]
        if not self._is_on_disk:
            held = [entry for entry in self.entries.values() if entry[column.value] is not None]
            yield from ((entry[0], entry[column.value]) for entry in sorted(held, key=_last))
            return
        self.settle(state, self.written[state], 0)
        self._save()
        for data, raw in self.store.scan(column.prefix):
            yield self._codec.decode(data), column.read(data, raw, is_passing=True)

    def clear(self, state: int) -> None:
        column = self._columns[state]
        for entry in self.entries.values():
            entry[column.value], entry[column.mark] = None, 0
        self.written[state] = []
        self._unsaved[state].clear()
        if self._is_on_disk:
            column.remove_all()


class _Column:
    """One state of all entries: a row for each key that has it, with the value."""

    def __init__(self, table: DiskTable, index: int, codec_type: pa.DataType, where: str) -> None:
        self._table, self._type, self._where = table, codec_type, where
        self._codec = value_codec(codec_type)
        self.value, self.mark = 1 + 2 * index, 2 + 2 * index
        self.prefix = table.prefix + _NUMBER.pack(index) + b"v"

    def read(self, key: bytes, raw: bytes | None, *, is_passing: bool = False) -> Any:
        """The value out of a row; nothing of one that is passing is charged."""
        return self._codec.decode(raw or b"")

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
        self._entry = value_codec(declaration.key_type) if isinstance(declaration, MapState) else None
        dtype = declaration.value_type if isinstance(declaration, MapState) else declaration.type
        super().__init__(table, index, dtype, where)
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
