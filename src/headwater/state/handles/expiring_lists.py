"""The handle of list state with a ttl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from headwater.state.handles.expiring import ExpiringSlot
from headwater.state.handles.lists import ListHandle
from headwater.state.memory import Entry
from headwater.state.table import CLEAR, PUT, REMOVE


class ExpiringListHandle(ExpiringSlot, ListHandle):
    """List state whose elements expire one by one. An element is never older than those in front of it."""

    def get(self) -> list[Any]:
        kept = self._read()
        timed = [] if kept is None else kept[:]
        return [self._convert(value) for value, _ in timed] if self._is_mutable else [value for value, _ in timed]

    def _at(self, place: int) -> Any:
        kept = self._read()
        if kept is None:
            return None
        ((value, _),) = kept[place : place + 1]
        return self._convert(value) if self._is_mutable else value

    def _read(self) -> Any:
        """What is kept of the current key, all of which was read then if that counts: an element cannot be younger alone."""
        entry = self._cursor.entry
        if entry[self._value] is not None and self._ttl.counts_reads:
            ((_, time_ms),) = entry[self._value][:1]
            if time_ms != self._now_ms:
                timed = [(value, self._now_ms) for value, _ in entry[self._value]]
                self._clear(entry)
                self._append(entry, timed)
        return entry[self._value]

    def add_all(self, values: Iterable[Any]) -> None:
        good = [(self._converted(self._convert, value), self._now_ms) for value in values]
        if not good:
            return
        entry = self._cursor.entry
        kept = entry[self._value]
        if kept is None:
            self._times.add(self._now_ms, entry[0])
        self._note(entry, 0 if kept is None else len(kept))
        self._append(entry, good)

    def clear(self) -> None:
        if self._cursor.entry[self._value] is not None:
            self._dead += 1
            self._clear(self._cursor.entry)

    def _set_time(self, item: Any) -> None:
        entry = self._table.entry(item)
        if entry[self._value] is None:
            return
        timed = [(value, self._now_ms if time_ms is None else time_ms) for value, time_ms in entry[self._value]]
        self._times.add(timed[0][1], item)
        self._clear(entry)
        self._append(entry, timed)

    def _remove_older(self, until_ms: int, items: Sequence[Any]) -> int:
        removed = 0
        for key in self._table.fetch(items):
            entry = self._table.entry(key)
            kept = entry[self._value]
            if kept is None:
                self._dead -= 1
                continue
            count = 0
            for _, time_ms in kept:
                if time_ms is None or time_ms > until_ms:
                    self._times.add(time_ms, key)
                    break
                count += 1
            removed += count
            if count == len(kept):
                self._clear(entry)
            elif count:
                self._drop(entry, count)
        return removed

    def _name_all(self) -> None:
        for key, kept in self._table.scan(self._index):
            self._times.add(next(iter(kept))[1], key)

    def _changes_of(self, written: list[Entry]) -> pa.Table:
        rows: list[tuple[Any, ...]] = [(CLEAR, key, None, None, None) for key in self._replaced]
        rows += [(REMOVE, key, count, None, None) for key, count in self._dropped.items()]
        for entry in written:
            start = self._stored[entry[0]]
            for place, (value, time_ms) in enumerate((entry[self._value] or [])[start:], start):
                rows.append((PUT, entry[0], place, value, time_ms))
        ops, keys, *columns = zip(*rows, strict=True)
        return self._layout.table(list(ops), keys, *columns)

    def _rows(self, held: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, ...]]:
        for key, kept in held:
            for place, (value, time_ms) in enumerate(kept):
                yield key, place, value, time_ms

    def _apply(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for op, key, place, value, time_ms in rows:
            entry = self._take_over(key)
            if op == PUT:
                if entry[self._value] is None:
                    self._times.add(time_ms, key)
                self._append(entry, [(value, time_ms)])
            elif op == REMOVE:
                self._cut(entry, place)
            elif entry[self._value] is not None:
                self._dead += 1
                self._remove(entry)
