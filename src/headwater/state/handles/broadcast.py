"""Broadcast state: maps that belong to no key, with the same content on every subtask.

Each is a map state in the changelog of every subtask, under one key that stands for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headwater.descriptors import MapState
from headwater.errors import StateError
from headwater.state.handles.maps import MapHandle
from headwater.state.memory import Cursor, KeyTable
from headwater.state.spread import Spread, Subtasks
from headwater.state.table import KeyedLayout

ALL_KEYS = "*"
"""The key of all entries."""


class OneForAll(Spread):
    """Every subtask has the same, so every new one gets what the first had."""

    def deal(self, tables: Sequence[pa.Table], to: Subtasks) -> list[pa.Table]:
        return [tables[0]] * to.count


class _Gate(Cursor):
    """Points at the one entry that a step's broadcast states share, and says whether they can be written."""

    __slots__ = ("is_open",)

    def __init__(self) -> None:
        super().__init__()
        self.is_open = False


class BroadcastStates:
    """The broadcast states of a step, which opens them to writes while it handles broadcast rows."""

    def __init__(self, declarations: Sequence[MapState[Any, Any]], step: str) -> None:
        self._step, self._gate = step, _Gate()
        self._entries = KeyTable(len(declarations))
        self.maps: dict[str, BroadcastMap] = {}
        for index, state in enumerate(declarations):
            layout = KeyedLayout(step, state.name, pa.string(), state.columns(), OneForAll())
            self.maps[state.name] = BroadcastMap(state, self._entries, index, self._gate, layout)

    @property
    def is_writable(self) -> bool:
        return self._gate.is_open

    @is_writable.setter
    def is_writable(self, value: bool) -> None:
        self._gate.is_open = value

    def begin(self) -> None:
        """Point the maps at what is kept now; since the last time it may have been rebuilt."""
        self._gate.entry = self._entries.entry(ALL_KEYS)

    def of(self, state: Any) -> BroadcastMap:
        """The state of a declaration or name."""
        name = getattr(state, "name", state)
        if name not in self.maps:
            known = ", ".join(map(repr, self.maps))
            raise StateError.misused(self._step, f"there is no broadcast state {name!r}", f"its stream brings {known}")
        return self.maps[name]


class BroadcastMap(MapHandle):
    """A map state that refuses writes unless its step is at broadcast rows. What it gives are copies, as always."""

    _cursor: _Gate

    def put(self, entry: Any, value: Any) -> None:
        self._check_open()
        super().put(entry, value)

    def put_all(self, entries: dict[Any, Any]) -> None:
        self._check_open()
        super().put_all(entries)

    def remove(self, entry: Any) -> None:
        self._check_open()
        super().remove(entry)

    def clear(self) -> None:
        self._check_open()
        super().clear()

    def _check_open(self) -> None:
        if not self._cursor.is_open:
            step, name = self._layout.step, self._layout.name
            rule = f"broadcast state {name!r} is the same on every subtask, so where there is a key it can only be read"
            raise StateError.misused(step, rule, "write it in process_broadcast")

    def __len__(self) -> int:
        """The number of entries of the map."""
        return len(self._table.entry(ALL_KEYS)[self._value] or ())
