"""Parts of lists and maps are reached without the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from tests.parts.work import calls_of

import headwater as hw
from headwater.state.backend import StateBackend
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor
from headwater.state.memory_backend import MEMORY
from headwater.testing import Harness


class Opened:
    """One state of a step."""

    def __init__(self, declaration: Any, backend: StateBackend = MEMORY) -> None:
        self.cursor = Cursor()
        self._entries, tables = open_states([declaration], "step", pa.int64(), self.cursor, backend=backend)
        self._table: Any = tables[declaration.name]

    @property
    def it(self) -> Any:
        """The handle, at a key."""
        self.cursor.entry = self._entries.entry(1)
        return self._table


def test_the_ends_of_a_list(backend: StateBackend) -> None:
    state = Opened(hw.ListState("it", "long"), backend)
    assert (state.it.first(), state.it.last()) == (None, None)
    state.it.add_all([3, 4, 5])
    assert (state.it.first(), state.it.last()) == (3, 5)
    state.it.changes()
    assert (state.it.first(), state.it.last()) == (3, 5)
    state.it.add(6)
    assert (state.it.first(), state.it.last()) == (3, 6)
    state.it.clear()
    assert (state.it.first(), state.it.last()) == (None, None)


def test_the_ends_of_a_list_are_copies() -> None:
    state = Opened(hw.ListState("it", "array<long>"))
    state.it.add([1])
    state.it.last().append(2)
    assert state.it.get() == [[1]]


def test_elements_dropped_at_the_front_are_told_by_their_number(backend: StateBackend) -> None:
    state, other = Opened(hw.ListState("it", "long"), backend), Opened(hw.ListState("it", "long"))
    for add, drop in (([1, 2, 3], 0), ([4, 5], 2), ([], 1), ([6], 2), ([7, 8, 9], 3)):
        state.it.add_all(add)
        if drop:
            state.it.drop_first(drop)
        changes = state.it.changes()
        assert changes is not None
        assert len(changes) <= len(add) + 1
        other.it.apply(changes)
        assert other.it.get() == state.it.get()
    assert state.it.get() == [9]
    state.it.clear()
    state.it.add(1)
    other.it.apply(state.it.changes())
    assert other.it.get() == [1]


class Counted(dict[Any, Any]):
    """A map that counts the keys it gives."""

    given = 0

    def __iter__(self) -> Iterator[Any]:
        for key in super().__iter__():
            self.given += 1
            yield key


def test_the_first_key_of_a_large_map_costs_no_other() -> None:
    opened = Opened(hw.MapState("it", "long", "long"))
    state, cursor = opened.it, opened.cursor
    state.put_all({key: key for key in range(1_000)})
    kept = cursor.entry[1] = Counted(cursor.entry[1])
    assert next(iter(state)) == 0
    assert kept.given == 1
    for key in state:
        if key == 10:
            break
    assert kept.given == 12
    assert state._reading == []


def test_a_map_that_changes_while_it_is_read_gives_what_it_had() -> None:
    state = Opened(hw.MapState("it", "long", "long")).it
    for count in (5, 500):
        state.put_all({key: key for key in range(count)})
        seen = []
        for key in state:
            seen.append(key)
            state.put(1_000 + key, 1)
            state.put(key, 2)
            if key % 3:
                state.remove(key)
        assert seen == list(range(count))
        first, second = iter(state), iter(state)
        assert next(first) == next(second)
        state.clear()
        assert len(list(first)) == len(list(second)) == count + len(range(0, count, 3)) - 1


def test_a_row_of_a_long_sliding_count_window_is_not_converted_with_all_others() -> None:
    class Last(hw.ProcessWindowFunction):
        def process(self, elements: Any, ctx: Any) -> Any:
            yield (len(elements), elements[0].n, elements[-1].n)

    costs, sizes = [], []
    for size in (20, 500):

        def build(stream: Any, size: int = size) -> Any:
            return stream.key_by("k").window(hw.count(size, 1)).process(Last(), "rows long, first long, last long")

        harness = Harness(build, "k string, n long")
        harness.push_all([("a", n) for n in range(size + 10)])
        harness.take()
        costs.append(calls_of(lambda harness=harness, size=size: harness.push(("a", size + 10))))
        assert [tuple(row) for row in harness.take()] == [(size, 11, size + 10)]
        store = harness._cluster.stores[1, 0]
        sizes.append(len(store.read(store.head().sequence)))
    assert costs[1] < 1.2 * costs[0]
    assert abs(sizes[1] - sizes[0]) < 64
