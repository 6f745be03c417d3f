"""The handle of list state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from headwater.data.rows import converter, is_mutable
from headwater.descriptors import ListState
from headwater.state.handles.slot import Slot
from headwater.state.memory import WRITTEN, Cursor, Entry, KeyTable
from headwater.state.table import CLEAR, PUT, REMOVE, KeyedLayout


class ListHandle(Slot):
    """List state. The changelog has a row per element, so that appending writes what was appended.

    A removal there is of as many elements at the front as its index says.
    """

    def __init__(
        self, declaration: ListState[Any], table: KeyTable, index: int, cursor: Cursor, layout: KeyedLayout
    ) -> None:
        super().__init__(table, index, cursor, layout)
        self.elements = 0
        self._convert = converter(declaration.type)
        self._is_mutable = is_mutable(declaration.type)
        self._stored: dict[Any, int] = {}
        """For each key written in this epoch, how many of its elements the changelog already has."""
        self._replaced: dict[Any, None] = {}
        """The keys whose stored elements are void."""
        self._dropped: dict[Any, int] = {}
        """For each key, how many elements that the changelog has were dropped at the front in this epoch."""

    def get(self) -> list[Any]:
        kept = self._cursor.entry[self._value]
        values = [] if kept is None else kept[:]
        return [self._convert(v) for v in values] if self._is_mutable else values

    def first(self) -> Any:
        return self._at(0)

    def last(self) -> Any:
        return self._at(len(self._cursor.entry[self._value] or ()) - 1)

    def _at(self, place: int) -> Any:
        values = self._cursor.entry[self._value]
        if values is None:
            return None
        (value,) = values[place : place + 1]
        return self._convert(value) if self._is_mutable else value

    def drop_first(self, count: int) -> None:
        """Remove some elements at the front, but not all."""
        self._drop(self._cursor.entry, count)

    def add(self, value: Any) -> None:
        self.add_all((value,))

    def add_all(self, values: Iterable[Any]) -> None:
        good = [self._converted(self._convert, value) for value in values]
        if not good:
            return
        entry = self._cursor.entry
        kept = entry[self._value]
        self._note(entry, 0 if kept is None else len(kept))
        self._append(entry, good)

    def update(self, values: Iterable[Any]) -> None:
        values = list(values)
        self.clear()
        self.add_all(values)

    def clear(self) -> None:
        entry = self._cursor.entry
        if entry[self._value] is not None:
            self._clear(entry)

    def _clear(self, entry: Entry) -> None:
        """Remove a list that is there."""
        self._note(entry, 0)
        self._remove(entry)
        self._stored[entry[0]] = 0
        self._replaced[entry[0]] = None
        self._dropped.pop(entry[0], None)

    def _drop(self, entry: Entry, count: int) -> None:
        key = entry[0]
        self._note(entry, len(entry[self._value]))
        told = min(count, self._stored[key])
        if told:
            self._dropped[key] = self._dropped.get(key, 0) + told
            self._stored[key] -= told
        self._cut(entry, count)

    def _cut(self, entry: Entry, count: int) -> None:
        """Have no more of the elements at the front."""
        del entry[self._value][:count]
        self.elements -= count

    def _append(self, entry: Entry, values: list[Any]) -> None:
        if entry[self._value] is None:
            entry[self._value] = self._table.new_list(entry, self._index)
        entry[self._value].extend(values)
        self.elements += len(values)

    def _remove(self, entry: Entry) -> None:
        if entry[self._value] is not None:
            self.elements -= len(entry[self._value])
            entry[self._value].clear()
            entry[self._value] = None

    def _note(self, entry: Entry, stored: int) -> None:
        if not entry[self._mark] & WRITTEN:
            self._mark_written(entry)
            self._stored[entry[0]] = stored

    def _changes_of(self, written: list[Entry]) -> pa.Table:
        keys: list[Any] = [*self._replaced, *self._dropped]
        void, dropped = len(self._replaced), len(self._dropped)
        indices: list[int | None] = [None] * void + list(self._dropped.values())
        values: list[Any] = [None] * len(keys)
        for entry in written:
            start = self._stored[entry[0]]
            tail = (entry[self._value] or [])[start:]
            keys.extend([entry[0]] * len(tail))
            indices.extend(range(start, start + len(tail)))
            values.extend(tail)
        ops = [CLEAR] * void + [REMOVE] * dropped + [PUT] * (len(keys) - void - dropped)
        return self._layout.table(ops, keys, indices, values)

    def _settle(self, written: list[Entry], size_bytes: int) -> None:
        super()._settle(written, size_bytes)
        self._stored, self._replaced, self._dropped = {}, {}, {}

    def _rows(self, held: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, ...]]:
        for key, values in held:
            for index, value in enumerate(values):
                yield key, index, value

    def _apply(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for op, key, place, value in rows:
            entry = self._take_over(key)
            if op == CLEAR:
                self._remove(entry)
            elif op == REMOVE:
                self._cut(entry, place)
            else:
                self._append(entry, [value])

    def clear_all(self) -> None:
        super().clear_all()
        self.elements = 0
        self._stored, self._replaced, self._dropped = {}, {}, {}
