"""Working state in memory: the handles that functions hold, each a table of plain dictionaries.

All handles of a step share a cursor with the current key, so that a state call is a dictionary access and nothing else.
A table keeps three dictionaries: the entries, the keys written since the last delta, and the keys removed since. A key
that is inserted goes to the end of the entries and of the written keys alike, which keeps the order of a rebuilt copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from headwater.descriptors import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    StateDeclaration,
    ValueState,
)
from headwater.errors import StateError
from headwater.rows import converter, decode, exact_type
from headwater.state.table import CLEAR, PUT, REMOVE, KeyedLayout, StateTable


class Cursor:
    """The key whose state is reachable."""

    __slots__ = ("key",)

    key: Any


class _Values:
    """One value per key: the table behind value, reducing and aggregating state."""

    def __init__(self, dtype: pa.DataType, cursor: Cursor, layout: KeyedLayout) -> None:
        self._cursor = cursor
        self._layout = layout
        self._values: dict[Any, Any] = {}
        self._written: dict[Any, None] = {}
        self._removed: dict[Any, None] = {}
        self._exact = exact_type(dtype)
        self._convert = converter(dtype)
        self._is_mutable = pa.types.is_nested(dtype)

    def clear(self) -> None:
        key = self._cursor.key
        if key in self._values:
            del self._values[key]
            self._written.pop(key, None)
            self._removed[key] = None

    def _read(self) -> Any:
        value = self._values.get(self._cursor.key)
        return self._convert(value) if self._is_mutable and value is not None else value

    def _write(self, value: Any) -> None:
        if type(value) is not self._exact:
            value = _converted(self._convert, value, self._layout, self._cursor)
        key = self._cursor.key
        if key not in self._values:
            self._written.pop(key, None)
        self._values[key] = value
        self._written[key] = None

    def changes(self) -> pa.Table | None:
        if not self._written and not self._removed:
            return None
        removed, written = list(self._removed), list(self._written)
        table = self._layout.table(
            [REMOVE] * len(removed) + [PUT] * len(written),
            removed + written,
            [None] * len(removed) + [self._values[key] for key in written],
        )
        self._written, self._removed = {}, {}
        return table

    def dump(self) -> pa.Table:
        return self._layout.table([PUT] * len(self._values), list(self._values), list(self._values.values()))

    def apply(self, changes: pa.Table) -> None:
        ops, keys, values = (decode(changes[c]) for c in ("op", "key", "value"))
        if not any(ops):
            self._values.update(zip(keys, values, strict=True))
            return
        for op, key, value in zip(ops, keys, values, strict=True):
            if op == PUT:
                self._values[key] = value
            else:
                self._values.pop(key, None)

    def clear_all(self) -> None:
        self._values, self._written, self._removed = {}, {}, {}

    def __len__(self) -> int:
        return len(self._values)


class MemoryValue(_Values):
    """Value state."""

    def __init__(self, declaration: ValueState, cursor: Cursor, layout: KeyedLayout) -> None:
        super().__init__(declaration.type, cursor, layout)
        self._default = declaration.default

    def get(self) -> Any:
        value = self._values.get(self._cursor.key, self._default)
        return self._convert(value) if self._is_mutable and value is not None else value

    def set(self, value: Any) -> None:
        if value is None:
            self.clear()
            return
        if type(value) is not self._exact:
            value = _converted(self._convert, value, self._layout, self._cursor)
        key = self._cursor.key
        if key not in self._values:
            self._written.pop(key, None)
        self._values[key] = value
        self._written[key] = None


class MemoryReducing(_Values):
    """Reducing state."""

    def __init__(self, declaration: ReducingState, cursor: Cursor, layout: KeyedLayout) -> None:
        super().__init__(declaration.type, cursor, layout)
        self._reduce = declaration.reduce

    def get(self) -> Any:
        return self._read()

    def add(self, value: Any) -> None:
        kept = self._read()
        self._write(value if kept is None else self._reduce(kept, value))


class MemoryAggregating(_Values):
    """Aggregating state."""

    def __init__(self, declaration: AggregatingState, cursor: Cursor, layout: KeyedLayout) -> None:
        super().__init__(declaration.type, cursor, layout)
        self._aggregate = declaration.aggregate

    def get(self) -> Any:
        accumulator = self._read()
        return None if accumulator is None else self._aggregate.result(accumulator)

    def add(self, value: Any) -> None:
        accumulator = self._read()
        if accumulator is None:
            accumulator = self._aggregate.create()
        self._write(self._aggregate.add(accumulator, value))


class MemoryList:
    """List state: entries are (key, index), so that appending writes what was appended."""

    def __init__(self, declaration: ListState, cursor: Cursor, layout: KeyedLayout) -> None:
        self._cursor, self._layout = cursor, layout
        self._convert = converter(declaration.type)
        self._is_mutable = pa.types.is_nested(declaration.type)
        self._lists: dict[Any, list[Any]] = {}
        self._appended_from: dict[Any, int] = {}
        self._removed: dict[Any, None] = {}

    def get(self) -> list[Any]:
        values = self._lists.get(self._cursor.key, ())
        return [self._convert(v) for v in values] if self._is_mutable else list(values)

    def add(self, value: Any) -> None:
        self.add_all((value,))

    def add_all(self, values: Iterable[Any]) -> None:
        good = [_converted(self._convert, value, self._layout, self._cursor) for value in values]
        if not good:
            return
        key = self._cursor.key
        kept = self._lists.get(key)
        if kept is None:
            kept = self._lists[key] = []
            self._appended_from.pop(key, None)
        self._appended_from.setdefault(key, len(kept))
        kept.extend(good)

    def update(self, values: Iterable[Any]) -> None:
        values = list(values)
        self.clear()
        self.add_all(values)

    def clear(self) -> None:
        key = self._cursor.key
        if self._lists.pop(key, None) is not None:
            self._appended_from.pop(key, None)
            self._removed[key] = None

    def changes(self) -> pa.Table | None:
        if not self._appended_from and not self._removed:
            return None
        table = self._table(list(self._removed), self._appended_from)
        self._appended_from, self._removed = {}, {}
        return table

    def dump(self) -> pa.Table:
        return self._table([], dict.fromkeys(self._lists, 0))

    def _table(self, removed: list[Any], start_at: dict[Any, int]) -> pa.Table:
        keys, indices, values = list(removed), [None] * len(removed), [None] * len(removed)
        for key, start in start_at.items():
            tail = self._lists[key][start:]
            keys.extend([key] * len(tail))
            indices.extend(range(start, start + len(tail)))  # type: ignore[arg-type]
            values.extend(tail)
        ops = [CLEAR] * len(removed) + [PUT] * (len(keys) - len(removed))
        return self._layout.table(ops, keys, indices, values)

    def apply(self, changes: pa.Table) -> None:
        for op, key, value in zip(*(decode(changes[c]) for c in ("op", "key", "value")), strict=True):
            if op == CLEAR:
                self._lists.pop(key, None)
            else:
                self._lists.setdefault(key, []).append(value)

    def clear_all(self) -> None:
        self._lists, self._appended_from, self._removed = {}, {}, {}

    def __len__(self) -> int:
        return sum(map(len, self._lists.values()))


class MemoryMap:
    """Map state: entries are (key, entry), so that changing one entry writes that entry."""

    def __init__(self, declaration: MapState, cursor: Cursor, layout: KeyedLayout) -> None:
        self._cursor, self._layout = cursor, layout
        self._convert_entry = converter(declaration.key_type)
        self._convert = converter(declaration.value_type)
        self._is_mutable = pa.types.is_nested(declaration.value_type)
        self.clear_all()

    def clear_all(self) -> None:
        self._maps: dict[Any, dict[Any, Any]] = {}
        self._cleared: dict[Any, None] = {}
        self._removed: dict[tuple[Any, Any], None] = {}
        self._written: dict[Any, dict[Any, None]] = {}

    def get(self, entry: Any, default: Any = None) -> Any:
        kept = self._maps.get(self._cursor.key)
        if kept is None or (value := kept.get(entry)) is None:
            return default
        return self._convert(value) if self._is_mutable else value

    def put(self, entry: Any, value: Any) -> None:
        if value is None:
            self.remove(entry)
            return
        entry = _converted(self._convert_entry, entry, self._layout, self._cursor)
        value = _converted(self._convert, value, self._layout, self._cursor)
        key = self._cursor.key
        kept = self._maps.get(key)
        if kept is None:
            kept = self._maps[key] = {}
            self._written.pop(key, None)
        written = self._written.setdefault(key, {})
        if entry not in kept:
            written.pop(entry, None)
        kept[entry] = value
        written[entry] = None

    def put_all(self, entries: dict[Any, Any]) -> None:
        for entry, value in entries.items():
            self.put(entry, value)

    def remove(self, entry: Any) -> None:
        key = self._cursor.key
        kept = self._maps.get(key)
        if kept is None or entry not in kept:
            return
        del kept[entry]
        self._written.get(key, {}).pop(entry, None)
        self._removed[key, entry] = None
        if not kept:
            self.clear()

    def clear(self) -> None:
        key = self._cursor.key
        if self._maps.pop(key, None) is not None:
            self._written.pop(key, None)
            self._cleared[key] = None

    def contains(self, entry: Any) -> bool:
        return entry in self._maps.get(self._cursor.key, ())

    def keys(self) -> list[Any]:
        return list(self._maps.get(self._cursor.key, ()))

    def values(self) -> list[Any]:
        return [value for _, value in self.items()]

    def items(self) -> list[tuple[Any, Any]]:
        kept = self._maps.get(self._cursor.key, {})
        return [(e, self._convert(v)) for e, v in kept.items()] if self._is_mutable else list(kept.items())

    def is_empty(self) -> bool:
        return self._cursor.key not in self._maps

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def __contains__(self, entry: Any) -> bool:
        return self.contains(entry)

    def changes(self) -> pa.Table | None:
        if not self._cleared and not self._removed and not self._written:
            return None
        written = [(key, entry) for key, entries in self._written.items() for entry in entries]
        table = self._table(list(self._cleared), list(self._removed), written)
        self._cleared, self._removed, self._written = {}, {}, {}
        return table

    def dump(self) -> pa.Table:
        return self._table([], [], [(key, entry) for key, kept in self._maps.items() for entry in kept])

    def _table(self, cleared: list[Any], removed: list[tuple[Any, Any]], written: list[tuple[Any, Any]]) -> pa.Table:
        return self._layout.table(
            [CLEAR] * len(cleared) + [REMOVE] * len(removed) + [PUT] * len(written),
            cleared + [key for key, _ in removed + written],
            [None] * len(cleared) + [entry for _, entry in removed + written],
            [None] * (len(cleared) + len(removed)) + [self._maps[key][entry] for key, entry in written],
        )

    def apply(self, changes: pa.Table) -> None:
        columns = (decode(changes[c]) for c in ("op", "key", "entry", "value"))
        for op, key, entry, value in zip(*columns, strict=True):
            if op == PUT:
                self._maps.setdefault(key, {})[entry] = value
            elif op == CLEAR:
                self._maps.pop(key, None)
            elif key in self._maps:
                self._maps[key].pop(entry, None)
                if not self._maps[key]:
                    del self._maps[key]

    def __len__(self) -> int:
        return sum(map(len, self._maps.values()))


_TABLES: dict[str, Callable[[Any, Cursor, KeyedLayout], StateTable]] = {
    "value": MemoryValue,
    "list": MemoryList,
    "map": MemoryMap,
    "reducing": MemoryReducing,
    "aggregating": MemoryAggregating,
}


def open_table(declaration: StateDeclaration, step: str, key: pa.DataType, cursor: Cursor, groups: int) -> StateTable:
    """The working table, and handle, of a declared state."""
    layout = KeyedLayout(step, declaration.name, key, declaration.columns(), groups)
    return _TABLES[declaration.kind](declaration, cursor, layout)


def _converted(convert: Callable[[Any], Any], value: Any, layout: KeyedLayout, cursor: Cursor) -> Any:
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError, ArithmeticError) as error:
        raise StateError.value_does_not_fit(layout.step, layout.name, cursor.key, value, str(error)) from None
