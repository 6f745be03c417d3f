"""Every short sequence of operations between two deltas, not just random ones: a rebuilt copy is the same copy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from tests.parts.examples import LONG

import headwater as hw
from headwater.clock.timers import TimerQueue
from headwater.data.schema import parse_type
from headwater.functions import EVENT
from headwater.state.backend import StateBackend
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor
from headwater.state.memory_backend import MEMORY
from headwater.state.spread import BY_KEY

Act = Callable[[Any], None]

MAP: list[Act] = [
    lambda h: h.put("x", 1),
    lambda h: h.put("y", 2),
    lambda h: h.remove("x"),
    lambda h: h.remove("y"),
    lambda h: h.clear(),
]
LIST: list[Act] = [lambda h: h.add(1), lambda h: h.add_all([2, 3]), lambda h: h.update([4]), lambda h: h.clear()]
VALUE: list[Act] = [lambda h: h.set(1), lambda h: h.set(2), lambda h: h.set(None), lambda h: h.clear()]
TIMERS: list[Act] = [
    lambda q: q.register(10, "a"),
    lambda q: q.register(10, "b"),
    lambda q: q.delete(10, "a"),
    lambda q: q.delete(10, "b"),
    lambda q: list(q.due(10)),
]


def opened(declaration: Any) -> Callable[[StateBackend], tuple[Any, Any]]:
    """Makes copies of a state: the table, and the handle at one key."""

    def make(backend: StateBackend) -> tuple[Any, Any]:
        declaration.name = "it"
        cursor = Cursor()
        entries, tables = open_states([declaration], "step", parse_type("string"), cursor, backend=backend)

        class Handle:
            def __getattr__(self, name: str) -> Any:
                cursor.entry = entries.entry("a")
                return getattr(tables["it"], name)

        return tables["it"], Handle()

    return make


def timers(backend: StateBackend) -> tuple[Any, Any]:
    queue = TimerQueue("step", EVENT, pa.string(), BY_KEY, backend.timers(pa.string()))
    return queue, queue


def bring(table: Any, changes: pa.Table | None) -> None:
    if changes is not None:
        table.apply(changes)


KINDS: dict[str, tuple[Callable[[StateBackend], tuple[Any, Any]], list[Act], Callable[[Any], Any]]] = {
    "map": (opened(hw.MapState("string", "int")), MAP, lambda h: h.items()),
    "list": (opened(hw.ListState("int")), LIST, lambda h: h.get()),
    "value": (opened(hw.ValueState("int")), VALUE, lambda h: h.get()),
    "timers": (timers, TIMERS, lambda q: q.dump().to_pylist()),
}
STORED = [(), (0,), (0, 1)]
"""What the first delta holds: nothing, the first operation's result, the first two's."""


def longest(backend: StateBackend) -> int:
    """How many operations follow each other. On disk each table is opened anew, which takes more than what is done to it."""
    return 4 if LONG or backend is MEMORY else 3


@pytest.mark.random
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_brought_up_to_date_shows_tells_and_dumps_the_same(backend: StateBackend, kind: str) -> None:
    make, acts, show = KINDS[kind]
    for stored, sequence in product(STORED, product(range(len(acts)), repeat=longest(backend))):
        table, handle = make(backend)
        other, other_handle = make(backend)
        for epoch in (stored, sequence):
            for act in epoch:
                acts[act](handle)
            bring(other, table.changes())
        case = (kind, stored, sequence)
        assert show(other_handle) == show(handle), case
        assert other.dump() == table.dump(), case
        assert len(other) == len(table), case
        if kind == "timers":
            other.next_registration = table.next_registration  # travels as meta data
        for one in (handle, other_handle):
            acts[0](one)
        assert table.changes() == other.changes(), case
