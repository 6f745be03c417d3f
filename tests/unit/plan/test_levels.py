from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import headwater as hw
from headwater.plan.plan import JobPlan, plan_job
from headwater.streams.stream import Stream

SCHEMA = "k string, n long"
ROWS = [("abc"[i % 3], i) for i in range(30)]


class Count(hw.KeyedProcessFunction):
    """Emits the key with how many rows of it came so far."""

    seen = hw.ValueState("bigint", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.seen.set(self.seen.get() + 1)
        yield event.k, self.seen.get()


class Sum(hw.KeyedProcessFunction):
    total = hw.ValueState("bigint", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.total.set(self.total.get() + event.n)
        yield event.k, self.total.get()


class Odd(hw.ProcessFunction):
    """Splits: even numbers go on, odd ones to the side."""

    tag = hw.OutputTag("odd", SCHEMA)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        if event.n % 2:
            ctx.output(self.tag, event)
        else:
            yield event


def source(env: hw.Environment, rows: list[Any] = ROWS) -> Stream:
    return env.from_rows(rows, SCHEMA, name=f"rows{len(list(env.graph))}")


def counted(stream: Stream, uid: str = "count") -> Stream:
    return stream.key_by("k").process(Count(), SCHEMA).with_uid(uid)


def summed(stream: Stream, uid: str = "sum") -> Stream:
    return stream.key_by("k").process(Sum(), SCHEMA).with_uid(uid)


def levels(env: hw.Environment, stream: Stream) -> dict[str, int]:
    stream.sink(hw.connectors.memory())
    plan = plan_job(env.graph, 2, 128)
    return {plan.graph.uid(plan.graph.node(node)): level for node, level in plan.level_of_entry.items()}


def plan_of(env: hw.Environment) -> JobPlan:
    return plan_job(env.graph, 2, 128)


@pytest.fixture(params=[1, 3])
def env(request: pytest.FixtureRequest) -> hw.Environment:
    return hw.Environment("levels", engine="local", parallelism=request.param, max_rows_per_epoch=7)


COUNTS = Counter((k, i + 1) for k in "abc" for i in range(10))


def test_stateless_steps_are_fused_into_the_source(env: hw.Environment) -> None:
    stream = source(env).map(lambda r: (r.k, r.n + 1)).where("n > 15").select("n")
    assert [row.n for row in stream.collect()] == list(range(16, 31))
    assert levels(env, stream) == {}
    assert plan_of(env).depth == 0


def test_a_keyed_step_is_one_level(env: hw.Environment) -> None:
    stream = counted(source(env))
    assert Counter(stream.collect()) == COUNTS
    assert levels(env, stream) == {"count": 1}


def test_chained_keyed_steps_are_a_level_each(env: hw.Environment) -> None:
    stream = summed(counted(source(env)).where("n <= 4").rebalance().map(lambda r: r))
    assert levels(env, stream) == {"count": 1, "map": 2, "sum": 3}
    highest = {row.k: row.n for row in sorted(stream.collect())}
    assert highest == {"a": 10, "b": 10, "c": 10}


def test_branches_share_a_level_and_one_read(env: hw.Environment) -> None:
    stream = source(env)
    both = counted(stream).union(summed(stream))
    assert levels(env, both) == {"count": 1, "sum": 1}
    sums = Counter((k, sum(n for key, n in ROWS[: i + 1] if key == k)) for i, (k, _) in enumerate(ROWS))
    assert Counter(both.collect()) == COUNTS + sums


def test_a_diamond_meets_again(env: hw.Environment) -> None:
    stream = source(env)
    even, odd = stream.where("n % 2 = 0"), stream.filter(lambda r: r.n % 2 == 1)
    met = counted(even.union(odd))
    assert levels(env, met) == {"count": 1}
    assert Counter(met.collect()) == COUNTS


def test_a_diamond_of_keyed_steps_meets_one_level_deeper(env: hw.Environment) -> None:
    stream = source(env)
    met = counted(counted(stream, "left").union(counted(stream, "right")), "met")
    assert levels(env, met) == {"left": 1, "right": 1, "met": 2}
    assert Counter(met.collect()) == Counter((k, i + 1) for k in "abc" for i in range(20))


def test_a_union_of_a_deep_and_a_shallow_stream_sits_below_the_deep_one(env: hw.Environment) -> None:
    stream = source(env)
    met = counted(counted(counted(stream, "one"), "two").union(stream), "met")
    assert levels(env, met) == {"one": 1, "two": 2, "met": 3}
    assert Counter(met.collect()) == Counter((k, i + 1) for k in "abc" for i in range(20))


def test_a_union_of_moved_and_unmoved_streams_keeps_every_row(env: hw.Environment) -> None:
    stream = source(env)
    mixed = stream.rebalance().union(counted(stream)).map(lambda r: r)
    met = counted(mixed, "met")
    assert levels(env, met) == {"count": 1, "map": 1, "met": 2}
    assert Counter(met.collect()) == Counter((k, i + 1) for k in "abc" for i in range(20))


def test_a_stream_united_with_itself_has_every_row_twice(env: hw.Environment) -> None:
    stream = source(env)
    assert Counter(stream.union(stream).map(lambda r: r).collect()) == Counter(ROWS * 2)
    assert Counter(counted(stream.union(stream)).collect()) == Counter((k, i + 1) for k in "abc" for i in range(20))


def test_several_sources_meet(env: hw.Environment) -> None:
    met = counted(source(env, ROWS[:15]).union(source(env, ROWS[15:]), source(env, [])))
    assert Counter(met.collect()) == COUNTS


def test_several_sinks_get_their_own_rows_in_one_run(env: hw.Environment) -> None:
    sinks = {name: hw.connectors.memory() for name in ("all", "even", "odd", "counts")}
    stream = source(env)
    split = stream.process(Odd(), SCHEMA)
    stream.sink(sinks["all"])
    split.sink(sinks["even"])
    split.side_output(Odd.tag).sink(sinks["odd"])
    counted(split.side_output(Odd.tag)).sink(sinks["counts"])
    env.run()
    assert Counter(sinks["all"].rows) == Counter(ROWS)
    assert Counter(sinks["even"].rows) == Counter(row for row in ROWS if row[1] % 2 == 0)
    assert Counter(sinks["odd"].rows) == Counter(row for row in ROWS if row[1] % 2)
    assert Counter(sinks["counts"].rows) == Counter((k, i + 1) for k in "abc" for i in range(5))


@pytest.mark.parametrize("move", ["rebalance", "global_"])
def test_a_moved_stream_enters_a_level_and_keeps_its_rows(env: hw.Environment, move: str) -> None:
    moved = getattr(source(env), move)().map(lambda r: (r.k, -r.n))
    assert Counter(moved.collect()) == Counter((k, -n) for k, n in ROWS)
    assert levels(env, moved) == {"map": 1}


def test_a_broadcast_row_is_on_every_subtask(env: hw.Environment) -> None:
    parallelism = env._parallelism
    assert Counter(source(env).broadcast().map(lambda r: r).collect()) == Counter(ROWS * parallelism)


def test_a_sink_may_be_an_entry(env: hw.Environment) -> None:
    sink = hw.connectors.memory()
    source(env).rebalance().sink(sink)
    env.run()
    assert Counter(sink.rows) == Counter(ROWS)


def test_a_keyed_stream_may_go_through_stateless_steps(env: hw.Environment) -> None:
    stream = source(env).key_by(lambda r: r.n % 2, type="long").filter(lambda r: r.n >= 0)
    assert Counter(counted(stream).collect()) == COUNTS


def test_streams_keyed_in_different_ways_can_be_united(env: hw.Environment) -> None:
    by_function = source(env).key_by(lambda r: r.n % 2, type="long")
    mixed = by_function.union(source(env).rebalance()).filter(lambda r: True)
    assert Counter(mixed.collect()) == Counter(ROWS * 2)
    assert Counter(counted(mixed).collect()) == Counter((k, i + 1) for k in "abc" for i in range(20))


@pytest.mark.parametrize(
    ("key", "settings"),
    [(("k", "n"), {}), ((lambda r: (r.k, r.n),), {"type": "struct<k:string,n:long>"})],
)
def test_a_key_of_several_values_has_names(env: hw.Environment, key: tuple[Any, ...], settings: dict[str, Any]) -> None:
    class Names(hw.KeyedProcessFunction):
        seen = hw.ValueState("bigint", default=0)

        def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
            self.seen.set(self.seen.get() + 1)
            yield ctx.key.k, ctx.key.n * 100 + self.seen.get()

    result = source(env, ROWS + ROWS).key_by(*key, **settings).process(Names(), SCHEMA).collect()
    assert Counter(result) == Counter((k, n * 100 + i) for k, n in ROWS for i in (1, 2))
