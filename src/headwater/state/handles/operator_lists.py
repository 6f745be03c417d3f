"""Operator state in memory: lists that belong to a subtask and not to a key.

They are keyed lists under one key, which is null, so that appending to a long list writes what was appended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.descriptors import OperatorListState
from headwater.errors import StateError
from headwater.state.handles.lists import ListHandle
from headwater.state.memory import Cursor, Entry, KeyTable
from headwater.state.spread import Spread, Subtasks
from headwater.state.table import KeyedLayout

_KEY, _KEY_TYPE = None, pa.bool_()


class SubtaskCursor(Cursor):
    """Points at the one entry of a step; shared by its lists."""

    __slots__ = ("_table", "is_behind", "is_read_only")

    is_behind: bool
    """Whether state came from records since `catch_up` was called, so that what a function made of it is void."""
    is_read_only: bool

    def __init__(self, table: KeyTable) -> None:
        self._table = table
        self.is_behind, self.is_read_only = True, False

    def catch_up(self) -> None:
        """Point at the entry as it is now."""
        self.entry = self._table.entry(_KEY)
        self.is_behind = False


class Evenly(Spread):
    """The elements of all lists, in the order of subtasks and then of places, are dealt out in turn."""

    def deal(self, tables: Sequence[pa.Table], to: Subtasks) -> list[pa.Table]:
        together = pa.concat_tables(tables)
        turns = np.arange(len(together)) % to.count
        return [_as_list(together.filter(pa.array(turns == subtask))) for subtask in range(to.count)]


class ToAll(Spread):
    """Every subtask gets the elements of all lists, in the order of subtasks and then of places."""

    def deal(self, tables: Sequence[pa.Table], to: Subtasks) -> list[pa.Table]:
        return [_as_list(pa.concat_tables(tables))] * to.count


def _as_list(elements: pa.Table) -> pa.Table:
    """The elements as one list: their places are numbered anew."""
    place = elements.column_names.index("index")
    return elements.set_column(place, elements.schema.field(place), pa.array(range(len(elements)), pa.int64()))


_SPREADS: dict[str, Spread] = {"operator_list": Evenly(), "union_list": ToAll()}


class OperatorList(ListHandle):
    """One list of a subtask."""

    _cursor: SubtaskCursor

    def _note(self, entry: Entry, stored: int) -> None:
        if self._cursor.is_read_only:
            rule = f"operator state {self._layout.name!r} can be read in open and not changed"
            raise StateError.misused(self._layout.step, rule, "change it in process or restored")
        super()._note(entry, stored)

    def apply(self, changes: pa.Table) -> None:
        super().apply(changes)
        self._cursor.is_behind = True

    def clear_all(self) -> None:
        super().clear_all()
        self._cursor.is_behind = True

    def __len__(self) -> int:
        """The number of elements."""
        entry = self._table.entries.get(_KEY)
        return len(entry[self._value] or ()) if entry else 0


def open_operator_states(
    declarations: Iterable[OperatorListState[Any]], step: str
) -> tuple[SubtaskCursor, dict[str, OperatorList]]:
    """The cursor of a step, and the handle of each declared list by name."""
    declarations = list(declarations)
    table = KeyTable(len(declarations))
    cursor = SubtaskCursor(table)
    handles = {}
    for index, declaration in enumerate(declarations):
        spread = _SPREADS[declaration.kind]
        layout = KeyedLayout(step, declaration.name, _KEY_TYPE, declaration.columns(), spread)
        handles[declaration.name] = OperatorList(declaration, table, index, cursor, layout)
    return cursor, handles
