from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

import headwater as hw
from headwater.state.backend import StateBackend
from headwater.state.disk.backend import DiskBackend
from headwater.state.disk.bound import Bound
from headwater.state.disk.cold import ColdRows
from headwater.state.disk.files import ArrowFiles
from headwater.state.disk.numbers import DiskNumbers
from headwater.state.handles.numbers import NumberHandle
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor
from headwater.state.memory_backend import MEMORY
from headwater.state.packed import PackedTable
from headwater.state.slices import Slice

KEYS = st.integers(0, 9)
LONGS = st.none() | st.integers(-(1 << 63), (1 << 63) - 1)
DOUBLES = st.none() | st.floats(allow_nan=False)
ACTIONS = st.one_of(
    st.tuples(st.just("n"), KEYS, LONGS),
    st.tuples(st.just("total"), KEYS, DOUBLES),
    st.tuples(st.sampled_from(["tell", "rebuild", "read", "clear"]), KEYS, st.none()),
)
CLEARED = "n"
"""The state that is cleared while the other is not."""


class Packed:
    """A step with two numbers for each key, and a second copy of it that is told what changes."""

    def __init__(self, backend: StateBackend = MEMORY) -> None:
        self.cursor, self.backend = Cursor(), backend
        declarations: list[Any] = [hw.ValueState("n", "long"), hw.ValueState("total", "double")]
        self.entries, self.states = open_states(declarations, "step", pa.int64(), self.cursor, backend=backend)
        assert isinstance(self.entries, PackedTable)

    def at(self, key: int, state: str) -> Any:
        self.cursor.entry = self.entries.entries.get(key) or self.entries.entry(key)
        assert self.cursor.key == key
        return self.states[state]

    def tell(self, other: Packed) -> None:
        for name, state in self.states.items():
            changes = state.changes()
            if changes is not None:
                other.states[name].apply(changes)

    def rebuilt(self) -> Packed:
        other = Packed(self.backend)
        for name, state in self.states.items():
            state.forget_changes()
            other.states[name].apply(state.dump())
        return other

    def content(self) -> dict[str, list[dict[str, Any]]]:
        return {name: state.dump().to_pylist() for name, state in self.states.items()}


@pytest.fixture(params=[None, 0, 1_000], ids=["in memory", "on disk", "some on disk"], scope="module")
def backend(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StateBackend]:
    """Where the numbers are; what is on disk goes there whenever it may."""
    if request.param is None:
        yield MEMORY
        return
    with closing(DiskBackend("step", tmp_path_factory.mktemp("numbers"), Bound(request.param))) as on_disk:
        yield on_disk


@examples(200)
@given(actions=st.lists(ACTIONS, max_size=60))
def test_packed_numbers_are_what_was_written_however_they_came_to_be(
    backend: StateBackend, actions: list[tuple[str, int, Any]]
) -> None:
    known: dict[str, dict[int, Any]] = {"n": {}, "total": {}}
    here, there = Packed(backend), Packed(backend)
    for what, key, value in actions:
        if what == "tell":
            here.tell(there)
            assert there.content() == here.content()
        elif what == "rebuild":
            here.tell(there)
            here = here.rebuilt()
        elif what == "clear":
            here.states[CLEARED].clear_all()  # type: ignore[attr-defined]
            there.states[CLEARED].clear_all()  # type: ignore[attr-defined]
            known[CLEARED].clear()
        elif what == "read":
            assert [here.at(key, name).get() for name in known] == [known[name].get(key) for name in known]
        else:
            here.at(key, what).set(value)
            if value is None:
                known[what].pop(key, None)
            else:
                known[what][key] = value
    here.tell(there)
    for name, values in known.items():
        rows = [{"op": 0, "key": key, "value": values[key]} for key in sorted(values)]
        assert here.content()[name] == there.content()[name] == rows
        assert len(here.states[name]) == len(there.states[name]) == len(values)
        parts: list[Any] = [here.states[name].dump_slice(Slice(part, part + 1, 4)) for part in range(4)]  # type: ignore[attr-defined]
        assert pa.concat_tables(parts).sort_by("key").to_pylist() == rows
    if backend is MEMORY:
        assert set(here.entries.entries) == {key for values in known.values() for key in values}
    here.entries.fetch(range(10))
    for name, values in known.items():
        assert [here.at(key, name).get() for key in range(10)] == [values.get(key) for key in range(10)]


def test_what_does_not_fit_memory_is_on_disk_and_comes_back_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound, taken, take = Bound(400_000), [0], ColdRows.take

    def counted(*args: Any) -> Any:
        taken[0] += 1
        return take(*args)

    monkeypatch.setattr(ColdRows, "take", counted)
    with closing(DiskBackend("step", tmp_path, bound)) as on_disk:
        packed, other = Packed(on_disk), Packed()
        for epoch in range(20):
            for key in packed.entries.fetch(range(epoch * 500, epoch * 500 + 1_000)):
                number = packed.at(key, "n")
                number.set((number.get() or 0) + 1)
                packed.at(key, "total").set(key / 2)
            packed.tell(other)
            assert isinstance(packed.entries, DiskNumbers)
            assert packed.entries.held_bytes <= bound.size_bytes * bound.ENTRIES
            assert len(packed.entries.keys) < 3_000, "places are used again"
        assert 10 < taken[0] <= 20, "an epoch looks through the runs once"
        assert packed.content() == other.content()
        assert len(packed.states["n"]) == 10_500
        for state in packed.states.values():
            state.clear_all()  # type: ignore[attr-defined]
        assert packed.content() == Packed().content()


def test_a_disk_that_is_full_leaves_in_memory_what_was_to_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(DiskBackend("step", tmp_path, Bound(0))) as on_disk:
        packed = Packed(on_disk)
        for key in range(100):
            packed.at(key, "n").set(key)
        with monkeypatch.context() as full:

            def fail(*_: Any) -> Any:
                raise hw.StateError("no room")

            full.setattr(ArrowFiles, "move", fail)
            with pytest.raises(hw.StateError, match="no room"):
                packed.states["n"].changes()
        assert packed.states["n"].dump()["value"].to_pylist() == list(range(100))


def test_a_slice_knows_of_keys_that_came_and_went_since_the_last_one() -> None:
    packed = Packed()
    whole = Slice(0, 4, 4)
    for some in (range(50), range(25, 75), range(60, 200)):
        for key in list(packed.entries.entries):
            packed.at(key, "n").clear()
        packed.states["n"].forget_changes()
        for key in some:
            packed.at(key, "n").set(key)
        packed.states["n"].forget_changes()
        found = packed.states["n"].dump_slice(whole)  # type: ignore[attr-defined]
        assert found.to_pylist() == packed.states["n"].dump().to_pylist()
        assert found["key"].to_pylist() == list(some)
        parts = [packed.states["n"].dump_slice(Slice(part, part + 1, 4)) for part in range(4)]  # type: ignore[attr-defined]
        assert pa.concat_tables(parts).sort_by("key").to_pylist() == found.to_pylist()


def test_the_place_of_a_key_that_is_gone_is_given_to_another() -> None:
    packed = Packed()
    for key in range(1_000):
        packed.at(key, "n").set(key)
        packed.at(key, "total").set(1.5)
        packed.tell(Packed())
        packed.at(key, "n").clear()
        packed.at(key, "total").clear()
        packed.tell(Packed())
    assert len(packed.entries.entries) == 0
    assert isinstance(packed.entries, PackedTable)
    assert len(packed.entries.keys) < 100


def test_keys_that_come_and_go_leave_nothing_behind_where_no_slice_is_asked_for() -> None:
    packed = Packed()
    for key in range(200):
        packed.at(key, "n").set(key)
    packed.tell(Packed())
    packed.states["n"].dump_slice(Slice(0, 1, 4))  # type: ignore[attr-defined]
    for key in range(200, 5_000):
        packed.at(key - 200, "n").clear()
        packed.tell(Packed())
        packed.at(key, "n").set(key)
        packed.tell(Packed())
    assert isinstance(packed.entries, PackedTable)
    assert len(packed.entries._places_by_hash._outdated) <= 200
    found = packed.states["n"].dump_slice(Slice(0, 4, 4))  # type: ignore[attr-defined]
    assert found.to_pylist() == packed.states["n"].dump().to_pylist()


def test_reading_a_key_without_state_leaves_nothing_behind() -> None:
    packed = Packed()
    assert [packed.at(key, "n").get() for key in range(100)] == [None] * 100
    packed.at(7, "n").clear()
    assert packed.states["n"].changes() is None
    assert len(packed.entries.entries) == 0


def test_a_number_that_does_not_fit_is_refused_when_it_is_set() -> None:
    packed = Packed()
    packed.at(1, "n").set(5)
    with pytest.raises(hw.StateError, match="state 'n'"):
        packed.at(1, "n").set(1 << 63)
    assert packed.at(1, "n").get() == 5


def test_without_a_key_packed_state_cannot_be_reached() -> None:
    packed = Packed()
    packed.cursor.leave()
    for use in (packed.states["n"].get, lambda: packed.states["n"].set(1), lambda: packed.cursor.key):  # type: ignore[attr-defined]
        with pytest.raises(hw.StateError, match="key"):
            use()


@pytest.mark.parametrize(
    "declarations",
    [
        [hw.ValueState("a", "string")],
        [hw.ValueState("a", "boolean")],
        [hw.ValueState("a", "long"), hw.ListState("b", "long")],
        [hw.ValueState("a", "long", ttl=hw.Ttl("1 h"))],
        [],
    ],
)
def test_what_is_not_all_plain_numbers_is_not_packed(declarations: list[Any]) -> None:
    entries, states = open_states(declarations, "step", pa.int64(), Cursor())
    assert not isinstance(entries, PackedTable)
    assert not any(isinstance(state, NumberHandle) for state in states.values())


@pytest.mark.parametrize("ddl", ["tinyint", "smallint", "int", "long", "double"])
def test_numbers_of_any_width_are_packed(ddl: str) -> None:
    cursor = Cursor()
    entries, states = open_states([hw.ValueState("a", ddl)], "step", pa.string(), cursor)
    assert isinstance(entries, PackedTable)
    cursor.entry = entries.entry("k")
    states["a"].set(100)  # type: ignore[attr-defined]
    assert states["a"].dump().to_pylist() == [{"op": 0, "key": "k", "value": 100}]
    assert states["a"].dump().equals(states["a"].changes())  # type: ignore[arg-type]
