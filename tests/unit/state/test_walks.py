"""Walking maps and looking at the ends of lists: it costs what is given, whatever is left."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.descriptors import StateDeclaration
from headwater.expiry import Ttl
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


class Looked(dict[Any, Any]):
    """A map in memory that counts the entries that are looked at one after the other."""

    count = 0

    def __iter__(self) -> Iterator[Any]:
        for entry in super().__iter__():
            self.count += 1
            yield entry

    def keys(self) -> Any:
        return list(self)

    def items(self) -> Any:
        return [(entry, self[entry]) for entry in self]


class LookedList(list[Any]):
    """A list in memory that counts the elements that are looked at."""

    count = 0

    def __iter__(self) -> Iterator[Any]:
        for value in super().__iter__():
            self.count += 1
            yield value

    def __getitem__(self, part: Any) -> Any:
        found = super().__getitem__(part)
        self.count += len(found)
        return found


class Looks:
    """Counts the elements of a state that are looked at: in memory, or read from disk, where all is at first."""

    def __init__(self, state: Opened, patch: pytest.MonkeyPatch) -> None:
        self._state, self._rows = state, 0
        state.handle.changes()
        if state.entries.HOLDS_ALL:
            kept: Any = state.entries.entries["a"][1]
            state.entries.entries["a"][1] = Looked(kept) if isinstance(kept, dict) else LookedList(kept)
        else:
            state.entries.let_go(1 << 40)
            store = state.entries.store
            for name in ("get", "get_all", "scan"):
                patch.setattr(store, name, self._counted(getattr(store, name), is_of_many=name != "get"))
        state.point()

    def _counted(self, read: Any, *, is_of_many: bool) -> Any:
        def counted(*arguments: Any) -> Any:
            if not is_of_many:
                self._rows += 1
                return read(*arguments)
            return self._each(read(*arguments))

        return counted

    def _each(self, rows: Iterable[Any]) -> Iterator[Any]:
        for row in rows:
            self._rows += 1
            yield row

    @property
    def count(self) -> int:
        return self._state.kept.count if self._state.entries.HOLDS_ALL else self._rows


TTLS = pytest.mark.parametrize("ttl", [None, Ttl(10), Ttl(10, "read_and_write")])


def opened(declaration: StateDeclaration, backend: StateBackend) -> Opened:
    """A state at a time."""
    state = Opened(declaration, backend)
    if declaration.ttl is not None:
        state.handle.advance(0)
    return state


@TTLS
def test_the_first_keys_of_a_map_are_given_without_a_look_at_the_others(
    backend: StateBackend, monkeypatch: pytest.MonkeyPatch, ttl: Ttl | None
) -> None:
    state = opened(hw.MapState("it", "int", "int", ttl=ttl), backend)
    state.handle.put_all({number: number for number in range(MANY)})
    looks = Looks(state, monkeypatch)
    for _ in range(3):
        assert next(iter(state.handle)) == 0
    assert list(islice(state.handle, 20)) == list(range(20))
    assert looks.count <= 200


@TTLS
def test_first_keys_that_are_taken_from_disk_are_not_looked_at_again(
    backend: StateBackend, monkeypatch: pytest.MonkeyPatch, ttl: Ttl | None
) -> None:
    state = opened(hw.MapState("it", "int", "int", ttl=ttl), backend)
    state.handle.put_all({number: number for number in range(MANY)})
    looks = Looks(state, monkeypatch)
    for number in range(MANY):
        assert next(iter(state.handle)) == number
        state.handle.remove(number)
        if number == MANY // 2:
            state.handle.put(-1, 0)
    assert looks.count <= 12 * MANY
    assert state.handle.keys() == [-1]


@TTLS
def test_the_ends_of_a_list_are_given_without_a_look_at_the_others(
    backend: StateBackend, monkeypatch: pytest.MonkeyPatch, ttl: Ttl | None
) -> None:
    state = opened(hw.ListState("it", "int", ttl=ttl), backend)
    assert (state.handle.first(), state.handle.last()) == (None, None)
    state.handle.add_all(range(MANY))
    looks = Looks(state, monkeypatch)
    for _ in range(3):
        assert (state.handle.first(), state.handle.last()) == (0, MANY - 1)
    state.handle.add(MANY)
    assert (state.handle.first(), state.handle.last()) == (0, MANY)
    assert looks.count <= 30


def test_ends_of_lists_are_copies(backend: StateBackend) -> None:
    for ttl in (None, Ttl(10)):
        state = opened(hw.ListState("it", "array<int>", ttl=ttl), backend)
        state.handle.add_all([[1], [2]])
        state.handle.first().append(9)
        state.handle.last().append(9)
        assert state.handle.get() == [[1], [2]]


def test_a_walk_reads_the_entries_that_it_gives(backend: StateBackend) -> None:
    state = opened(hw.MapState("it", "int", "int", ttl=Ttl(10, "read_and_write")), backend)
    state.handle.put_all({number: number for number in range(MANY)})
    state.handle.changes()
    state.handle.advance(5)
    assert list(islice(state.handle, 3)) == [0, 1, 2]
    assert state.handle.changes()["entry"].to_pylist() == [0, 1, 2]
    assert state.handle.advance(10) == MANY - 3
    state.point()
    assert state.handle.keys() == [0, 1, 2]


def test_an_end_of_a_list_is_read_with_all_of_it(backend: StateBackend) -> None:
    state = opened(hw.ListState("it", "int", ttl=Ttl(10, "read_and_write")), backend)
    state.handle.add_all(range(3))
    state.handle.advance(5)
    assert state.handle.last() == 2
    assert state.handle.advance(10) == 0
    assert state.handle.first() == 0
    assert state.handle.advance(19) == 0
    assert state.handle.advance(20) == 3


def test_a_map_of_floats_has_one_nan_also_when_it_comes_from_disk(backend: StateBackend) -> None:
    state = Opened(hw.MapState("it", "double", "int"), backend)
    state.handle.put_all({math.nan: 1, 2.0: 2})
    state.handle.changes()
    if not state.entries.HOLDS_ALL:
        state.entries.let_go(1 << 40)
    state.point()
    assert state.handle.values() == [1, 2]
    assert state.handle.get(float("nan")) == 1
    state.handle.put(float("nan"), 3)
    assert state.handle.values() == [3, 2]


def test_elements_of_a_list_that_expire_are_looked_at_without_those_that_stay(
    backend: StateBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = Opened(hw.ListState("it", "int", ttl=Ttl(MANY)), backend)
    for now in range(MANY):
        state.handle.advance(now)
        state.handle.add(now)
    looks = Looks(state, monkeypatch)
    for now in range(MANY, MANY + 10):
        assert state.handle.advance(now) == 1
        state.handle.changes()
        if not state.entries.HOLDS_ALL:
            state.entries.let_go(1 << 40)
    state.point()
    assert looks.count <= 100
    assert state.handle.get() == list(range(10, MANY))
