"""The handles of states that hold one value per key: value, reducing and aggregating state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.data.rows import converter, decode, exact_type
from headwater.descriptors import AggregatingState, ReducingState, ValueState
from headwater.state.handles.slot import Slot
from headwater.state.memory import WRITTEN, Cursor, Entry, KeyTable
from headwater.state.table import PUT, REMOVE, KeyedLayout, chunks_of

_PLAIN = ["op", "key", "value"]
"""The columns of changes of values that are kept as they are."""


class ValueHandle(Slot):
    """Value state; also what reducing and aggregating state are made of."""

    def __init__(
        self,
        declaration: ValueState[Any] | ReducingState[Any] | AggregatingState[Any, Any],
        table: KeyTable,
        index: int,
        cursor: Cursor,
        layout: KeyedLayout,
    ) -> None:
        super().__init__(table, index, cursor, layout)
        self._exact = exact_type(declaration.type)
        self._convert = converter(declaration.type)
        self._default = getattr(declaration, "default", None)

    def get(self) -> Any:
        value = self._cursor.entry[self._value]
        return self._default if value is None else value

    def set(self, value: Any) -> None:
        if type(value) is not self._exact and value is not None:
            value = self._converted(self._convert, value)
        entry = self._cursor.entry
        entry[self._value] = value
        if not entry[self._mark] & WRITTEN:
            self._mark_written(entry)

    def clear(self) -> None:
        if self._cursor.entry[self._value] is not None:
            self.set(None)

    def _changes_of(self, written: list[Entry]) -> pa.Table:
        values = [entry[self._value] for entry in written]
        return self._layout.table([REMOVE if v is None else PUT for v in values], [e[0] for e in written], values)

    def apply(self, changes: pa.Table) -> None:
        if not self._keys:
            self._put_all(changes)  # the first values: each is put once
        elif self._table.HOLDS_ALL and changes.column_names == _PLAIN and not pc.max(changes["op"]).as_py():
            for chunk in chunks_of(changes):
                keys, values = decode(chunk["key"]), decode(chunk["value"])
                self._keys += self._table.overwrite(self._index, keys, values)
        else:
            super().apply(changes)

    def load(self, dumped: pa.Table) -> None:
        self._table.expect_slices(self._layout)
        self._put_all(dumped)

    def _put_all(self, dumped: pa.Table) -> None:
        """Take over what is put once each, to keys that have no value."""
        for chunk in chunks_of(dumped):
            keys, *columns = map(decode, chunk.columns[1:])
            self._table.load(self._index, keys, self._loaded(keys, *columns))
        self._keys += len(dumped)

    def _loaded(self, keys: Sequence[Any], values: Sequence[Any]) -> Sequence[Any]:
        """What entries are to have for the columns of a change table."""
        return values

    def _apply(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for _, key, value in rows:
            self._take_over(key)[self._value] = value


class CopiedValueHandle(ValueHandle):
    """Value state whose values can be changed in place: they are copied in and out, so that nothing changes here."""

    def get(self) -> Any:
        value = super().get()
        return None if value is None else self._convert(value)


class ReducingHandle(CopiedValueHandle):
    """Reducing state."""

    def __init__(
        self, declaration: ReducingState[Any], table: KeyTable, index: int, cursor: Cursor, layout: KeyedLayout
    ) -> None:
        super().__init__(declaration, table, index, cursor, layout)
        self._reduce = declaration.reduce

    def add(self, value: Any) -> None:
        kept = self.get()
        self.set(value if kept is None else self._reduce(kept, value))


class AggregatingHandle(CopiedValueHandle):
    """Aggregating state: the accumulator is stored, the result is given."""

    def __init__(
        self, declaration: AggregatingState[Any, Any], table: KeyTable, index: int, cursor: Cursor, layout: KeyedLayout
    ) -> None:
        super().__init__(declaration, table, index, cursor, layout)
        self._aggregate = declaration.aggregate

    def get(self) -> Any:
        accumulator = super().get()
        return None if accumulator is None else self._aggregate.result(accumulator)

    def add(self, value: Any) -> None:
        accumulator = super().get()
        if accumulator is None:
            accumulator = self._aggregate.create()
        self.set(self._aggregate.add(accumulator, value))
