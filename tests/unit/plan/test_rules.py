"""What the rules of planning choose, and that whoever runs a plan does as it says."""

from __future__ import annotations

from typing import Any

import pytest

import headwater as hw
from headwater.graph.nodes.windows import BY_BURSTS, BY_COUNT, BY_ELEMENT, BY_RUNS, BY_SLICES
from headwater.operators.window.slicing import WindowCombiner
from headwater.plan.choices import AFTER_COMMIT, EARLY, IN_MEMORY, ON_DISK, Chosen
from headwater.plan.plan import RULES, JobPlan, plan_job
from headwater.state.disk.backend import DiskBackend
from headwater.streams.keyed import KeyedStream
from headwater.streams.stream import Stream
from headwater.task.host import LevelHost
from headwater.task.outlet import Outlet

SCHEMA = "k string, n long, at timestamp"
TENS = hw.tumbling("10 s")


class Count(hw.KeyedProcessFunction):
    seen = hw.ValueState("bigint", default=0)


class Seen(hw.ProcessFunction):
    seen = hw.OperatorListState("bigint")

    def process(self, event: Any, ctx: hw.Context) -> Any:
        yield event


def _apart(before: Any, row: Any) -> int:
    return int(row.n - before.n)


def source(env: hw.Environment, name: str = "rows") -> Stream:
    return env.from_rows([], SCHEMA, hw.Watermarks.monotonous("at"), name=name)


def planned(build: Any, **settings: Any) -> tuple[JobPlan, Chosen]:
    """The plan of a program, and what it says of its last step but the sink."""
    env = hw.Environment("rules", engine="local", **settings)
    step = build(source(env).key_by("k"))
    step.sink(hw.connectors.memory())
    plan = env.plan()
    return plan, plan.of(plan.graph.node(step._flow.origin))


@pytest.mark.parametrize(
    ("build", "way", "is_combined"),
    [
        (lambda s: s.window(TENS).agg(n=hw.sum("n")), BY_SLICES, True),
        (lambda s: s.window(hw.sliding("60 s", "10 s")).agg(n=hw.sum("n")), BY_SLICES, True),
        (lambda s: s.window(hw.sliding("10 s", "60 s")).agg(n=hw.sum("n")), BY_SLICES, False),
        (lambda s: s.window(TENS).agg(n=hw.first("n")), BY_SLICES, False),
        (lambda s: s.window(hw.sliding("60 s", "10 s")).agg(n=hw.first("n")), BY_RUNS, False),
        (lambda s: s.window(TENS).late_to(hw.OutputTag("late", "n long")).agg(n=hw.sum("n")), BY_SLICES, False),
        (lambda s: s.window(TENS).allow_lateness("1 s").agg(n=hw.sum("n")), BY_SLICES, True),
        (lambda s: s.window(TENS).panes("retracting").agg(n=hw.sum("n")), BY_RUNS, False),
        (lambda s: s.window(TENS).trigger(hw.triggers.count(2)).agg(n=hw.sum("n")), BY_RUNS, False),
        (lambda s: s.window(TENS).trigger(hw.triggers.delta(1, _apart)).agg(n=hw.sum("n")), BY_ELEMENT, False),
        (lambda s: s.window(hw.global_window()).trigger(hw.triggers.count(2)).agg(n=hw.sum("n")), BY_RUNS, False),
        (lambda s: s.window(TENS).evict(hw.evictors.count(2)).agg(n=hw.sum("n")), BY_ELEMENT, False),
        (lambda s: s.window(TENS).reduce(max), BY_ELEMENT, False),
        (lambda s: s.window(hw.session("10 s")).agg(n=hw.sum("n")), BY_BURSTS, False),
        (lambda s: s.window(hw.session("10 s")).trigger(hw.triggers.count(2)).agg(n=hw.sum("n")), BY_ELEMENT, False),
        (lambda s: s.window(hw.processing_time(hw.session("10 s"))).agg(n=hw.sum("n")), BY_BURSTS, False),
        (lambda s: s.window(hw.processing_time(TENS)).agg(n=hw.sum("n")), BY_RUNS, False),
        (lambda s: s.window(hw.count(3)).agg(n=hw.sum("n")), BY_COUNT, False),
        (lambda s: s.window(hw.count(3)).evict(hw.evictors.count(2)).agg(n=hw.sum("n")), BY_ELEMENT, False),
        (lambda s: s.join(s).where("k").equal_to("k").window(TENS).apply(), BY_SLICES, False),
        (lambda s: s.join(s).where("k").equal_to("k").window(hw.session("1 s")).apply(), BY_ELEMENT, False),
        (lambda s: s.process(Count(), "n long"), None, False),
    ],
)
def test_how_a_window_is_computed_and_whether_rows_are_combined_before_it(
    build: Any, way: str | None, is_combined: bool
) -> None:
    plan, chosen = planned(build)
    assert (chosen.way, chosen.is_combined) == (way, is_combined)
    outlets = [Outlet.behind(plan, node) for node in plan.sources()]
    assert [isinstance(port.combiner, WindowCombiner) for outlet in outlets for port in outlet.ports][-1] is is_combined


@pytest.mark.parametrize("backend", [IN_MEMORY, ON_DISK])
@pytest.mark.parametrize(
    ("build", "is_on_backend"),
    [
        (lambda s: s.process(Count(), "n long"), True),
        (lambda s: s.agg(n=hw.sum("n")), True),
        (lambda s: s.window(TENS).agg(n=hw.sum("n")), True),
        (lambda s: s.join_regular(s, ttl="1 s"), True),
        (lambda s: s.rebalance().process(Seen(), "n long"), False),
    ],
)
def test_state_is_on_disk_where_a_step_leaves_it_to_the_backend(build: Any, is_on_backend: bool, backend: str) -> None:
    plan, chosen = planned(build, state_backend=backend)
    assert chosen.state == (backend if is_on_backend else IN_MEMORY)
    host = LevelHost(plan, 1, 0)
    assert isinstance(host._entries[0]._backend, DiskBackend) is (backend == ON_DISK), "rows in flight go there too"
    host.close()


def test_a_step_whose_state_has_moved_to_disk_keeps_it_there() -> None:
    plan, _ = planned(lambda s: s.agg(n=hw.sum("n")).with_uid("sums"))
    plan.choose(next(node for node in plan.graph if plan.graph.uid(node) == "sums"), state=ON_DISK)
    host = LevelHost(plan, 1, 0)
    assert isinstance(host._entries[0]._backend, DiskBackend)
    host.close()


@pytest.mark.parametrize(("mode", "published"), [("exactly_once", AFTER_COMMIT), ("at_least_once", EARLY)])
def test_sinks_get_an_epoch_after_the_commit_or_early(mode: str, published: str) -> None:
    plan, chosen = planned(lambda s: s.where("n > 1"), checkpointing=mode)
    assert [plan.of(node).published for node in plan.sinks()] == [published]
    assert chosen.published is None
    assert plan.publishes_early is (published == EARLY)


def test_a_step_is_fused_into_whatever_its_rows_come_from_in_place() -> None:
    env = hw.Environment("rules", engine="local")
    left, right = source(env, "left"), source(env, "right")
    counted: KeyedStream = left.key_by("k")
    count = counted.process(Count(), SCHEMA)
    both = count.union(right, left.rebalance()).where("n > 1")
    last = both.key_by("k").process(Count(), "n long", name="last")
    last.sink(hw.connectors.memory())
    plan = env.plan()
    ids = {plan.graph.uid(node): node.id for node in plan.graph}
    of = {uid: plan.chosen.get(number, Chosen()) for uid, number in ids.items()}
    assert of["where"].fused_into == (ids["right"], ids["count"]) == (1, 2)
    assert (of["where"].level, of["count"].level, of["last"].level) == (1, 1, 2)
    assert of["sink"].fused_into == (ids["last"],)
    assert plan.feeders(plan.graph.node(ids["last"])) == {("count", None), ("right", None), ("where", None)}


def test_a_step_hears_of_the_last_step_on_the_way_that_sets_event_time() -> None:
    env = hw.Environment("rules", engine="local")
    rows = source(env, "rows")
    first = rows.assign_watermarks(hw.Watermarks.monotonous("n"), name="first")
    second = first.where("n > 1").assign_watermarks(hw.Watermarks.monotonous("n"), name="second")
    last = rows.union(first, second).key_by("k").process(Count(), "n long", name="last")
    last.sink(hw.connectors.memory())
    plan = env.plan()
    node = next(node for node in plan.graph if node.name == "last")
    assert plan.feeders(node) == {("rows", None), ("rows", "first"), ("rows", "second")}


def test_rules_are_in_a_file_each_in_the_order_they_are_listed() -> None:
    files = [rule.__module__ for rule in RULES]
    assert len(files) == len(set(files))
    assert all(file.startswith("headwater.plan.rules.") for file in files)
    assert files.index("headwater.plan.rules.levels") < files.index("headwater.plan.rules.fusion")


def test_a_plan_of_a_plans_graph_is_the_same() -> None:
    plan, _ = planned(lambda s: s.window(TENS).agg(n=hw.sum("n")))
    assert plan_job(plan.graph, plan.parallelism, plan.groups).chosen == plan.chosen
