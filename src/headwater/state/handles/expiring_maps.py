"""The handle of map state with a ttl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from headwater.state.handles.expiring import ExpiringSlot, Timed
from headwater.state.handles.maps import MapHandle, one_of_equals
from headwater.state.memory import Entry
from headwater.state.table import CLEAR, PUT, REMOVE


class ExpiringMapHandle(ExpiringSlot, MapHandle):
    """Map state whose entries expire one by one. The items of its index are pairs of a key and a map entry."""

    def get(self, entry: Any, default: Any = None) -> Any:
        kept: Timed | None = self._read(self._as_kept(entry))
        if kept is None:
            return default
        return self._convert(kept[0]) if self._is_mutable else kept[0]

    def _read(self, entry: Any) -> Timed | None:
        """What is kept of an entry, which was read then."""
        row = self._cursor.entry
        kept: Timed | None = None if row[self._value] is None else row[self._value].get(entry)
        if kept is not None and self._ttl.counts_reads and kept[1] != self._now_ms:
            self._keep(row, entry, kept[0])
        return kept

    def _keep(self, row: Entry, entry: Any, value: Any) -> None:
        """Have a value in a map, written now."""
        self._note(row)
        kept, put = self._map_of(row), self._put[row[0]]
        if entry not in kept:
            put.pop(entry, None)
            self.elements += 1
            self._times.add(self._now_ms, (row[0], entry))
            if self._reading:
                self._copy_what_is_left()
        kept[entry] = (value, self._now_ms)
        put[entry] = None

    def put(self, entry: Any, value: Any) -> None:
        if value is None:
            self.remove(entry)
        else:
            self._keep(self._cursor.entry, self._as_kept(entry), self._converted(self._convert, value))

    def contains(self, entry: Any) -> bool:
        return self._read(self._as_kept(entry)) is not None

    def keys(self) -> list[Any]:
        return [entry for entry, _ in self._read_all()]

    def __iter__(self) -> Iterator[Any]:
        entries = super().__iter__()
        return self._renewed(self._cursor.entry, entries) if self._ttl.counts_reads else entries

    def _renewed(self, row: Entry, entries: Iterator[Any]) -> Iterator[Any]:
        """Map entries as they are given, which are read then."""
        for entry in entries:
            kept: Timed | None = None if row[self._value] is None else row[self._value].get(entry)
            if kept is not None and kept[1] != self._now_ms:
                self._keep(row, entry, kept[0])
            yield entry

    def items(self) -> list[tuple[Any, Any]]:
        timed = self._read_all()
        return [(entry, self._convert(kept[0]) if self._is_mutable else kept[0]) for entry, kept in timed]

    def _read_all(self) -> list[tuple[Any, Timed]]:
        """What is kept of all entries, which were read then."""
        row = self._cursor.entry
        found = [] if row[self._value] is None else list(row[self._value].items())
        if self._ttl.counts_reads:
            for entry, kept in found:
                if kept[1] != self._now_ms:
                    self._keep(row, entry, kept[0])
        return found

    def _remove_from(self, row: Entry, entry: Any) -> None:
        self._dead += 1
        super()._remove_from(row, entry)

    def clear(self) -> None:
        self._dead += len(self._cursor.entry[self._value] or ())
        super().clear()

    def _in_order(self, items: Iterable[Any]) -> Sequence[Any]:
        if self._has_floats:
            items = [(key, one_of_equals(entry)) for key, entry in items]
        return self._layout.sorted_entries(list(dict.fromkeys(items)))

    def _set_time(self, item: Any) -> None:
        key, entry = item
        row = self._table.entry(key)
        kept: Timed | None = None if row[self._value] is None else row[self._value].get(entry)
        if kept is not None:
            self._times.add(self._now_ms if kept[1] is None else kept[1], item)
            if kept[1] is None:
                self._keep(row, entry, kept[0])

    def _remove_older(self, until_ms: int, items: Sequence[Any]) -> int:
        removed = 0
        self._table.fetch([key for key, _ in items])
        for item in items:
            key, entry = item
            row = self._table.entry(key)
            kept: Timed | None = None if row[self._value] is None else row[self._value].get(entry)
            if kept is None:
                self._dead -= 1
            elif kept[1] is None or kept[1] > until_ms:
                self._times.add(kept[1], item)
            else:
                super()._remove_from(row, entry)
                removed += 1
        return removed

    def _name_all(self) -> None:
        for key, kept in self._table.scan(self._index):
            for entry, (_, time_ms) in kept.items():
                self._times.add(time_ms, (key, entry))

    def _changes_of(self, written: list[Entry]) -> pa.Table:
        rows: list[tuple[Any, ...]] = [(CLEAR, key, None, None, None) for key in self._replaced]
        rows += [(REMOVE, key, entry, None, None) for key, entry in self._removed]
        for row in written:
            rows += [(PUT, row[0], entry, *row[self._value][entry]) for entry in self._put[row[0]]]
        ops, keys, *columns = zip(*rows, strict=True)
        return self._layout.table(list(ops), keys, *columns)

    def _rows(self, held: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, ...]]:
        for key, kept in held:
            for entry, (value, time_ms) in kept.items():
                yield key, entry, value, time_ms

    def _apply(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for op, key, told, value, time_ms in rows:
            entry = one_of_equals(told) if self._has_floats and told is not None else told
            row = self._take_over(key)
            kept = row[self._value]
            if op == PUT:
                kept = self._map_of(row)
                if entry not in kept:
                    self._times.add(time_ms, (key, entry))
                self._set_in(kept, entry, (value, time_ms))
            elif kept is None:
                continue
            elif op == REMOVE:
                self._dead += 1
                self._pop_from(kept, entry)
            else:
                self._dead += len(kept)
                self._remove_map(row)
