"""State with a ttl: what it shows, what it stores, and that neither depends on how a copy came to be."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.parts.examples import examples

import headwater as hw
from headwater.descriptors import StateDeclaration
from headwater.expiry import Ttl
from headwater.state.backend import StateBackend
from headwater.state.handles import expiring
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor
from headwater.state.memory_backend import MEMORY
from headwater.state.records import pack

KEY = pa.string()
TTL = 10


class Sum(hw.AggregateFunction[int, int, int]):
    def create(self) -> int:
        return 0

    def add(self, accumulator: int, value: int) -> int:
        return accumulator + value

    def result(self, accumulator: int) -> int:
        return accumulator * 100


KINDS: dict[str, Callable[[Ttl | None], StateDeclaration]] = {
    "value": lambda ttl: hw.ValueState("it", "bigint", ttl=ttl),
    "copied": lambda ttl: hw.ValueState("it", "array<bigint>", ttl=ttl),
    "list": lambda ttl: hw.ListState("it", "bigint", ttl=ttl),
    "map": lambda ttl: hw.MapState("it", "string", "bigint", ttl=ttl),
    "floats": lambda ttl: hw.MapState("it", "double", "bigint", ttl=ttl),
    "reducing": lambda ttl: hw.ReducingState("it", "bigint", reduce=lambda a, b: a + b, ttl=ttl),
    "aggregating": lambda ttl: hw.AggregatingState("it", "bigint", aggregate=Sum(), ttl=ttl),
}


class Opened:
    """One state of a step keyed by a string, with the current key at will."""

    def __init__(self, declaration: StateDeclaration, backend: StateBackend = MEMORY) -> None:
        self._cursor = Cursor()
        self.entries, tables = open_states([declaration], "step", KEY, self._cursor, backend=backend)
        self.table: Any = tables["it"]

    def __getitem__(self, key: Any) -> Any:
        self._cursor.entry = self.entries.entry(key)
        return self.table

    def at(self, now_ms: int) -> int:
        return int(self.table.advance(now_ms))


def opened(kind: str, update: Any = "write", backend: StateBackend = MEMORY) -> Opened:
    state = Opened(KINDS[kind](Ttl(TTL, update)), backend)
    state.at(0)
    return state


@pytest.mark.parametrize(("later", "is_there"), [(9, True), (10, False), (11, False)])
def test_a_value_is_gone_when_its_time_is_over(backend: StateBackend, later: int, *, is_there: bool) -> None:
    state = opened("value", backend=backend)
    state["a"].set(1)
    assert state.at(later) == (0 if is_there else 1)
    assert state["a"].get() == (1 if is_there else None)


def test_only_a_write_counts_unless_reads_do(backend: StateBackend) -> None:
    written, read = opened("value", backend=backend), opened("value", "read_and_write", backend)
    for state in (written, read):
        state["a"].set(1)
        state.at(9)
        assert state["a"].get() == 1
        state.at(12)
    assert (written["a"].get(), read["a"].get()) == (None, 1)
    assert (read.at(21), read.at(22)) == (0, 1)


def test_elements_of_a_list_expire_one_by_one(backend: StateBackend) -> None:
    state = opened("list", backend=backend)
    state["a"].add(1)
    state.at(4)
    state["a"].add_all([2, 3])
    state.at(8)
    state["a"].add(4)
    found = [(now, state.at(now), state["a"].get()) for now in (9, 10, 14, 18)]
    assert found == [(9, 0, [1, 2, 3, 4]), (10, 1, [2, 3, 4]), (14, 2, [4]), (18, 1, [])]


def test_entries_of_a_map_expire_one_by_one_and_keep_their_order(backend: StateBackend) -> None:
    state = opened("map", backend=backend)
    state["a"].put_all({"x": 1, "y": 2, "z": 3})
    state.at(5)
    state["a"].put("y", 4)
    assert (state.at(10), state["a"].items()) == (2, [("y", 4)])
    state["a"].put("x", 5)
    assert state["a"].items() == [("y", 4), ("x", 5)]
    assert (state.at(15), state["a"].keys(), state["a"].is_empty()) == (1, ["x"], False)
    assert (state.at(20), state["a"].keys(), state["a"].is_empty()) == (1, [], True)


def test_reading_one_entry_of_a_map_keeps_that_one(backend: StateBackend) -> None:
    state = opened("map", "read_and_write", backend)
    state["a"].put_all({"x": 1, "y": 2, "z": 3})
    state.at(5)
    assert (state["a"].get("y"), "z" in state["a"], "other" in state["a"]) == (2, True, False)
    assert (state.at(10), state["a"].items()) == (1, [("y", 2), ("z", 3)])
    assert state.at(19) == 0


def test_what_is_gone_starts_anew(backend: StateBackend) -> None:
    reducing, aggregating = (opened(kind, backend=backend) for kind in ("reducing", "aggregating"))
    for state in (reducing, aggregating):
        state["a"].add(1)
        state.at(9)
        state["a"].add(2)
        state.at(18)
    assert (reducing["a"].get(), aggregating["a"].get()) == (3, 300)
    for state in (reducing, aggregating):
        state.at(19)
        state["a"].add(5)
    assert (reducing["a"].get(), aggregating["a"].get()) == (5, 500)


def test_what_expires_is_removed_from_what_is_stored(backend: StateBackend) -> None:
    state = opened("value", backend=backend)
    for key in ("b", "a", "c"):
        state[key].set(1)
    assert len(state.table.changes()) == 3
    state.at(5)
    state["c"].set(2)
    state.table.changes()
    state.at(10)
    assert state.table.changes().select(["op", "key"]).to_pylist() == [{"op": 1, "key": "a"}, {"op": 1, "key": "b"}]
    assert len(state.table) == 1
    assert state.table.dump().to_pylist() == [{"op": 0, "key": "c", "value": 2, "@processing_ms": 5}]


def test_dropping_the_front_of_a_list_writes_that_alone(backend: StateBackend) -> None:
    state = opened("list", backend=backend)
    state["a"].add_all(range(100))
    state.at(5)
    state["a"].add_all(range(3))
    state.table.changes()
    state.at(10)
    state["a"].add(7)
    found = [tuple(row.values()) for row in state.table.changes().to_pylist()]
    assert found == [(1, "a", 100, None, None), (0, "a", 3, 7, 10)]


def test_state_without_times_gets_that_of_the_first_epoch(backend: StateBackend) -> None:
    rows = {"value": [1, 2], "list": [(0, 1), (1, 2)], "map": [("x", 1), ("y", 2)]}
    for kind, values in rows.items():
        state = Opened(KINDS[kind](Ttl(TTL)), backend)
        told = state.table.dump().schema
        columns = [values] if kind == "value" else list(zip(*values, strict=True))
        keys = ["b", "a"] if kind == "value" else ["a", "a"]
        state.table.apply(pa.table([[0, 0], keys, *columns, [None, None]], schema=told))
        assert state.at(1000) == 0
        assert state.table.changes()["@processing_ms"].drop_null().unique().to_pylist() == [1000]
        assert (state.at(1009), state.at(1010)) == (0, 2)


def test_the_index_does_not_grow_with_what_comes_and_goes(
    backend: StateBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiring, "_DEAD", 10)
    for kind in ("value", "map", "list"):
        state = Opened(KINDS[kind](Ttl(1_000_000)), backend)
        for epoch in range(300):
            state.at(epoch)
            for key in ("a", "b"):
                (
                    state[key].put("x", 1)
                    if kind == "map"
                    else state[key].update([1])
                    if kind == "list"
                    else state[key].set(1)
                )
            if epoch % 2:
                state["a"].clear()
            state.table.changes()
        assert len(state.table._times) < 60


ACTIONS = {
    "value": ["get", "set", "clear"],
    "copied": ["get", "set", "clear"],
    "list": ["get", "add", "update", "first", "last", "clear"],
    "map": ["get", "put", "remove", "contains", "items", "walk", "clear"],
    "floats": ["get", "put", "remove", "contains", "items", "walk", "clear"],
    "reducing": ["get", "add", "clear"],
    "aggregating": ["get", "add", "clear"],
}
FLOATS = {"x": 0.0, "y": -0.0, "z": float("nan")}


class Model:
    """What the state of one key must be, said as plainly as can be: everything has its time, and is looked at each time."""

    def __init__(self, kind: str, update: str) -> None:
        self._kind, self._reads = kind, update == "read_and_write"
        self._kept: dict[str, list[list[Any]]] = {}

    def do(self, action: str, key: str, entry: str, number: int, now: int) -> Any:
        kept = [one for one in self._kept.get(key, []) if one[2] + TTL > now]
        self._kept[key] = kept
        entry = "x" if self._kind == "floats" and entry == "y" else entry
        if self._kind in ("list", "map", "floats"):
            return self._of_many(action, kept, entry, number, now)
        if action == "clear":
            kept.clear()
        elif action == "set":
            kept[:] = [["", [number] if self._kind == "copied" else number, now]]
        elif action == "add":
            kept[:] = [["", (kept[0][1] if kept else 0) + number, now]]
        elif kept:
            self._read(kept, now)
            return kept[0][1] * 100 if self._kind == "aggregating" else kept[0][1]
        return None

    def _of_many(self, action: str, kept: list[list[Any]], entry: str, number: int, now: int) -> Any:
        if action in ("clear", "update"):
            kept.clear()
        if action in ("add", "update"):
            kept.append(["", number, now])
        elif action == "put":
            found = next((one for one in kept if one[0] == entry), None)
            if found is None:
                kept.append([entry, number, now])
            else:
                found[1:] = [number, now]
        elif action == "remove":
            kept[:] = [one for one in kept if one[0] != entry]
        elif action == "items" or (action == "get" and self._kind == "list"):
            self._read(kept, now)
            return [one[1] for one in kept]
        elif action in ("first", "last"):
            self._read(kept, now)
            return kept[0 if action == "first" else -1][1] if kept else None
        elif action == "walk":
            self._read(kept[:number], now)
            return [repr(FLOATS[one[0]] if self._kind == "floats" else one[0]) for one in kept[:number]]
        elif action in ("get", "contains"):
            found = [one for one in kept if one[0] == entry]
            self._read(found, now)
            return bool(found) if action == "contains" else found[0][1] if found else None
        return None

    def _read(self, kept: list[list[Any]], now: int) -> None:
        for one in kept if self._reads else ():
            one[2] = now


def done(state: Opened, kind: str, action: str, *, key: str, entry: Any, number: int) -> Any:
    """The action, done to the state."""
    handle = state[key]
    entry = FLOATS[entry] if kind == "floats" else entry
    if action == "set":
        return handle.set([number] if kind == "copied" else number)
    if action == "update":
        return handle.update([number])
    if action in ("get", "contains", "remove") and kind in ("map", "floats"):
        return getattr(handle, action)(entry)
    if action == "items":
        return handle.values()
    if action == "walk":
        return [repr(one) for one in islice(handle, number)]
    if action == "put":
        return handle.put(entry, number)
    return handle.add(number) if action == "add" else getattr(handle, action)()


def packed(changes: pa.Table | None) -> bytes:
    return b"" if changes is None else pack({}, [("step", "it", changes)])


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["advance", "delta", "act", "act", "act", "act"]),
        st.integers(0, 6),
        st.sampled_from("ab"),
        st.sampled_from("xyz"),
        st.integers(1, 9),
    ),
    max_size=60,
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("update", ["write", "read_and_write"])
@settings(examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps=STEPS)
def test_state_is_what_the_rules_say_and_a_rebuilt_copy_stores_the_same_bytes(
    backend: StateBackend, kind: str, update: str, steps: list[Any]
) -> None:
    state, model, now = opened(kind, update, backend), Model(kind, update), 0
    rebuilt = opened(kind, update)
    behind = Opened(KINDS[kind](Ttl(TTL, update)), backend)  # type: ignore[arg-type]
    for what, place, key, entry, number in steps:
        if what == "advance":
            now += place
            assert state.at(now) == rebuilt.at(now)
        elif what == "delta":
            told, told_again = state.table.changes(), rebuilt.table.changes()
            assert packed(told) == packed(told_again)
            base = state.table.dump()
            if told is not None:
                behind.table.apply(told)
            assert packed(behind.table.dump()) == packed(base)
            rebuilt = Opened(KINDS[kind](Ttl(TTL, update)))  # type: ignore[arg-type]
            rebuilt.table.apply(base)
            rebuilt.at(now)
            rebuilt.table.forget_changes()
        else:
            action = ACTIONS[kind][place % len(ACTIONS[kind])]
            found = done(state, kind, action, key=key, entry=entry, number=number)
            assert found == model.do(action, key, entry, number, now)
            assert done(rebuilt, kind, action, key=key, entry=entry, number=number) == found
    state.table.clear_all()
