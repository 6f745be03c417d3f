"""What functions measure is in the status of the job, once for each epoch that counts."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

import headwater as hw
from headwater.epoch.reports import TaskReport
from headwater.job.status import JobStatus, StepStatus
from headwater.measures import Measured, Metrics, beside, then
from headwater.task.counters import StepCounters

ROWS = [(f"k{number % 3}", number) for number in range(12)]


class Measuring(hw.KeyedProcessFunction):
    """Uses one of each kind."""

    def process(self, row: Any, ctx: hw.Context) -> Any:
        ctx.metrics.counter("rows").inc()
        ctx.metrics.meter("sum").mark(row.n)
        ctx.metrics.gauge("newest", over_subtasks="max").set(row.n)
        ctx.metrics.histogram("spread", buckets=(2, 5)).update(row.n)
        yield row


class Passing(hw.ProcessFunction):
    def process(self, row: Any, ctx: hw.Context) -> Any:
        ctx.metrics.counter("passed").inc(2)
        yield row


class OfWindow(hw.ProcessWindowFunction):
    def process(self, elements: list[Any], ctx: hw.WindowContext) -> Any:
        ctx.metrics.counter("windows").inc()
        yield (ctx.key, len(elements))


class Listed(hw.ProcessFunction):
    seen = hw.OperatorListState("long")

    def process(self, row: Any, ctx: hw.Context) -> Any:
        ctx.metrics.counter("listed").inc()
        yield row


class Both(hw.CoProcessFunction):
    def process_left(self, row: Any, ctx: hw.Context) -> None:
        ctx.metrics.counter("left").inc()

    def process_right(self, row: Any, ctx: hw.Context) -> None:
        ctx.metrics.counter("right").inc(10)


def environment(**settings: Any) -> hw.Environment:
    return hw.Environment("measured", engine="local", max_rows_per_epoch=5, **settings)


def source(env: hw.Environment) -> hw.Stream:
    return env.from_rows(ROWS, "k string, n long", name="numbers")


def totals(job: hw.Job, step: str) -> dict[str, Any]:
    return {name: one.value for name, one in job.status().steps[step].metrics.items()}


def test_all_kinds_add_up_over_epochs_and_subtasks():
    env = environment()
    source(env).key_by("k").process(Measuring(), "k string, n long").with_uid("m").sink(hw.connectors.memory())
    job = env.run()
    assert totals(job, "m") == {"rows": 12, "sum": 66, "newest": 11, "spread": 12}
    spread = job.status().steps["m"].metrics["spread"]
    assert (spread.total, list(spread.bounds), list(spread.buckets)) == (66, [2, 5], [3, 3, 6])
    assert "rows=12" in repr(job.status())


def test_every_function_with_a_context_measures():
    env = environment()
    rows = source(env)
    rows.process(Passing(), "k string, n long").with_uid("passing").sink(hw.connectors.memory(), name="a")
    rows.process(Listed(), "k string, n long").with_uid("listed").sink(hw.connectors.memory(), name="b")
    rows.key_by("k").window(hw.count(2)).process(OfWindow(), "k string, n long").with_uid("windows").sink(
        hw.connectors.memory(), name="c"
    )
    rows.key_by("k").connect(rows.key_by("k")).process(Both(), "k string").with_uid("both").sink(
        hw.connectors.memory(), name="d"
    )
    job = env.run()
    assert totals(job, "passing") == {"passed": 24}
    assert totals(job, "listed") == {"listed": 12}
    assert totals(job, "windows") == {"windows": 6}
    assert totals(job, "both") == {"left": 12, "right": 120}


@pytest.mark.parametrize("step", list(hw.EpochStep))
def test_epoch_that_is_computed_again_counts_once(step):
    crashed = set()

    def crash(at: hw.EpochStep, epoch: int) -> None:
        if at is step and epoch not in crashed:
            crashed.add(epoch)
            raise RuntimeError("crash")

    env = environment(restart=hw.restart.fixed(9, delay="0 s"))
    source(env).key_by("k").process(Measuring(), "k string, n long").with_uid("m").sink(hw.connectors.memory())
    job = env.run(on_step=crash)
    assert len(crashed) == 3
    assert totals(job, "m") == {"rows": 12, "sum": 66, "newest": 11, "spread": 12}
    assert job.status().steps["m"].rows_in == 12


def test_attempt_that_fails_half_way_leaves_nothing_behind():
    failed: list[int] = []

    class Failing(Measuring):
        def process(self, row, ctx):
            yield from super().process(row, ctx)
            if row.n == 7 and not failed:
                failed.append(row.n)
                raise ValueError("once")

    env = environment(restart=hw.restart.fixed(1, delay="0 s"))
    source(env).key_by("k").process(Failing(), "k string, n long").with_uid("m").sink(hw.connectors.memory())
    assert totals(env.run(), "m")["rows"] == 12


def test_measures_travel_with_reports_and_are_stored_with_the_status():
    spread = Measured("histogram", 2, total=3.5, bounds=[1, 2], buckets=[1, 0, 1])
    counters = StepCounters(1, 1, 0, metrics={"n": Measured("counter", 4), "spread": spread})
    report = TaskReport.from_bytes(TaskReport((), {"step": counters}).to_bytes())
    assert report.steps["step"].metrics == counters.metrics
    status = JobStatus("running").after(0, [report], 5)
    again = JobStatus.from_json(json.loads(json.dumps(status.to_json())), "here")
    assert again.steps["step"].metrics == counters.metrics
    assert "metrics" not in dict(StepStatus())


def test_gauge_stays_as_it_was_set_and_a_counter_starts_anew():
    metrics = Metrics()
    metrics.gauge("g").set(3)
    metrics.counter("c").inc()
    assert {name: one.value for name, one in metrics.take().items()} == {"g": 3, "c": 1}
    assert {name: one.value for name, one in metrics.take().items()} == {"g": 3, "c": 0}
    assert Metrics().take() == {}


def test_gauges_of_subtasks_are_combined_as_they_say():
    for how, expected in (("sum", 5), ("min", 2), ("max", 3)):
        parts = [{"g": Measured("gauge", value, how)} for value in (2, 3)]
        assert beside(parts)["g"].value == expected


def test_wrong_uses_are_refused():
    metrics = Metrics()
    metrics.counter("n")
    for wrong, message in (
        (lambda: metrics.gauge("n"), "is a counter; got 'gauge'"),
        (lambda: metrics.counter("n").inc(-1), "only grows"),
        (lambda: metrics.counter("a b"), "names of letters"),
        (lambda: metrics.gauge("g").set(float("nan")), "finite numbers"),
        (lambda: metrics.gauge("h", over_subtasks="avg"), "sum, min, max"),
        (lambda: metrics.histogram("h", buckets=(3, 1)), "buckets that grow"),
    ):
        with pytest.raises(hw.GraphError, match=message):
            wrong()


@examples(50)
@given(st.lists(st.lists(st.integers(0, 9), max_size=5), max_size=5))
def test_how_values_fall_into_epochs_does_not_change_a_histogram(epochs):
    parts, whole = Metrics(), Metrics()
    known: dict[str, Measured] = {}
    for epoch in epochs:
        for value in epoch:
            parts.histogram("h", buckets=(2, 4)).update(value)
            whole.histogram("h", buckets=(2, 4)).update(value)
        known = then(known, parts.take())
    assert [dataclasses.astuple(one) for one in known.values()] == [
        dataclasses.astuple(one) for one in whole.take().values()
    ]
