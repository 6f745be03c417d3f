"""Operator state: what a function may declare and do, what it sees after a restart, and what its changes cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater.data.batch import Batch
from headwater.data.schema import Schema
from headwater.graph.edges import REBALANCE
from headwater.job.identity import shape_of
from headwater.operators.contract import StepTime
from headwater.operators.process.stateful import StatefulProcessOperator
from headwater.operators.registry import operator_for
from headwater.plan.plan import plan_job
from headwater.testing import Harness

SCHEMA = Schema.of("n long")


class Gather(hw.ProcessFunction):
    """Does what the number says, and shows all it holds."""

    seen = hw.OperatorListState("bigint")
    odd = hw.UnionListState("odd-ones", "bigint")

    def open(self) -> None:
        self.opened_with = self.seen.get()

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        if event.n < 0:
            self.seen.clear()
        elif event.n == 0:
            self.seen.update(self.seen.get()[-1:])
        else:
            self.seen.add(event.n)
        if event.n % 2:
            self.odd.add(event.n)
        yield self.seen.get(), self.odd.get(), self.opened_with


OUT = "seen array<bigint>, odd array<bigint>, opened_with array<bigint>"


def build(stream: hw.Stream) -> hw.Stream:
    return stream.process(Gather(), OUT)


def operator(function: hw.ProcessFunction | None = None) -> StatefulProcessOperator:
    env = hw.Environment("one", engine="local")
    env.from_rows([], SCHEMA).process(function or Gather(), OUT).sink(hw.connectors.memory())
    node = next(node for node in env.graph if node.is_stateful)
    made = operator_for(node, "gather", [SCHEMA])
    assert isinstance(made, StatefulProcessOperator)
    return made


def give(made: StatefulProcessOperator, *numbers: int) -> list[Any]:
    found: list[Any] = []
    batch = Batch(pa.table({"n": numbers}, schema=SCHEMA.arrow), np.arange(len(numbers), dtype=np.int64))
    made.process(batch, StepTime(-5, 7), lambda tag, result: found.extend(result.table.to_pylist()))
    made.advance_clock(StepTime(-5, 7), lambda tag, result: None)
    return found


def test_lists_are_added_to_replaced_and_cleared() -> None:
    found = [row["seen"] for row in give(operator(), 1, 2, 3, 0, 4, -1, 5)]
    assert found == [[1], [1, 2], [1, 2, 3], [3], [3, 4], [], [5]]


def test_open_sees_what_was_restored() -> None:
    harness = Harness(build, "n long")
    for n in (1, 2, 3):
        harness.push((n,))
    assert harness.take()[-1] == ([1, 2, 3], [1, 3], [])
    other = Harness.restore(build, "n long", harness.snapshot())
    other.push((4,))
    assert other.take() == [([1, 2, 3, 4], [1, 3], [1, 2, 3])]


def test_a_copy_that_is_brought_up_to_date_opens_its_function_again() -> None:
    """Another worker went on with the state meanwhile."""
    one, other = operator(), operator()
    assert give(one, 1)[0]["opened_with"] == []
    other.tables()["seen"].apply(one.tables()["seen"].dump())
    assert give(other, 8)[0]["opened_with"] == [1]
    delta = other.tables()["seen"].changes()
    assert delta is not None
    one.tables()["seen"].apply(delta)
    assert give(one, 9) == [{"seen": [1, 8, 9], "odd": [1, 9], "opened_with": [1, 8]}]


def test_a_change_costs_what_changed() -> None:
    class Quiet(hw.ProcessFunction):
        seen = hw.OperatorListState("bigint")

        def process(self, event: Any, ctx: hw.Context) -> None:
            self.seen.add(event.n)

    made = operator(Quiet())
    give(made, *range(100_000))
    seen = made.tables()["seen"]
    assert len(seen) == 100_000
    first = seen.changes()
    assert first is not None
    assert len(first) == 100_000
    give(made, 7)
    delta = seen.changes()
    assert delta is not None
    assert delta.to_pylist() == [{"op": 0, "key": None, "index": 100_000, "value": 7}]
    assert seen.changes() is None


def test_what_was_dumped_is_what_comes_back() -> None:
    made, other = operator(), operator()
    give(made, 1, 2, 3, 0, 4)
    for name, table in made.tables().items():
        other.tables()[name].apply(table.dump())
    assert [t.dump() for t in other.tables().values()] == [t.dump() for t in made.tables().values()]
    assert [len(t) for t in other.tables().values()] == [2, 2]
    made.reset()
    assert [len(t) for t in made.tables().values()] == [0, 0]


def test_the_context_knows_time_and_has_side_outputs_but_neither_key_nor_timers() -> None:
    tag = hw.OutputTag("aside", "n long")

    class Look(hw.ProcessFunction):
        seen = hw.OperatorListState("bigint")

        def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
            if event.n < 0:
                ctx.timers.event_time(9)
            ctx.output(tag, event)
            yield ctx.timestamp, ctx.watermark, ctx.now, hasattr(ctx, "key")

    out = "at long, watermark long, now long, has_key boolean"
    harness = Harness(lambda stream: stream.process(Look(), out), "n long")
    harness.watermark(3)
    harness.advance_to(50)
    harness.push((1,), at=8)
    assert harness.take() == [(8, 3, 50, False)]
    assert harness.take(tag) == [(1,)]
    with pytest.raises(hw.UserCodeError, match=r"step 'look'.*timers belong to keys"):
        harness.push((-1,))


def test_state_must_not_be_changed_in_open() -> None:
    class Early(hw.ProcessFunction):
        seen = hw.OperatorListState("bigint")

        def open(self) -> None:
            self.seen.add(1)

    harness = Harness(lambda stream: stream.process(Early(), "n long"), "n long")
    with pytest.raises(hw.UserCodeError, match=r"step 'early' failed: .*'seen' can be read in open and not changed"):
        harness.push((1,))


def test_a_value_that_does_not_fit_is_told_with_its_step_and_state() -> None:
    class Wrong(hw.ProcessFunction):
        seen = hw.OperatorListState("bigint")

        def process(self, event: Any, ctx: hw.Context) -> None:
            self.seen.add("x")

    harness = Harness(lambda stream: stream.process(Wrong(), "n long"), "n long")
    with pytest.raises(hw.UserCodeError, match=r"step 'wrong' failed at timestamp 4, .*: .*state 'seen'.*got str"):
        harness.push((1,), at=4)


# -- the graph ----------------------------------------------------------------------------------------------------------


class Keyed(hw.KeyedProcessFunction):
    seen = hw.OperatorListState("bigint")


class KeyedWindow(hw.ProcessWindowFunction):
    seen = hw.UnionListState("bigint")


class Both(hw.CoProcessFunction):
    seen = hw.OperatorListState("bigint")


class Unkeyed(hw.ProcessFunction):
    total = hw.ValueState("bigint")


@pytest.fixture
def stream() -> hw.Stream:
    return hw.Environment("graph", engine="local", parallelism=2).from_rows([], "n long, at long")


def test_a_keyed_function_has_no_operator_state(stream: hw.Stream) -> None:
    keyed = stream.key_by("n")
    problem = "has operator state, which only a hw.ProcessFunction can have; got 'seen'; declare a hw.ListState"
    with pytest.raises(hw.GraphError, match=f"step 'keyed' {problem}"):
        keyed.process(Keyed(), "n long")
    with pytest.raises(hw.GraphError, match=problem):
        keyed.window(hw.tumbling("1 s")).process(KeyedWindow(), "n long")
    for left, right in ((keyed, keyed), (stream, stream)):
        with pytest.raises(hw.GraphError, match=problem):
            left.connect(right).process(Both(), "n long")


def test_a_function_without_key_has_no_keyed_state(stream: hw.Stream) -> None:
    problem = "step 'unkeyed' has no key, so it cannot have keyed state; got 'total'; use a hw.KeyedProcessFunction"
    for one in (stream, stream.key_by("n")):
        with pytest.raises(hw.GraphError, match=problem):
            one.process(Unkeyed(), "n long")


def test_rows_that_no_exchange_moves_are_dealt_out(stream: hw.Stream) -> None:
    step = stream.where("n > 0").union(stream.broadcast()).process(Gather(), OUT)
    node = stream._env.graph.node(step._flow.origin)
    assert [edge.exchange for edge in node.inputs[:1]] == [REBALANCE]
    assert [edge.exchange.kind for edge in node.inputs] == ["rebalance", "broadcast"]
    keyed = stream.key_by("n").process(Gather(), OUT, name="by_key")
    assert [e.exchange.kind for e in stream._env.graph.node(keyed._flow.origin).inputs] == ["key"]


def test_the_step_is_held_to_its_states(stream: hw.Stream) -> None:
    stream.process(Gather(), OUT).sink(hw.connectors.memory())
    plan = plan_job(stream._env.graph, 2, 128)
    assert shape_of(plan)["steps"]["gather"] == {
        "level": 1,
        "states": {"seen": ["operator_list", "bigint", "bigint"], "odd-ones": ["union_list", "bigint", "bigint"]},
    }
    assert "stateful_process gather by rebalance keeps seen: operator_list, odd-ones: union_list" in (
        stream._env.explain()
    )


def test_each_subtask_has_its_own_lists() -> None:
    harness = Harness(build, "n long", parallelism=3)
    for n in range(1, 7):
        harness.push((n,))
    assert sorted(row.seen for row in harness.take()) == [[1], [1, 4], [2], [2, 5], [3], [3, 6]]
