"""One state's place in the entries of its step: what all kinds of state share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from headwater.data.rows import decode
from headwater.errors import StateError
from headwater.state.memory import STORED, WRITTEN, Cursor, Entry, KeyTable
from headwater.state.slices import Slice
from headwater.state.spread import Spread
from headwater.state.table import KeyedLayout, chunks_of, sorted_by_key


class Slot:
    """The table behind a state. Those that extend it say what its rows are and what functions can do with it."""

    cut_since = 1

    def __init__(self, table: KeyTable, index: int, cursor: Cursor, layout: KeyedLayout) -> None:
        self._table, self._cursor, self._layout = table, cursor, layout
        self._index, self._value, self._mark = index, 1 + 2 * index, 2 + 2 * index
        self._keys = 0

    @property
    def spread(self) -> Spread:
        return self._layout.spread

    def _mark_written(self, entry: Entry) -> None:
        entry[self._mark] |= WRITTEN
        self._table.written[self._index].append(entry)
        self._table.entries[entry[0]] = entry

    def changes(self) -> pa.Table | None:
        written = self._take_written()
        changes = self._changes_of(written) if written else None
        self._settle(written, 0 if changes is None else changes.nbytes)
        return changes

    def forget_changes(self) -> None:
        self._settle(self._take_written(), 0)

    def _changes_of(self, written: list[Entry]) -> pa.Table:
        """What changed in entries, at least one, as a table."""
        raise NotImplementedError

    def _settle(self, written: list[Entry], size_bytes: int) -> None:
        """What changed is told."""
        self._table.settle(self._index, written, size_bytes)

    def _take_written(self) -> list[Entry]:
        """The entries written since the last call, without those that came and went in between."""
        written = self._table.written[self._index]
        self._table.written[self._index] = []
        kept, new = [], []
        for entry in written:
            if entry[self._value] is not None:
                if not entry[self._mark] & STORED:
                    new.append(entry[0])
                entry[self._mark] = STORED
                kept.append(entry)
            else:
                if entry[self._mark] & STORED:
                    self._keys -= 1
                    kept.append(entry)
                entry[self._mark] = 0
                self._table.drop_if_empty(entry)
        self._keys += len(new)
        self._table.came(new, self._layout)
        return kept

    def entries_by_key(self) -> Iterator[Entry]:
        """The entries that have this state, in an order that does not depend on how the table came to be."""
        keys = self._layout.sorted_keys(key for key, _ in self._table.scan(self._index))
        return map(self._table.entry, keys)

    def dump(self) -> pa.Table:
        return sorted_by_key(self._layout.puts(self._rows(self._table.scan(self._index))))

    def dump_slice(self, part: Slice) -> pa.Table:
        held = self._table.scan_slice(self._index, part, self._layout)
        return sorted_by_key(self._layout.puts(self._rows(held)))

    def load(self, dumped: pa.Table) -> None:
        self._table.expect_slices(self._layout)
        self.apply(dumped)

    def _rows(self, held: Iterable[tuple[Any, Any]]) -> Iterable[tuple[Any, ...]]:
        """The rows of a dump, of keys and what they have."""
        return held

    def apply(self, changes: pa.Table) -> None:
        for chunk in chunks_of(changes):
            columns = [decode(column) for column in chunk.columns]
            self._table.fetch(columns[1])
            self._apply(zip(*columns, strict=True))
            self._settle(self._take_written(), chunk.nbytes)

    def _apply(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Make changes of another copy here: rows of the operation, the key, and the columns of the state."""
        raise NotImplementedError

    def _take_over(self, key: Any) -> Entry:
        """The entry of a key that a change is to be applied to."""
        entry = self._table.entries.get(key) or self._table.entry(key)
        if not entry[self._mark] & WRITTEN:
            self._mark_written(entry)
        return entry

    def __len__(self) -> int:
        """The number of keys that have this state, at the last delta."""
        return self._keys

    def clear_all(self) -> None:
        """Forget every value of this state."""
        self._table.clear(self._index)
        self._keys = 0

    def _converted(self, convert: Callable[[Any], Any], value: Any) -> Any:
        try:
            return convert(value)
        except (TypeError, ValueError, OverflowError, ArithmeticError) as error:
            layout = self._layout
            raise StateError.value_does_not_fit(layout.step, layout.name, self._cursor.key, value, str(error)) from None
