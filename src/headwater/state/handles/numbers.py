"""The handle of value state whose values are plain numbers, in a packed table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from headwater.data.rows import decode
from headwater.descriptors import ValueState
from headwater.state.handles.values import ValueHandle
from headwater.state.memory import Cursor, Entry
from headwater.state.packed import HELD, PRESENT, TOLD, WRITTEN, PackedTable, Places
from headwater.state.slices import Slice
from headwater.state.table import PUT, REMOVE, KeyedLayout, chunks_of, sorted_by_key


class NumberHandle(ValueHandle):
    """Value state of numbers: what the cursor points at is a place in columns."""

    _table: PackedTable

    def __init__(
        self, declaration: ValueState[Any], table: PackedTable, index: int, cursor: Cursor, layout: KeyedLayout
    ) -> None:
        super().__init__(declaration, table, index, cursor, layout)
        self._values, self._marks = table.values[index], table.marks[index]
        cursor.keys = table.keys

    def get(self) -> Any:
        place = self._cursor.entry
        return self._values[place] if self._marks[place] >= PRESENT else self._default

    def set(self, value: Any) -> None:
        if type(value) is not self._exact:
            if value is None:
                self.clear()
                return
            value = self._converted(self._convert, value)
        place = self._cursor.entry
        try:
            self._values[place] = value
        except OverflowError:
            self._converted(self._convert, value)
            raise
        if self._marks[place] < WRITTEN:
            self._table.write(self._index, place)
            self._marks[place] |= PRESENT

    def clear(self) -> None:
        place = self._cursor.entry
        if self._marks[place] >= PRESENT:
            self._table.write(self._index, place)
            self._marks[place] &= ~PRESENT

    def _take_written(self) -> list[Entry]:
        written, self._table.written[self._index] = self._table.written[self._index], []
        marks, kept = self._marks, []
        for place in written:
            mark = marks[place]
            if mark >= PRESENT:
                self._keys += not mark & HELD
                marks[place] = TOLD
                kept.append(place)
                continue
            if mark & HELD:
                self._keys -= 1
                kept.append(place)
            self._table.forget(self._index, place)
        return kept

    def _changes_of(self, written: list[Entry]) -> pa.Table:
        places = np.array(written, np.int64)
        gone = np.array([self._marks[place] < PRESENT for place in written], np.bool_)
        return self._rows_of(places, gone)

    def dump(self) -> pa.Table:
        return self._with_rest(self._rows_of(self._table.places(self._index)))

    def dump_slice(self, part: Slice) -> pa.Table:
        return self._with_rest(self._rows_of(self._table.places_in(self._index, part, self._layout)), part)

    def _with_rest(self, rows: pa.Table, part: Slice | None = None) -> pa.Table:
        """Rows of places, and those of what is not at places, by key."""
        rest = [
            pa.table([pa.array(np.full(len(keys), PUT, np.int8)), keys, values], schema=self._layout.schema)
            for keys, values in self._table.rest(self._index, part)
        ]
        return sorted_by_key(pa.concat_tables([rows, *rest]))

    def _rows_of(self, places: Places, gone: Any = None) -> pa.Table:
        """Places as rows of a change table: puts, and removals of those that are gone."""
        keys = list(map(self._table.keys.__getitem__, places.tolist()))
        ops = np.full(len(places), PUT, np.int8) if gone is None else np.where(gone, REMOVE, PUT).astype(np.int8)
        values = pa.array(self._table.numbers(self._index, places), mask=gone)
        return self._layout.of_column(pa.array(ops), keys, values)

    def load(self, dumped: pa.Table) -> None:
        self.apply(dumped)

    def apply(self, changes: pa.Table) -> None:
        for chunk in chunks_of(changes):
            keys = decode(chunk["key"])
            self._table.fetch(keys)
            puts = chunk.filter(chunk["value"].is_valid()) if chunk["value"].null_count else chunk
            if len(puts):
                places = self._table.places_of(keys if len(puts) == len(chunk) else decode(puts["key"]))
                self._keys += self._table.put(self._index, places, puts["value"].to_numpy())
            if len(puts) < len(chunk):
                self._remove(decode(chunk.filter(chunk["value"].is_null())["key"]))
            self._settle([], chunk.nbytes)

    def _remove(self, keys: list[Any]) -> None:
        for key in keys:
            place = self._table.entries.get(key)
            if place is not None and self._marks[place]:
                self._table.forget(self._index, place)
                self._keys -= 1
