"""The handle of map state."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from headwater.data.rows import converter, exact_type, is_mutable
from headwater.descriptors import MapState
from headwater.state.handles.slot import Slot
from headwater.state.memory import WRITTEN, Cursor, Entry, KeyTable
from headwater.state.table import CLEAR, PUT, REMOVE, KeyedLayout

_COPIED = 64
"""Of a map of so many entries the keys are copied to iterate over them, which takes less than to give them one by one."""
_NOTHING: Any = object()


class _Left:
    """What an iteration has not given yet."""

    __slots__ = ("entries",)

    def __init__(self, entries: Iterator[Any]) -> None:
        self.entries = entries


class MapHandle(Slot):
    """Map state. The changelog has a row per map entry, so that changing one writes one.

    Iteration is in the order of insertion, also on a rebuilt copy: an inserted map entry goes to the end of the map and
    of what is written alike.
    """

    def __init__(
        self, declaration: MapState[Any, Any], table: KeyTable, index: int, cursor: Cursor, layout: KeyedLayout
    ) -> None:
        super().__init__(table, index, cursor, layout)
        self.elements = 0
        self._exact_entry = exact_type(declaration.key_type)
        self._convert_entry = converter(declaration.key_type)
        self._has_floats = pa.types.is_floating(declaration.key_type)
        self._convert = converter(declaration.value_type)
        self._is_mutable = is_mutable(declaration.value_type)
        self._put: dict[Any, dict[Any, None]] = {}
        """For each key written in this epoch, its map entries that were put."""
        self._removed: dict[tuple[Any, Any], None] = {}
        self._replaced: dict[Any, None] = {}
        """The keys whose stored map entries are void."""
        self._reading: list[_Left] = []
        """What iterations that are under way have not given yet, but for those that have a copy of it."""
        self._first: Any = _NOTHING
        """What an iteration last gave as the first key."""

    def get(self, entry: Any, default: Any = None) -> Any:
        kept = self._cursor.entry[self._value]
        if kept is None or (value := kept.get(self._as_kept(entry))) is None:
            return default
        return self._convert(value) if self._is_mutable else value

    def put(self, entry: Any, value: Any) -> None:
        if value is None:
            self.remove(entry)
            return
        entry = self._as_kept(entry)
        value = self._converted(self._convert, value)
        row = self._cursor.entry
        self._note(row)
        kept = self._map_of(row)
        put = self._put[row[0]]
        if entry not in kept:
            put.pop(entry, None)
            self.elements += 1
            if self._reading:
                self._copy_what_is_left()
        kept[entry] = value
        put[entry] = None

    def put_all(self, entries: dict[Any, Any]) -> None:
        for entry, value in entries.items():
            self.put(entry, value)

    def remove(self, entry: Any) -> None:
        entry = self._as_kept(entry)
        row = self._cursor.entry
        kept = row[self._value]
        if kept is not None and entry in kept:
            self._remove_from(row, entry)

    def clear(self) -> None:
        row = self._cursor.entry
        if row[self._value] is not None:
            self._clear(row)

    def _remove_from(self, row: Entry, entry: Any) -> None:
        """Remove an entry that is in the map."""
        kept = row[self._value]
        if len(kept) == 1:
            self._clear(row)
            return
        self._note(row)
        if self._reading:
            self._copy_what_is_left()
        if entry == self._first and type(kept) is dict:
            kept = row[self._value] = OrderedDict(
                kept
            )  # a dictionary looks for its first key among all that went before
        del kept[entry]
        self.elements -= 1
        self._put[row[0]].pop(entry, None)
        self._removed[row[0], entry] = None

    def _clear(self, row: Entry) -> None:
        """Remove a map that is there."""
        self._note(row)
        if self._reading:
            self._copy_what_is_left()
        self._remove_map(row)
        self._put[row[0]] = {}
        self._replaced[row[0]] = None

    def _map_of(self, row: Entry) -> Any:
        if row[self._value] is None:
            row[self._value] = self._table.new_map(row, self._index)
        return row[self._value]

    def _remove_map(self, row: Entry) -> None:
        if row[self._value] is not None:
            self.elements -= len(row[self._value])
            row[self._value].clear()
            row[self._value] = None

    def _note(self, row: Entry) -> None:
        if not row[self._mark] & WRITTEN:
            self._mark_written(row)
            self._put[row[0]] = {}

    def _as_kept(self, entry: Any) -> Any:
        """The form in which `put` keeps an entry's key: a naive datetime as UTC, a struct as a row, one zero, one NaN."""
        if type(entry) is not self._exact_entry:
            entry = self._converted(self._convert_entry, entry)
        return one_of_equals(entry) if self._has_floats else entry

    def contains(self, entry: Any) -> bool:
        return self._as_kept(entry) in (self._cursor.entry[self._value] or ())

    def keys(self) -> list[Any]:
        kept = self._cursor.entry[self._value]
        return [] if kept is None else list(kept.keys())

    def values(self) -> list[Any]:
        return [value for _, value in self.items()]

    def items(self) -> list[tuple[Any, Any]]:
        kept = self._cursor.entry[self._value] or {}
        return [(e, self._convert(v)) for e, v in kept.items()] if self._is_mutable else list(kept.items())

    def is_empty(self) -> bool:
        return self._cursor.entry[self._value] is None

    def __iter__(self) -> Iterator[Any]:
        kept = self._cursor.entry[self._value]
        if kept is None or len(kept) <= _COPIED:
            return iter(MapHandle.keys(self))
        entries = self._lazily(_Left(iter(kept)))
        next(entries)
        return entries

    def _lazily(self, left: _Left) -> Iterator[Any]:
        """First nothing, from when on it hears of changes. Then the keys; what is left is copied before a change, once."""
        self._reading.append(left)
        try:
            yield None
            self._first = next(left.entries)
            yield self._first
            while (entry := next(left.entries, _NOTHING)) is not _NOTHING:
                yield entry
        finally:
            if left in self._reading:
                self._reading.remove(left)

    def _copy_what_is_left(self) -> None:
        for left in self._reading:
            left.entries = iter(list(left.entries))
        self._reading = []

    def __contains__(self, entry: Any) -> bool:
        return self.contains(entry)

    def _changes_of(self, written: list[Entry]) -> pa.Table:
        put = [(row[0], entry, row[self._value][entry]) for row in written for entry in self._put[row[0]]]
        replaced, removed = list(self._replaced), list(self._removed)
        return self._layout.table(
            [CLEAR] * len(replaced) + [REMOVE] * len(removed) + [PUT] * len(put),
            replaced + [key for key, _ in removed] + [key for key, _, _ in put],
            [None] * len(replaced) + [entry for _, entry in removed] + [entry for _, entry, _ in put],
            [None] * (len(replaced) + len(removed)) + [value for _, _, value in put],
        )

    def _settle(self, written: list[Entry], size_bytes: int) -> None:
        super()._settle(written, size_bytes)
        self._put, self._removed, self._replaced = {}, {}, {}

    def _rows(self, held: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, ...]]:
        for key, kept in held:
            for entry, value in kept.items():
                yield key, entry, value

    def _apply(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for op, key, told, value in rows:
            entry = one_of_equals(told) if self._has_floats and told is not None else told
            row = self._take_over(key)
            if op == CLEAR:
                self._remove_map(row)
            elif op == PUT:
                self._set_in(self._map_of(row), entry, value)
            elif row[self._value] is not None:
                self._pop_from(row[self._value], entry)

    def _set_in(self, kept: Any, entry: Any, value: Any) -> None:
        """Have an entry in a map, as another copy has it."""
        self.elements += entry not in kept
        kept[entry] = value

    def _pop_from(self, kept: Any, entry: Any) -> None:
        """Have no such entry in a map, as another copy has none."""
        self.elements -= entry in kept
        kept.pop(entry, None)

    def clear_all(self) -> None:
        super().clear_all()
        self.elements = 0
        self._put, self._removed, self._replaced = {}, {}, {}


def one_of_equals(number: float) -> float:
    """The one form of a floating point number under which a map finds it: zero has no sign, and there is one NaN."""
    return math.nan if math.isnan(number) else number + 0.0
