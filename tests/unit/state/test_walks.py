"""Walking maps and looking at the ends of lists: it costs what is given, whatever is left."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.descriptors import StateDeclaration
from headwater.state.backend import StateBackend
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor
from headwater.state.memory_backend import MEMORY

MANY = 1_000


class Opened:
    """One state of a step keyed by a string, at the key "a"."""

    def __init__(self, declaration: StateDeclaration, backend: StateBackend = MEMORY) -> None:
        self._cursor = Cursor()
        self.entries, tables = open_states([declaration], "step", pa.string(), self._cursor, backend=backend)
        self.handle: Any = tables["it"]
        self.point()

    def point(self) -> None:
        """Point at the key, as for a row of it."""
        self._cursor.entry = self.entries.entry("a")

    @property
    def kept(self) -> Any:
        """What is kept of the key."""
        return self._cursor.entry[1]


def filled(backend: StateBackend = MEMORY) -> Opened:
    """A map of many entries."""
    state = Opened(hw.MapState("it", "int", "int"), backend)
    state.handle.put_all({number: number for number in range(MANY)})
    return state


def test_what_is_left_of_a_walk_is_copied_once_however_often_the_map_changes(
    backend: StateBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = filled(backend)
    copies: list[int] = []
    copy = state.handle._copy_what_is_left
    monkeypatch.setattr(state.handle, "_copy_what_is_left", lambda: copies.append(1) or copy())
    given = []
    for entry in state.handle:
        given.append(entry)
        state.handle.remove(entry)
        state.handle.put(MANY + entry, 0)
    assert given == list(range(MANY))
    assert state.handle.keys() == list(range(MANY, 2 * MANY))
    assert len(copies) == 1


def test_a_walk_gives_what_was_there_when_it_began(backend: StateBackend) -> None:
    state = filled(backend)
    walk, other = iter(state.handle), iter(state.handle)
    state.handle.put(-1, 0)
    state.handle.remove(0)
    assert list(walk) == list(range(MANY))
    assert next(other) == 0
    state.handle.clear()
    assert list(other) == list(range(1, MANY))
    assert list(state.handle) == []


def test_first_keys_can_be_taken_until_a_map_is_empty(backend: StateBackend) -> None:
    state = filled(backend)
    taken = []
    while not state.handle.is_empty():
        taken.append(next(iter(state.handle)))
        state.handle.remove(taken[-1])
        if len(taken) == 10:
            state.handle.put(0, 0)
    assert taken == [*range(MANY), 0]
    assert state.handle.changes() is None


def test_a_map_whose_first_keys_are_taken_finds_the_next_one_without_a_look_at_those_that_went() -> None:
    state = filled()
    state.handle.remove(next(iter(state.handle)))
    assert isinstance(state.kept, OrderedDict)
    assert next(iter(state.handle)) == 1
