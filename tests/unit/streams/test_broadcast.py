from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import headwater as hw
from headwater.graph.describe import describe
from headwater.plan.explain import explain
from headwater.plan.plan import plan_job

RULES = hw.MapState("rules", "string", "bigint")
OUT = "k string, n long"


class Plain(hw.BroadcastFunction):
    def process(self, event: Any, ctx: hw.BroadcastContext) -> Iterator[Any]:
        yield event

    def process_broadcast(self, event: Any, ctx: hw.BroadcastContext) -> None:
        ctx.broadcast_state(RULES).put(event.k, event.n)


class Keyed(hw.KeyedBroadcastFunction):
    total = hw.ValueState("bigint", default=0)

    def process(self, event: Any, ctx: hw.BroadcastContext) -> Iterator[Any]:
        yield event

    def process_broadcast(self, event: Any, ctx: hw.BroadcastContext) -> None:
        ctx.broadcast_state(RULES).put(event.k, event.n)


def streams() -> tuple[hw.Stream, hw.Stream]:
    env = hw.Environment("test", engine="local")
    return env.from_rows([], OUT, name="data"), env.from_rows([], OUT, name="rules")


def test_without_states_broadcast_is_a_partitioning() -> None:
    data, rules = streams()
    assert isinstance(rules.broadcast(), hw.Stream)
    assert isinstance(rules.broadcast(RULES), hw.BroadcastStream)
    data.connect(rules.broadcast())


def test_states_must_be_maps_with_a_name_each_its_own() -> None:
    _, rules = streams()
    with pytest.raises(hw.GraphError, match=r"'broadcast' keeps map states; got .*ListState.*; pass hw\.MapState"):
        rules.broadcast(hw.ListState("rules", "string"))  # type: ignore[call-overload]
    with pytest.raises(hw.GraphError, match=r"needs states with a name; .*hw\.MapState\('rules', 'string', 'double'\)"):
        rules.broadcast(hw.MapState("string", "bigint"))
    with pytest.raises(hw.StateError, match="'broadcast' declares the state 'rules' twice"):
        rules.broadcast(RULES, hw.MapState("rules", "string", "string"))


def test_a_function_knows_keys_if_and_only_if_its_stream_has_them() -> None:
    data, rules = streams()
    with pytest.raises(hw.GraphError, match=r"'keyed' needs a keyed stream; got a stream without key; call \.key_by"):
        data.connect(rules.broadcast(RULES)).process(Keyed(), OUT)
    with pytest.raises(hw.GraphError, match=r"beside a broadcast stream needs a hw\.KeyedBroadcastFunction on a keyed"):
        data.key_by("k").connect(rules.broadcast(RULES)).process(Plain(), OUT)

    class Forgetful(Plain):
        total = hw.ValueState("bigint")

    with pytest.raises(hw.GraphError, match=r"'forgetful' keeps state per key; got 'total'; make it a hw\.Keyed"):
        data.connect(rules.broadcast(RULES)).process(Forgetful(), OUT)


def test_functions_of_other_steps_are_refused() -> None:
    data, rules = streams()
    for function in (hw.CoProcessFunction(), hw.KeyedProcessFunction(), lambda row: row):
        with pytest.raises(hw.GraphError, match=r"beside a broadcast stream needs a hw\.KeyedBroadcastFunction"):
            data.key_by("k").connect(rules.broadcast(RULES)).process(function, OUT)  # type: ignore[arg-type]
        with pytest.raises(hw.GraphError, match=r"beside a broadcast stream needs a hw\.BroadcastFunction"):
            data.connect(rules.broadcast(RULES)).process(function, OUT)  # type: ignore[arg-type]
    with pytest.raises(hw.GraphError, match=r"needs a hw\.CoProcessFunction"):
        data.connect(rules).process(Plain(), OUT)  # type: ignore[arg-type]
    with pytest.raises(hw.GraphError, match=r"needs a hw\.KeyedProcessFunction"):
        data.key_by("k").process(Keyed(), OUT)


def test_a_broadcast_stream_is_only_given_to_connect() -> None:
    data, rules = streams()
    other, _ = streams()
    everywhere = rules.broadcast(RULES)
    for right in (data, everywhere):
        with pytest.raises(hw.GraphError, match=r"'connect' needs the data on the left; .*write data\.connect\(rules"):
            everywhere.connect(right)
    with pytest.raises(hw.GraphError, match="two environments"):
        other.connect(everywhere)
    with pytest.raises(hw.GraphError, match="'union' needs another stream"):
        data.union(everywhere)  # type: ignore[arg-type]


def test_keyed_and_broadcast_states_have_different_names() -> None:
    data, rules = streams()

    class Twice(Keyed):
        kept = hw.ValueState("rules", "bigint")

    with pytest.raises(hw.GraphError, match="'twice' needs keyed and broadcast states of different names; got 'rules'"):
        data.key_by("k").connect(rules.broadcast(RULES)).process(Twice(), OUT)


def test_a_step_tells_what_it_reads_and_keeps() -> None:
    data, rules = streams()
    step = data.key_by("k").connect(rules.broadcast(RULES)).process(Keyed(), OUT, name="watch")
    step.sink(hw.connectors.memory())
    graph = step._env.graph
    assert "broadcast_process watch <- data by key_by(k) + rules by broadcast : k string, n bigint" in describe(graph)
    plan = plan_job(graph, 2, 128)
    assert "broadcast_process watch by broadcast, key_by(k) keeps total: value, rules: broadcast" in explain(plan)
    (node,) = plan.entries(1)
    assert node.kept() == {
        "key": "k: string",
        "states": {"total": ["value", "bigint"]},
        "broadcast states": {"rules": ["map", "string", "bigint"]},
    }
