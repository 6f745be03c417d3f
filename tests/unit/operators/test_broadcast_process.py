"""What a function beside a broadcast stream may do, where, and what is stored of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import headwater as hw
from headwater.state.records import unpack
from headwater.testing import Harness

RULES = hw.MapState("rules", "string", "struct<least:bigint,tags:array<string>>")
INPUTS = {"data": "k string, n long", "rules": "k string, n long"}
OUT = "what string"
Action = Callable[["Acting", Any, hw.BroadcastContext], Any]


def nothing(function: Acting, event: Any, ctx: hw.BroadcastContext) -> None:
    """Do nothing."""


def put(function: Acting, event: Any, ctx: hw.BroadcastContext) -> None:
    ctx.broadcast_state(RULES).put(event.k, (event.n, ["a"]))


class Acting(hw.KeyedBroadcastFunction):
    """Does as the test says, and shows what that gave."""

    total = hw.ValueState("bigint", default=0)
    seen = hw.ListState("bigint")

    def __init__(self, on_data: Action = nothing, on_rule: Action = put, on_timer: Action = nothing) -> None:
        self._on_data, self._on_rule, self._on_timer = on_data, on_rule, on_timer

    def process(self, event: Any, ctx: hw.BroadcastContext) -> Iterator[Any]:
        self.total.set(self.total.get() + event.n)
        ctx.timers.event_time(1000)
        yield (repr(self._on_data(self, event, ctx)),)

    def process_broadcast(self, event: Any, ctx: hw.BroadcastContext) -> Iterator[Any]:
        yield (repr(self._on_rule(self, event, ctx)),)

    def on_timer(self, timer: hw.Timer, ctx: hw.BroadcastContext) -> Iterator[Any]:
        yield (repr(self._on_timer(self, timer, ctx)),)


def build(function: hw.BroadcastFunction) -> Callable[..., hw.Stream]:
    return lambda data, rules: data.key_by("k").connect(rules.broadcast(RULES)).process(function, OUT, name="watch")


def given(on_data: Action = nothing, on_rule: Action = put, on_timer: Action = nothing) -> Harness:
    """A harness with a rule and the state of two keys."""
    harness = Harness(build(Acting()), INPUTS)
    harness.push(("r", 3), to="rules")
    harness.push_all([("b", 1), ("a", 2)], to="data")
    return Harness.restore(build(Acting(on_data, on_rule, on_timer)), INPUTS, harness.snapshot())


WRITES: list[Action] = [
    lambda f, e, ctx: ctx.broadcast_state(RULES).put("r", (1, [])),
    lambda f, e, ctx: ctx.broadcast_state(RULES).put("r", None),
    lambda f, e, ctx: ctx.broadcast_state(RULES).put_all({}),
    lambda f, e, ctx: ctx.broadcast_state(RULES).remove("not there"),
    lambda f, e, ctx: ctx.broadcast_state("rules").clear(),
]
READ_ONLY = r"(?s)step 'watch'.*broadcast state 'rules' is the same on every subtask.*; write it in process_broadcast"


@pytest.mark.parametrize("write", WRITES)
def test_data_rows_and_timers_cannot_write_broadcast_state(write: Action) -> None:
    with pytest.raises(hw.UserCodeError, match=READ_ONLY):
        given(on_data=write).push(("a", 1), to="data")
    with pytest.raises(hw.UserCodeError, match=READ_ONLY):
        given(on_timer=write).watermark(1000)


def test_a_handle_that_was_kept_cannot_be_written_through_either() -> None:
    def keep(function: Acting, event: Any, ctx: hw.BroadcastContext) -> None:
        function.kept = ctx.broadcast_state(RULES)  # type: ignore[attr-defined]

    harness = given(lambda f, e, ctx: f.kept.clear(), keep)  # type: ignore[attr-defined]
    harness.push(("x", 1), to="rules")
    with pytest.raises(hw.UserCodeError, match=READ_ONLY):
        harness.push(("a", 1), to="data")


def test_everything_can_be_read_everywhere() -> None:
    def read(function: Acting, event: Any, ctx: hw.BroadcastContext) -> Any:
        rules = ctx.broadcast_state(RULES)
        assert rules.contains("r")
        assert "r" in rules
        assert not rules.is_empty()
        assert rules.get("none", 7) == 7
        assert [*rules] == rules.keys() == ["r"]
        assert rules.items() == [("r", rules.get("r"))]
        return rules.values()

    harness = given(read, read, read)
    harness.push(("a", 1), to="data")
    harness.push(("x", 1), to="rules")
    harness.watermark(1000)
    assert {row.what for row in harness.take()} == {"[Row(least=3, tags=['a'])]"}


def test_changing_what_was_read_changes_no_state() -> None:
    def change(function: Acting, event: Any, ctx: hw.BroadcastContext) -> Any:
        rules = ctx.broadcast_state(RULES)
        rules.get("r").tags.append("x")
        rules.values()[0].tags.append("y")
        rules.items()[0][1].tags.clear()
        return rules.get("r").tags

    harness = given(change, change)
    harness.push(("a", 1), to="data")
    harness.push(("x", 1), to="rules")
    assert harness.take() == [("['a']",), ("['a']",)]


def test_a_broadcast_row_has_no_key_no_keyed_state_and_no_timers() -> None:
    for action in (
        lambda f, e, ctx: ctx.key,
        lambda f, e, ctx: f.total.get(),
        lambda f, e, ctx: f.total.set(1),
        lambda f, e, ctx: f.seen.add(1),
    ):
        with pytest.raises(
            hw.UserCodeError,
            match=r"step 'watch' failed at timestamp 5, .*: .*only in process and on_timer",
        ):
            given(on_rule=action).push(("x", 1), at=5, to="rules")
    for name in ("event_time", "processing_time", "delete_event_time", "delete_processing_time"):
        refused = r"step 'watch': timers belong to keys and a broadcast row has none; set them in process"
        with pytest.raises(hw.UserCodeError, match=refused):
            given(on_rule=lambda f, e, ctx, n=name: getattr(ctx.timers, n)(5)).push(("x", 1), to="rules")


def test_without_keys_there_are_no_timers() -> None:
    class Timed(hw.BroadcastFunction):
        def process(self, event: Any, ctx: hw.BroadcastContext) -> None:
            ctx.timers.event_time(5)

    harness = Harness(lambda d, r: d.connect(r.broadcast(RULES)).process(Timed(), OUT), INPUTS)
    with pytest.raises(hw.UserCodeError, match="timers belong to keys and its input has none; use key_by before"):
        harness.push(("a", 1), to="data")


def test_a_state_that_is_not_there_is_told_with_those_that_are() -> None:
    for unknown in (hw.MapState("other", "string", "string"), "other"):
        with pytest.raises(hw.UserCodeError, match="there is no broadcast state 'other'; its stream brings 'rules'"):
            given(lambda f, e, ctx, s=unknown: ctx.broadcast_state(s)).push(("a", 1), to="data")
    with pytest.raises(
        hw.UserCodeError, match="'rules' is no keyed state of its function; it declares 'total', 'seen'"
    ):
        given(on_rule=lambda f, e, ctx: ctx.apply_to_keyed_state(RULES, print)).push(("x", 1), to="rules")
    with pytest.raises(hw.StateError, match=r"or it is broadcast state, which ctx\.broadcast_state gives"):
        RULES.get("r")


def test_a_value_that_does_not_fit_is_told() -> None:
    wrong: Action = lambda f, e, ctx: ctx.broadcast_state(RULES).put("r", ("many", []))  # noqa: E731
    with pytest.raises(hw.UserCodeError, match=r"step 'watch', state 'rules', .*value \('many', \[\]\) does not fit"):
        given(on_rule=wrong).push(("x", 1), to="rules")


def show(function: Acting, event: Any, ctx: hw.BroadcastContext) -> Any:
    found: list[Any] = []
    ctx.apply_to_keyed_state(function.total, lambda key, total: found.append((key, total.get())))
    return found


def test_keys_are_gone_through_in_their_order_however_state_came_to_be() -> None:
    harness = Harness(build(Acting(on_rule=show)), INPUTS)
    for key in ("m", "z", "a", "k", None):
        harness.push((key, 1), to="data")
    store = harness._cluster.stores[1, 0]
    rebuilt = Harness(build(Acting(on_rule=show)), INPUTS)
    rebuilt._cluster.stores[1, 0] = copy.deepcopy(store)
    restored = Harness.restore(build(Acting(on_rule=show)), INPUTS, harness.snapshot())
    for one in (harness, rebuilt, restored):
        one.take()
        one.push(("x", 1), to="rules")
        assert one.take() == [(repr([("a", 1), ("k", 1), ("m", 1), ("z", 1), (None, 1)]),)]


def test_what_is_written_for_a_key_is_stored_and_nothing_else() -> None:
    def halve(function: Acting, event: Any, ctx: hw.BroadcastContext) -> None:
        def change(key: Any, total: Any) -> None:
            if key == "a":
                total.clear()
            elif key == "b":
                total.set(total.get() * 10)
                function.seen.add(total.get())

        ctx.apply_to_keyed_state(Acting.total, change)

    harness = Harness(build(Acting(on_rule=halve)), INPUTS)
    harness.push_all([("b", 1), ("a", 2), ("c", 3)], to="data")
    harness.push(("x", 1), to="rules")
    store = harness._cluster.stores[1, 0]
    _, sections = unpack(store.read(store.head().sequence))  # type: ignore[union-attr,arg-type]
    changed = {name: table.drop_columns(["op"]).to_pylist() for _, name, table in sections}
    assert changed["total"] == [{"key": "a", "value": None}, {"key": "b", "value": 10}]
    assert changed["seen"] == [{"key": "b", "index": 0, "value": 10}]
    assert harness.state_sizes()["watch"] == {"total": 2, "seen": 1, "@timers.event": 3}


def test_only_broadcast_rows_go_through_keys_and_only_to_their_state() -> None:
    with pytest.raises(hw.UserCodeError, match="a row or timer reaches its own key only; do it in process_broadcast"):
        given(show).push(("a", 1), to="data")

    def write(function: Acting, event: Any, ctx: hw.BroadcastContext) -> None:
        ctx.apply_to_keyed_state(function.total, lambda key, total: ctx.broadcast_state(RULES).clear())

    with pytest.raises(hw.UserCodeError, match=READ_ONLY):
        given(on_rule=write).push(("x", 1), to="rules")

    def set_timers(function: Acting, event: Any, ctx: hw.BroadcastContext) -> None:
        ctx.apply_to_keyed_state(function.total, lambda key, total: ctx.timers.event_time(5))

    with pytest.raises(hw.UserCodeError, match="timers belong to keys and a broadcast row has none"):
        given(on_rule=set_timers).push(("x", 1), to="rules")


def test_an_error_names_the_key_whose_state_was_at_hand_and_is_told_once() -> None:
    def fail(function: Acting, event: Any, ctx: hw.BroadcastContext) -> None:
        ctx.apply_to_keyed_state(function.total, lambda key, total: 1 // (total.get() - 1))

    with pytest.raises(hw.UserCodeError) as told:
        given(on_rule=fail).push(("x", 1), at=7, to="rules")
    assert (told.value.step, told.value.key, told.value.timestamp) == ("watch", "b", 7)
    assert str(told.value).count("failed") == 1


def test_an_epoch_stores_what_changed_of_broadcast_state_and_not_all_of_it() -> None:
    harness = Harness(build(Acting()), INPUTS)
    harness.push_all([(f"r{n}", n) for n in range(500)], to="rules")
    harness.push(("r7", -7), to="rules")
    store = harness._cluster.stores[1, 0]
    _, sections = unpack(store.read(store.head().sequence))  # type: ignore[union-attr,arg-type]
    ((name, table),) = [(name, table) for _, name, table in sections if name == "rules"]
    assert (name, table["entry"].to_pylist()) == ("rules", ["r7"])
    assert harness.state_sizes() == {"watch": {"rules": 500}}


def test_of_an_epoch_broadcast_rows_come_first() -> None:
    env = hw.Environment("order", engine="local", parallelism=1)
    data = env.from_rows([("a", 1), ("a", 2)], INPUTS["data"], hw.Watermarks.monotonous("n"), name="data")
    rules = env.from_rows([("r", 100)], INPUTS["rules"], hw.Watermarks.monotonous("n"), name="rules")
    read: Action = lambda f, e, ctx: ctx.broadcast_state(RULES).keys()  # noqa: E731
    step = data.key_by("k").connect(rules.broadcast(RULES)).process(Acting(read), OUT)
    assert [row.what for row in step.collect()] == ["None", "['r']", "['r']", "None"]
