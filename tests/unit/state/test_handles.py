from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import headwater as hw
from headwater.data.schema import parse_type
from headwater.declared import declared_states
from headwater.descriptors import StateDeclaration
from headwater.state.backend import StateBackend
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor
from headwater.state.memory_backend import MEMORY


class Sum(hw.AggregateFunction[int, list[int], int]):
    def create(self) -> list[int]:
        return [0]

    def add(self, accumulator: list[int], value: int) -> list[int]:
        accumulator[0] += value
        return accumulator

    def result(self, accumulator: list[int]) -> int:
        return accumulator[0]


class Opened:
    """One state of a step keyed by a string, with the current key at will."""

    def __init__(
        self, declaration: StateDeclaration, key_type: str = "string", *, backend: StateBackend = MEMORY
    ) -> None:
        declaration.name = declaration.name or "it"
        self._cursor = Cursor()
        self.entries, tables = open_states([declaration], "step", parse_type(key_type), self._cursor, backend=backend)
        self.table: Any = tables[declaration.name]

    def __getitem__(self, key: Any) -> Any:
        """The handle, for a key."""
        self._cursor.entry = self.entries.entry(key)
        return self.table


def test_a_value_belongs_to_its_key(backend: StateBackend) -> None:
    state = Opened(hw.ValueState("bigint"), backend=backend)
    state["a"].set(1)
    state["b"].set(2)
    assert (state["a"].get(), state["b"].get(), state["c"].get()) == (1, 2, None)
    state["a"].clear()
    assert (state["a"].get(), state["b"].get()) == (None, 2)


def test_a_default_is_given_until_a_value_is_set_and_after_it_is_gone(backend: StateBackend) -> None:
    state = Opened(hw.ValueState("bigint", default=7), backend=backend)
    assert state["a"].get() == 7
    state["a"].set(0)
    assert state["a"].get() == 0
    state["a"].set(None)
    assert state["a"].get() == 7
    assert state.table.changes() is None


def test_a_default_must_fit() -> None:
    with pytest.raises(hw.StateError, match=r"default 'x' does not fit int64: expected int, got str"):
        hw.ValueState("bigint", default="x")


def test_a_mutable_default_is_copied(backend: StateBackend) -> None:
    state = Opened(hw.ValueState("array<int>", default=[1]), backend=backend)
    state["a"].get().append(2)
    assert state["a"].get() == [1]


@pytest.mark.parametrize(
    ("ddl", "value"), [("array<int>", [1]), ("map<string,int>", {"a": 1}), ("struct<a:array<int>>", {"a": [1]})]
)
def test_what_goes_in_and_out_of_nested_state_is_a_copy(backend: StateBackend, ddl: str, value: Any) -> None:
    state = Opened(hw.ValueState(ddl), backend=backend)
    state["k"].set(value)
    before = state["k"].get()
    for thing in (value, state["k"].get()):
        inner = thing["a"] if isinstance(thing, dict) and ddl.startswith("struct") else thing
        inner = inner[0] if isinstance(inner, tuple) else inner
        inner.clear()
    assert state["k"].get() == before


def test_values_of_lists_and_maps_are_copies(backend: StateBackend) -> None:
    listed = Opened(hw.ListState("array<int>"), backend=backend)
    listed["k"].add([1])
    listed["k"].get()[0].append(2)
    listed["k"].get().append([3])
    assert listed["k"].get() == [[1]]
    mapped = Opened(hw.MapState("string", "array<int>"), backend=backend)
    mapped["k"].put("x", [1])
    mapped["k"].get("x").append(2)
    mapped["k"].items()[0][1].append(2)
    mapped["k"].values()[0].append(2)
    assert mapped["k"].get("x") == [1]


def test_a_list_keeps_order_and_duplicates(backend: StateBackend) -> None:
    state = Opened(hw.ListState("bigint"), backend=backend)
    state["a"].add(2)
    state["a"].add_all([1, 2])
    state["a"].add_all([])
    assert state["a"].get() == [2, 1, 2]
    assert state["b"].get() == []
    state["a"].update(x for x in (5, 6))
    assert state["a"].get() == [5, 6]
    state["a"].update([])
    assert state["a"].get() == []


def test_a_list_can_be_updated_with_what_it_holds(backend: StateBackend) -> None:
    state = Opened(hw.ListState("bigint"), backend=backend)
    state["a"].add_all([3, 1, 2])
    state["a"].update(sorted(state["a"].get()))
    assert state["a"].get() == [1, 2, 3]


def test_a_map_works_like_a_dictionary(backend: StateBackend) -> None:
    state = Opened(hw.MapState("string", "bigint"), backend=backend)
    handle = state["a"]
    assert handle.is_empty()
    handle.put("x", 1)
    handle.put_all({"y": 2, "z": 3})
    handle.put("x", 4)
    assert (handle.get("x"), handle.get("w"), handle.get("w", 9)) == (4, None, 9)
    assert (handle.keys(), handle.values()) == (["x", "y", "z"], [4, 2, 3])
    assert handle.items() == [("x", 4), ("y", 2), ("z", 3)]
    assert list(handle) == ["x", "y", "z"]
    assert ("y" in handle, handle.contains("w"), handle.is_empty()) == (True, False, False)
    handle.remove("x")
    handle.remove("x")
    handle.put("y", None)
    assert handle.keys() == ["z"]
    handle.remove("z")
    assert handle.is_empty()
    assert state["b"].items() == []


def test_a_map_can_be_changed_while_it_is_walked(backend: StateBackend) -> None:
    handle = Opened(hw.MapState("int", "int"), backend=backend)["a"]
    handle.put_all({1: 1, 2: 2, 3: 3})
    for entry in handle:
        handle.remove(entry)
    assert handle.is_empty()


@pytest.mark.parametrize(
    ("ddl", "entry"),
    [
        ("timestamp", dt.datetime(2020, 1, 1)),  # noqa: DTZ001
        ("struct<a:int,b:string>", {"a": 1, "b": "x"}),
        ("binary", bytearray(b"x")),
        ("decimal(10,2)", 1),
    ],
)
def test_a_map_finds_an_entry_by_what_it_was_put_with(backend: StateBackend, ddl: str, entry: Any) -> None:
    handle = Opened(hw.MapState(ddl, "int"), backend=backend)["a"]
    handle.put(entry, 5)
    assert handle.get(entry) == 5
    assert handle.contains(entry)
    assert entry in handle
    handle.remove(entry)
    assert handle.is_empty()


def test_reducing_state_combines(backend: StateBackend) -> None:
    state = Opened(hw.ReducingState("array<int>", reduce=lambda kept, new: kept + new), backend=backend)
    assert state["a"].get() is None
    state["a"].add([1])
    state["a"].add([2])
    state["b"].add([9])
    assert (state["a"].get(), state["b"].get()) == ([1, 2], [9])
    state["a"].clear()
    assert state["a"].get() is None


def test_aggregating_state_keeps_the_accumulator_and_gives_the_result(backend: StateBackend) -> None:
    state = Opened(hw.AggregatingState("array<bigint>", aggregate=Sum()), backend=backend)
    assert state["a"].get() is None
    for n in (1, 2, 3):
        state["a"].add(n)
    assert state["a"].get() == 6
    assert state.table.dump().to_pylist() == [{"op": 0, "key": "a", "value": [6]}]
    state["a"].clear()
    assert state["a"].get() is None


@pytest.mark.parametrize(
    ("declaration", "act", "why"),
    [
        (hw.ValueState("bigint"), lambda h: h.set(1.5), "value 1.5 does not fit: expected int, got float"),
        (hw.ValueState("bigint"), lambda h: h.set(True), "expected int, got bool"),
        (hw.ValueState("int"), lambda h: h.set(1 << 31), "does not fit 32 bits"),
        (hw.MapState("string", "int"), lambda h: h.contains(1), "expected str, got int"),
        (hw.ListState("string"), lambda h: h.add(1), "expected str, got int"),
        (hw.ListState("string"), lambda h: h.add(None), "expected str, got NoneType"),
        (hw.ListState("string"), lambda h: h.update(["a", 1]), "expected str, got int"),
        (hw.MapState("string", "int"), lambda h: h.put(1, 1), "expected str, got int"),
        (hw.MapState("string", "int"), lambda h: h.put("a", "b"), "expected int, got str"),
        (hw.ReducingState("int", reduce=lambda a, b: a + b), lambda h: h.add(0.5), "expected int, got float"),
        (hw.AggregatingState("int", aggregate=Sum()), lambda h: h.add(1), "expected int, got list"),
        (hw.ValueState("decimal(5,2)"), lambda h: h.set(1.5), "expected Decimal, got float"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_step_state_and_key(
    backend: StateBackend, declaration: Any, act: Any, why: str
) -> None:
    state = Opened(declaration, backend=backend)
    with pytest.raises(hw.StateError, match=r"step 'step', state 'it', key 'a': value ") as refused:
        act(state["a"])
    assert why in str(refused.value)
    assert state.table.changes() is None


def test_an_int_of_more_than_64_bits_is_refused_at_the_latest_when_it_would_be_stored(backend: StateBackend) -> None:
    state = Opened(hw.ValueState("bigint"), backend=backend)

    def store() -> None:
        state["a"].set(1 << 63)
        state.table.changes()

    with pytest.raises((hw.StateError, hw.RowError), match=r"state 'it'.*9223372036854775808.*does not fit 64 bits"):
        store()


def test_an_int_is_kept_as_a_double_where_doubles_are_declared(backend: StateBackend) -> None:
    state = Opened(hw.ValueState("double"), backend=backend)
    state["a"].set(1)
    assert isinstance(state["a"].get(), float)


@pytest.mark.parametrize(
    "use",
    [
        lambda: hw.ValueState("int").get(),
        lambda: hw.ListState("int").add(1),
        lambda: hw.MapState("int", "int").put(1, 1),
        lambda: 1 in hw.MapState("int", "int"),
        lambda: hw.ReducingState("int", reduce=max).add(1),
        lambda: hw.AggregatingState("int", aggregate=Sum()).get(),
        lambda: hw.ValueState("int").clear(),
    ],
)
def test_state_is_reachable_only_while_the_job_runs(use: Any) -> None:
    with pytest.raises(hw.StateError, match="reachable only while the job runs the function"):
        use()


def test_state_is_named_by_its_attribute_or_by_itself() -> None:
    class Function(hw.KeyedProcessFunction):
        first = hw.ValueState("int")
        second = hw.ValueState("named", "int")
        third = hw.MapState("int", "int", name="given")

    assert [(s.name, s.attribute) for s in declared_states(Function(), "step")] == [
        ("first", "first"),
        ("named", "second"),
        ("given", "third"),
    ]


def test_a_subclass_has_the_states_of_its_base_first() -> None:
    class Base(hw.KeyedProcessFunction):
        a = hw.ValueState("int")
        b = hw.ValueState("int")

    class Derived(Base):
        c = hw.ListState("int")
        a = hw.ValueState("string")  # type: ignore[assignment]

    assert [(s.name, s.kind) for s in declared_states(Derived(), "s")] == [
        ("a", "value"),
        ("b", "value"),
        ("c", "list"),
    ]


def test_one_name_for_two_states_is_refused() -> None:
    class Function(hw.KeyedProcessFunction):
        a = hw.ValueState("same", "int")
        b = hw.ListState("same", "int")

    with pytest.raises(hw.StateError, match="step 'step' declares the state 'same' twice"):
        declared_states(Function(), "step")


@pytest.mark.parametrize("make", [hw.ValueState, lambda: hw.MapState("int"), lambda: hw.ListState("a", "b", "c")])
def test_a_declaration_takes_its_types(make: Any) -> None:
    with pytest.raises(TypeError, match="DDL type"):
        make()


KEYS: list[tuple[str, list[Any]]] = [
    ("string", ["b", "a", None, ""]),
    ("bigint", [2, -1, None]),
    ("boolean", [True, False, None]),
    ("binary", [b"b", b"", None]),
    ("date", [dt.date(2020, 1, 1), dt.date(1960, 1, 1)]),
    ("timestamp", [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(1960, 1, 1, tzinfo=dt.UTC)]),
    ("interval", [dt.timedelta(1), dt.timedelta(-1)]),
    ("decimal(5,2)", [3, 2]),
    ("struct<a:int,b:string>", [(2, "x"), (1, None), (None, "y"), None]),
    ("struct<a:int,b:struct<c:int>>", [(2, (1,)), (1, (2,)), (1, None)]),
]


@pytest.mark.parametrize(("ddl", "keys"), KEYS)
def test_a_dump_is_the_same_in_whatever_order_keys_came(backend: StateBackend, ddl: str, keys: list[Any]) -> None:
    forward, backward = (
        Opened(hw.ValueState("int"), ddl, backend=backend),
        Opened(hw.ValueState("int"), ddl, backend=backend),
    )
    for number, key in enumerate(keys):
        forward[key].set(number)
    for number, key in reversed(list(enumerate(keys))):
        backward[key].set(number)
    assert forward.table.dump() == backward.table.dump()
    assert len(forward.table.dump()) == len(keys)


def test_changes_tell_what_changed_since_they_were_last_told(backend: StateBackend) -> None:
    state = Opened(hw.ValueState("int"), backend=backend)
    state["a"].set(1)
    state["b"].set(2)
    assert [(r["op"], r["key"], r["value"]) for r in state.table.changes().to_pylist()] == [(0, "a", 1), (0, "b", 2)]
    assert state.table.changes() is None
    state["a"].clear()
    state["c"].set(3)
    state["c"].clear()
    assert [(r["op"], r["key"], r["value"]) for r in state.table.changes().to_pylist()] == [(1, "a", None)]
    assert len(state.table) == 1


def test_appending_to_a_list_tells_only_what_was_appended(backend: StateBackend) -> None:
    state = Opened(hw.ListState("int"), backend=backend)
    state["a"].add_all(range(100))
    assert len(state.table.changes()) == 100
    state["a"].add(7)
    assert state.table.changes().to_pylist() == [{"op": 0, "key": "a", "index": 100, "value": 7}]


def test_changing_a_map_entry_tells_only_that_entry(backend: StateBackend) -> None:
    state = Opened(hw.MapState("int", "int"), backend=backend)
    state["a"].put_all({n: n for n in range(100)})
    assert len(state.table.changes()) == 100
    state["a"].put(5, 0)
    state["a"].remove(6)
    changes = [(r["op"], r["entry"], r["value"]) for r in state.table.changes().to_pylist()]
    assert changes == [(1, 6, None), (0, 5, 0)]


@pytest.mark.parametrize("declaration", [hw.ListState("int"), hw.MapState("int", "int")])
def test_what_came_and_went_between_two_deltas_leaves_nothing_behind(backend: StateBackend, declaration: Any) -> None:
    state = Opened(declaration, backend=backend)
    for _ in range(2):
        handle = state["a"]
        handle.add(1) if declaration.kind == "list" else handle.put(1, 1)
        handle.clear()
        assert state.table.changes() is None
    handle = state["a"]
    handle.add(1) if declaration.kind == "list" else handle.put(1, 1)
    assert [row["op"] for row in state.table.changes().to_pylist()] == [0]


def test_a_key_without_state_takes_no_room() -> None:
    state = Opened(hw.ValueState("int"))
    for key in "abc":
        assert state[key].get() is None
    assert state.entries.entries == {}
    state["a"].set(1)
    state.table.changes()
    state["a"].clear()
    state.table.changes()
    assert (state.entries.entries, len(state.table)) == ({}, 0)
