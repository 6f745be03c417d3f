"""Working state in memory: the handles that functions hold, over one entry per key.

All states of a step share a table of entries, so that a record costs one dictionary look-up however many states its
function has. An entry is a list: the key, then for each state its value (None when there is none) and a mark that
tells whether it is written since the last delta and whether the changelog holds it. A function's handles reach the
current key's entry through the cursor.
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
from headwater.rows import converter, decode, exact_type, is_mutable
from headwater.state.spread import BY_KEY, Spread
from headwater.state.table import CLEAR, PUT, REMOVE, KeyedLayout, StateTable, sorted_by_key

Entry = list[Any]
WRITTEN, STORED = 1, 2
"""The bits of a mark."""


class Cursor:
    """Points at the key whose state is reachable; at first there is none."""

    __slots__ = ("entry",)

    entry: Entry
    """The current key's entry; the key is its first element."""

    def __init__(self) -> None:
        self.leave()

    def leave(self) -> None:
        """Point at no key."""
        self.entry = _NoEntry()


class _NoEntry(list[Any]):
    """Stands where a key's entry will be."""

    def __getitem__(self, place: Any) -> Any:
        raise StateError.no_key()

    def __setitem__(self, place: Any, value: Any) -> None:
        raise StateError.no_key()


class KeyTable:
    """The entries of a step by key. An entry is in the table from its first write until all its states are gone."""

    def __init__(self, states: int) -> None:
        self.entries: dict[Any, Entry] = {}
        self._blank: Entry = [None, 0] * states

    def entry(self, key: Any) -> Entry:
        """The key's entry; a new one is not in the table before it is written to."""
        return self.entries.get(key) or [key, *self._blank]

    def drop_if_empty(self, entry: Entry) -> None:
        """Take an entry without state out of the table."""
        if all(value is None for value in entry[1::2]):
            self.entries.pop(entry[0], None)


class _Slot:
    """One state's place in the entries: the table behind every kind of state."""

    def __init__(self, table: KeyTable, index: int, cursor: Cursor, layout: KeyedLayout) -> None:
        self._table, self._cursor, self._layout = table, cursor, layout
        self._value, self._mark = 1 + 2 * index, 2 + 2 * index
        self._written: list[Entry] = []
        self._keys = 0

    @property
    def spread(self) -> Spread:
        return self._layout.spread

    def _mark_written(self, entry: Entry) -> None:
        entry[self._mark] |= WRITTEN
        self._written.append(entry)
        self._table.entries[entry[0]] = entry

    def _take_written(self) -> list[Entry]:
        """The entries written since the last call, without those that came and went in between."""
        written, self._written = self._written, []
        kept = []
        for entry in written:
            if entry[self._value] is not None:
                self._keys += not entry[self._mark] & STORED
                entry[self._mark] = STORED
                kept.append(entry)
            else:
                if entry[self._mark] & STORED:
                    self._keys -= 1
                    kept.append(entry)
                entry[self._mark] = 0
                self._table.drop_if_empty(entry)
        return kept

    def _held(self) -> list[Entry]:
        return [entry for entry in self._table.entries.values() if entry[self._value] is not None]

    def entries_by_key(self) -> list[Entry]:
        """The entries that have this state, in an order that does not depend on how the table came to be."""
        held = self._held()
        return [held[place] for place in self._layout.order([entry[0] for entry in held])]

    def _load(self, key: Any, value: Any) -> None:
        """Take over a stored value; None removes it."""
        entry = self._table.entry(key)
        self._keys += (value is not None) - (entry[self._value] is not None)
        entry[self._value], entry[self._mark] = value, 0 if value is None else STORED
        if value is None:
            self._table.drop_if_empty(entry)
        else:
            self._table.entries[key] = entry

    def __len__(self) -> int:
        """The number of keys that have this state, at the last delta."""
        return self._keys

    def clear_all(self) -> None:
        """Forget every value of this state."""
        for entry in list(self._table.entries.values()):
            entry[self._value], entry[self._mark] = None, 0
            self._table.drop_if_empty(entry)
        self._written, self._keys = [], 0

    def _converted(self, convert: Callable[[Any], Any], value: Any) -> Any:
        try:
            return convert(value)
        except (TypeError, ValueError, OverflowError, ArithmeticError) as error:
            layout = self._layout
            raise StateError.value_does_not_fit(
                layout.step, layout.name, self._cursor.entry[0], value, str(error)
            ) from None


class MemoryValue(_Slot):
    """Value state; also what reducing and aggregating state are made of."""

    def __init__(
        self,
        declaration: ValueState | ReducingState | AggregatingState,
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

    def forget_changes(self) -> None:
        self._take_written()

    def changes(self) -> pa.Table | None:
        written = self._take_written()
        if not written:
            return None
        values = [entry[self._value] for entry in written]
        return self._layout.table([REMOVE if v is None else PUT for v in values], [e[0] for e in written], values)

    def dump(self) -> pa.Table:
        held = self._held()
        table = self._layout.table([PUT] * len(held), [e[0] for e in held], [e[self._value] for e in held])
        return sorted_by_key(table)

    def apply(self, changes: pa.Table) -> None:
        entries, place, mark = self._table.entries, self._value, self._mark
        added = 0
        for key, value in zip(decode(changes["key"]), decode(changes["value"]), strict=True):
            entry = entries.get(key)
            if entry is not None and value is not None:  # most of what a copy that is behind has to take over
                added += entry[place] is None
                entry[place], entry[mark] = value, STORED
            else:
                self._load(key, value)
        self._keys += added


class MemoryMutable(MemoryValue):
    """Value state whose values can be changed in place: they are copied in and out, so that nothing changes here."""

    def get(self) -> Any:
        value = super().get()
        return None if value is None else self._convert(value)


class MemoryReducing(MemoryMutable):
    """Reducing state."""

    def __init__(
        self, declaration: ReducingState, table: KeyTable, index: int, cursor: Cursor, layout: KeyedLayout
    ) -> None:
        super().__init__(declaration, table, index, cursor, layout)
        self._reduce = declaration.reduce

    def add(self, value: Any) -> None:
        kept = self.get()
        self.set(value if kept is None else self._reduce(kept, value))


class MemoryAggregating(MemoryMutable):
    """Aggregating state: the accumulator is stored, the result is given."""

    def __init__(
        self, declaration: AggregatingState, table: KeyTable, index: int, cursor: Cursor, layout: KeyedLayout
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


class MemoryList(_Slot):
    """List state. The changelog has a row per element, so that appending writes what was appended."""

    def __init__(
        self, declaration: ListState, table: KeyTable, index: int, cursor: Cursor, layout: KeyedLayout
    ) -> None:
        super().__init__(table, index, cursor, layout)
        self._convert = converter(declaration.type)
        self._is_mutable = is_mutable(declaration.type)
        self._stored: dict[Any, int] = {}
        """For each key written in this epoch, how many of its elements the changelog already has."""
        self._replaced: dict[Any, None] = {}
        """The keys whose stored elements are void."""

    def get(self) -> list[Any]:
        values = self._cursor.entry[self._value] or ()
        return [self._convert(v) for v in values] if self._is_mutable else list(values)

    def add(self, value: Any) -> None:
        self.add_all((value,))

    def add_all(self, values: Iterable[Any]) -> None:
        good = [self._converted(self._convert, value) for value in values]
        if not good:
            return
        entry = self._cursor.entry
        kept = entry[self._value]
        self._note(entry, 0 if kept is None else len(kept))
        if kept is None:
            entry[self._value] = good
        else:
            kept.extend(good)

    def update(self, values: Iterable[Any]) -> None:
        values = list(values)
        self.clear()
        self.add_all(values)

    def clear(self) -> None:
        entry = self._cursor.entry
        if entry[self._value] is not None:
            self._note(entry, 0)
            entry[self._value] = None
            self._stored[entry[0]] = 0
            self._replaced[entry[0]] = None

    def _note(self, entry: Entry, stored: int) -> None:
        if not entry[self._mark] & WRITTEN:
            self._mark_written(entry)
            self._stored[entry[0]] = stored

    def changes(self) -> pa.Table | None:
        written = self._take_written()
        if not written:
            self.forget_changes()
            return None
        table = self._table_of(list(self._replaced), [(e, self._stored[e[0]]) for e in written])
        self.forget_changes()
        return table

    def forget_changes(self) -> None:
        self._take_written()
        self._stored, self._replaced = {}, {}

    def dump(self) -> pa.Table:
        return sorted_by_key(self._table_of([], [(entry, 0) for entry in self._held()]))

    def _table_of(self, replaced: list[Any], tails: list[tuple[Entry, int]]) -> pa.Table:
        keys: list[Any] = list(replaced)
        indices: list[int | None] = [None] * len(replaced)
        values: list[Any] = [None] * len(replaced)
        for entry, start in tails:
            tail = (entry[self._value] or [])[start:]
            keys.extend([entry[0]] * len(tail))
            indices.extend(range(start, start + len(tail)))
            values.extend(tail)
        ops = [CLEAR] * len(replaced) + [PUT] * (len(keys) - len(replaced))
        return self._layout.table(ops, keys, indices, values)

    def apply(self, changes: pa.Table) -> None:
        for op, key, value in zip(*(decode(changes[c]) for c in ("op", "key", "value")), strict=True):
            kept = self._table.entry(key)[self._value]
            if op == CLEAR:
                self._load(key, None)
            elif kept is None:
                self._load(key, [value])
            else:
                kept.append(value)

    def clear_all(self) -> None:
        super().clear_all()
        self.forget_changes()


class MemoryMap(_Slot):
    """Map state. The changelog has a row per map entry, so that changing one writes one.

    Iteration is in the order of insertion, also on a rebuilt copy: an inserted map entry goes to the end of the map and
    of what is written alike.
    """

    def __init__(self, declaration: MapState, table: KeyTable, index: int, cursor: Cursor, layout: KeyedLayout) -> None:
        super().__init__(table, index, cursor, layout)
        self._exact_entry = exact_type(declaration.key_type)
        self._convert_entry = converter(declaration.key_type)
        self._convert = converter(declaration.value_type)
        self._is_mutable = is_mutable(declaration.value_type)
        self._put: dict[Any, dict[Any, None]] = {}
        """For each key written in this epoch, its map entries that were put."""
        self._removed: dict[tuple[Any, Any], None] = {}
        self._replaced: dict[Any, None] = {}
        """The keys whose stored map entries are void."""

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
        kept = row[self._value]
        if kept is None:
            kept = row[self._value] = {}
        put = self._put[row[0]]
        if entry not in kept:
            put.pop(entry, None)
        kept[entry] = value
        put[entry] = None

    def put_all(self, entries: dict[Any, Any]) -> None:
        for entry, value in entries.items():
            self.put(entry, value)

    def remove(self, entry: Any) -> None:
        entry = self._as_kept(entry)
        row = self._cursor.entry
        kept = row[self._value]
        if kept is None or entry not in kept:
            return
        if len(kept) == 1:
            self.clear()
            return
        self._note(row)
        del kept[entry]
        self._put[row[0]].pop(entry, None)
        self._removed[row[0], entry] = None

    def clear(self) -> None:
        row = self._cursor.entry
        if row[self._value] is not None:
            self._note(row)
            row[self._value] = None
            self._put[row[0]] = {}
            self._replaced[row[0]] = None

    def _note(self, row: Entry) -> None:
        if not row[self._mark] & WRITTEN:
            self._mark_written(row)
            self._put[row[0]] = {}

    def _as_kept(self, entry: Any) -> Any:
        """The form in which `put` keeps an entry's key: a naive datetime as UTC, a struct as a row."""
        return entry if type(entry) is self._exact_entry else self._converted(self._convert_entry, entry)

    def contains(self, entry: Any) -> bool:
        return self._as_kept(entry) in (self._cursor.entry[self._value] or ())

    def keys(self) -> list[Any]:
        return list(self._cursor.entry[self._value] or ())

    def values(self) -> list[Any]:
        return [value for _, value in self.items()]

    def items(self) -> list[tuple[Any, Any]]:
        kept = self._cursor.entry[self._value] or {}
        return [(e, self._convert(v)) for e, v in kept.items()] if self._is_mutable else list(kept.items())

    def is_empty(self) -> bool:
        return self._cursor.entry[self._value] is None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def __contains__(self, entry: Any) -> bool:
        return self.contains(entry)

    def changes(self) -> pa.Table | None:
        written = self._take_written()
        if not written:
            self.forget_changes()
            return None
        put = [(row[0], entry, row[self._value][entry]) for row in written for entry in self._put[row[0]]]
        table = self._table_of(list(self._replaced), list(self._removed), put)
        self.forget_changes()
        return table

    def forget_changes(self) -> None:
        self._take_written()
        self._put, self._removed, self._replaced = {}, {}, {}

    def dump(self) -> pa.Table:
        put = [(row[0], entry, value) for row in self._held() for entry, value in row[self._value].items()]
        return sorted_by_key(self._table_of([], [], put))

    def _table_of(
        self, replaced: list[Any], removed: list[tuple[Any, Any]], put: list[tuple[Any, Any, Any]]
    ) -> pa.Table:
        return self._layout.table(
            [CLEAR] * len(replaced) + [REMOVE] * len(removed) + [PUT] * len(put),
            replaced + [key for key, _ in removed] + [key for key, _, _ in put],
            [None] * len(replaced) + [entry for _, entry in removed] + [entry for _, entry, _ in put],
            [None] * (len(replaced) + len(removed)) + [value for _, _, value in put],
        )

    def apply(self, changes: pa.Table) -> None:
        columns = (decode(changes[c]) for c in ("op", "key", "entry", "value"))
        for op, key, entry, value in zip(*columns, strict=True):
            kept = self._table.entry(key)[self._value]
            if op == CLEAR:
                self._load(key, None)
            elif op == REMOVE:
                if kept is not None:
                    kept.pop(entry, None)
            elif kept is None:
                self._load(key, {entry: value})
            else:
                kept[entry] = value

    def clear_all(self) -> None:
        super().clear_all()
        self.forget_changes()


_HANDLES: dict[str, Callable[[Any, KeyTable, int, Cursor, KeyedLayout], StateTable]] = {
    "value": lambda declaration, *place: (MemoryMutable if is_mutable(declaration.type) else MemoryValue)(
        declaration, *place
    ),
    "list": MemoryList,
    "map": MemoryMap,
    "reducing": MemoryReducing,
    "aggregating": MemoryAggregating,
}


def open_states(
    declarations: Iterable[StateDeclaration], step: str, key: pa.DataType, cursor: Cursor, spread: Spread = BY_KEY
) -> tuple[KeyTable, dict[str, StateTable]]:
    """The entries of a step, and the handle of each declared state by name."""
    declarations = list(declarations)
    table = KeyTable(len(declarations))
    handles = {}
    for index, declaration in enumerate(declarations):
        layout = KeyedLayout(step, declaration.name, key, declaration.columns(), spread)
        handles[declaration.name] = _HANDLES[declaration.kind](declaration, table, index, cursor, layout)
    return table, handles
