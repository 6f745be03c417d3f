"""Unaligned epochs on an engine: whatever the budgets, a job gives what it gives with aligned epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples
from tests.unit.task.test_inflight import Takes

import headwater as hw
from headwater.epoch import backpressure
from headwater.epoch.backpressure import Unaligned
from headwater.epoch.offsets import facts_of, first_offset, next_offset
from headwater.epoch.steps import OnStep, ignore_steps
from headwater.job.engine import Settings
from headwater.local.job import LocalJob
from headwater.plan.plan import JobPlan, plan_job
from headwater.restart import RestartStrategy
from headwater.task import inflight
from headwater.testing import TimedRows

SCHEMA = "k string, n long, ts long"
SECOND = 1_000


class Numbered(hw.KeyedProcessFunction):
    """Each row with its number in its key, and each row again when event time has passed it."""

    seen = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.seen.set(self.seen.get() + 1)
        ctx.timers.event_time(event.ts)
        yield event.k, event.n, self.seen.get(), event.ts

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield ctx.key, -1, 0, timer.timestamp


class Both(hw.CoProcessFunction):
    """What either side has seen of a key."""

    left = hw.ValueState("long", default=0)
    right = hw.ValueState("long", default=0)

    def process_left(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.left.set(self.left.get() + 1)
        yield event.k, event.n, self.left.get(), 0

    def process_right(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.right.set(self.right.get() + 1)
        yield event.k, event.n, self.right.get(), 1


NUMBERED = "k string, n long, number long, ts long"


def one_step(left: hw.Step, right: hw.Step) -> hw.Stream:
    return left.union(right).key_by("k").process(Numbered(), NUMBERED, name="first")


def two_levels(left: hw.Step, right: hw.Step) -> hw.Stream:
    """The second one gets three rows for each row of the first."""
    thrice = one_step(left, right).where("n >= 0").flat_map(lambda r: [r] * 3, NUMBERED)
    return thrice.key_by("k").process(Numbered(), NUMBERED, name="second")


def no_key(left: hw.Step, right: hw.Step) -> hw.Stream:
    return left.union(right).rebalance().map(lambda r: (r.k, r.n, 0, r.ts), NUMBERED)


def two_inputs(left: hw.Step, right: hw.Step) -> hw.Stream:
    return left.key_by("k").connect(right.key_by("k")).process(Both(), NUMBERED)


def joined(left: hw.Step, right: hw.Step) -> hw.Stream:
    by_letter = [side.map(lambda r: (r.k[0], r.n, r.ts), SCHEMA) for side in (left, right)]
    return by_letter[0].interval_join(by_letter[1], between=("-3 ms", "2 ms"), on="k")


def windows(left: hw.Step, right: hw.Step) -> hw.Stream:
    """Combined on their way, as there are few keys."""
    return left.union(right).key_by("k").window(hw.tumbling("5 ms")).agg(n=hw.count(), total=hw.sum("n"))


def windows_of_results(left: hw.Step, right: hw.Step) -> hw.Stream:
    return windows(left, right).key_by("n").window(hw.tumbling("10 ms")).agg(rows=hw.count()).with_uid("again")


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    program.__name__: program
    for program in (one_step, two_levels, no_key, two_inputs, joined, windows, windows_of_results)
}


def build(program: Callable[[Any, Any], Any], rows: list[list[Any]], parallelism: int) -> tuple[JobPlan, Any]:
    """A program over two sources of two splits each; a split's rows come in the order of event time."""
    env = hw.Environment("unaligned", engine="local", parallelism=parallelism)
    left, right = (
        env.source(
            TimedRows([[(0, row) for row in split] for split in splits], SCHEMA),
            SCHEMA,
            hw.Watermarks.monotonous("ts"),
            name=name,
        )
        for name, splits in (("left", rows[:2]), ("right", rows[2:]))
    )
    sink = hw.connectors.memory()
    program(left, right).sink(sink, name="out")
    return plan_job(env.graph, parallelism, 128), sink


def made(
    plan: JobPlan,
    *,
    max_rows: int,
    unaligned_ms: int | None = SECOND,
    seconds: float = 1.0,
    on_step: OnStep = ignore_steps,
    restart: RestartStrategy | None = None,
) -> LocalJob:
    return LocalJob(
        plan,
        Settings(
            job_dir=None,
            checkpoint_interval_ms=1,
            max_rows_per_epoch=max_rows,
            checkpoints_retained=1,
            bounded=True,
            unaligned_ms=unaligned_ms,
            on_step=on_step,
            clock=lambda epoch: epoch,
            restart=restart or hw.restart.none(),
            stopwatch=Takes(seconds),
        ),
    )


def run(job: LocalJob) -> None:
    """Start it when whoever watches it knows it."""
    job.start()
    job.wait()


@contextmanager
def first_budget(rows: int) -> Iterator[None]:
    with (
        mock.patch.object(inflight, "FIRST_BUDGET", rows),
        mock.patch.object(backpressure, "FIRST_BUDGET", rows),
    ):
        yield


def by_key(rows: list[Any]) -> dict[str, list[Any]]:
    """The rows of each key as they came; timers apart, since they fire when event time gets there."""
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(f"{row.k} {row.n < 0} {row.ts if row.n < 0 else ''}", []).append(tuple(row))
    return found


def split_of(number: int) -> st.SearchStrategy[list[Any]]:
    """The rows of a split have keys of their own, so that the order of each key is known."""
    rows = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), max_size=8)

    def timed(drawn: list[tuple[str, int]]) -> list[Any]:
        found, ts = [], 0
        for n, (key, step) in enumerate(drawn):
            ts += step
            found.append((f"{key}{number}", n, ts))
        return found

    return rows.map(timed)


@pytest.mark.parametrize("program", PROGRAMS)
@examples(8)
@given(
    rows=st.tuples(*map(split_of, range(4))),
    scale=st.tuples(st.integers(1, 3), st.sampled_from([2, 7, 100])),
    seconds=st.sampled_from([0.125, 0.5, 1.0, 3.0]),
    first=st.integers(1, 5),
)
def test_whatever_the_budgets_a_job_gives_what_aligned_epochs_give(
    program: str, rows: Any, scale: tuple[int, int], seconds: float, first: int
) -> None:
    parallelism, max_rows = scale
    found = []
    for unaligned_ms in (None, SECOND):
        plan, sink = build(PROGRAMS[program], list(rows), parallelism)
        with first_budget(first):
            job = made(plan, max_rows=max_rows, unaligned_ms=unaligned_ms, seconds=seconds)
            run(job)
        status = job.status()
        assert (status.state, status.aligned_epoch) == ("finished", status.epoch)
        assert all(step["in_flight"] == 0 for step in status.steps.values())
        assert sum(step["late_dropped"] for step in status.steps.values()) == 0
        found.append(sink.rows)
    assert sorted(map(repr, found[1])) == sorted(map(repr, found[0]))
    if program in ("one_step", "two_levels", "two_inputs"):
        assert by_key(found[1]) == by_key(found[0])


ROWS = [[(f"{key}{split}", n, n) for n in range(8) for key in "ab"] for split in range(4)]


def test_a_job_tells_what_is_in_flight_at_each_step() -> None:
    seen: list[dict[str, int]] = []
    plan, _ = build(two_levels, ROWS, 2)

    def look(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.COMMITTED:
            seen.append({uid: counters["in_flight"] for uid, counters in job.status().steps.items()})

    with first_budget(4):
        job = made(plan, max_rows=100, seconds=4.0, on_step=look)
        run(job)
    assert max(counts["first"] for counts in seen) > 0
    assert max(counts["second"] for counts in seen) > 0
    assert set(seen[-1].values()) == {0}
    assert job.status().steps["first"]["rows_in"] == sum(map(len, ROWS))


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(hw.EpochStep.STAGED, marks=pytest.mark.long),  # all that it leaves is there at MANIFEST too
        hw.EpochStep.MANIFEST,
        hw.EpochStep.COMMITTED,
    ],
)
def test_a_job_that_fails_with_rows_in_flight_goes_on_with_them(step: hw.EpochStep) -> None:
    expected, whole = build(two_levels, ROWS, 2)
    run(made(expected, max_rows=100, unaligned_ms=None))
    plan, sink = build(two_levels, ROWS, 2)
    failed: list[int] = []

    def fail(now: hw.EpochStep, epoch: int) -> None:
        waiting = sum(counters["in_flight"] for counters in job.status().steps.values())
        if now is step and waiting and epoch % 3 == 0 and epoch not in failed:
            failed.append(epoch)
            raise OSError("it dies here")

    with first_budget(4):
        job = made(plan, max_rows=100, seconds=2.0, on_step=fail, restart=hw.restart.fixed(1000, delay="0 ms"))
        run(job)
    assert len(failed) > 3
    assert by_key(sink.rows) == by_key(whole.rows)
    assert len(sink.rows) == len(whole.rows)


def test_rows_in_flight_stay_bounded_and_the_slowest_subtask_at_work() -> None:
    """A step that takes one row an epoch, however many there are to read."""
    plan, sink = build(one_step, [[("a", n, n) for n in range(60)], [], [], []], 1)
    waiting: list[int] = []

    def look(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.COMMITTED:
            waiting.append(job.status().steps["first"]["in_flight"])

    with first_budget(1):
        job = made(plan, max_rows=1_000, seconds=1.0, on_step=look)
        run(job)
    assert len([row for row in sink.rows if row.n >= 0]) == 60
    assert max(waiting) <= 8
    assert waiting.count(0) <= 10, "it seldom has nothing to do"


def test_an_aligned_epoch_can_be_asked_for() -> None:
    plan, sink = build(one_step, [[("a", n, n) for n in range(40)], [], [], []], 1)
    aligned: list[int] = []

    def ask(step: hw.EpochStep, epoch: int) -> None:
        status = job.status()
        if step is hw.EpochStep.COMMITTED and epoch == 20:
            assert status.steps["first"]["in_flight"] > 0
            assert status.aligned_epoch < 20
            job.request_aligned_epoch()
        if step is hw.EpochStep.COMMITTED and epoch == 21:
            assert (status.aligned_epoch, status.steps["first"]["in_flight"]) == (21, 0)
            aligned.append(len(sink.rows))

    with first_budget(1):
        job = made(plan, max_rows=1_000, seconds=1.0, on_step=ask)
        run(job)
    assert len(aligned) == 1
    assert [row.n for row in sink.rows if row.n >= 0] == list(range(40))
    assert job.status().epoch > 22, "unaligned epochs went on after it"


def test_an_offset_of_a_job_that_is_not_unaligned_any_more_says_nothing_of_it() -> None:
    plan, _ = build(one_step, ROWS, 2)
    offset = first_offset(plan, lambda _: 0)
    unaligned = next_offset(plan, offset, lambda _: 0, 100, None, unaligned=Unaligned(SECOND))
    assert (unaligned.unaligned_ms, facts_of(unaligned).unaligned_ms) == (SECOND, SECOND)
    aligned = next_offset(plan, unaligned, lambda _: 0, 100, None)
    assert not {"pace", "unaligned_ms"} & set(aligned.to_json())
    assert facts_of(aligned).unaligned_ms is None


@pytest.mark.parametrize("unaligned", [True, "250 ms", "1 min"])
def test_unaligned_takes_the_interval_or_a_time(unaligned: Any) -> None:
    env = hw.Environment("job", engine="local", unaligned=unaligned, checkpoint_interval="2 s")
    assert env._unaligned_ms == {True: 2_000, "250 ms": 250, "1 min": 60_000}[unaligned]
    sink = hw.connectors.memory()
    env.from_rows([("a", n, n) for n in range(5)], SCHEMA).key_by("k").process(Numbered(), NUMBERED).sink(sink)
    env.run()
    assert len(sink.rows) == 10


def test_unaligned_needs_time() -> None:
    with pytest.raises(hw.GraphError, match="needs time for unaligned epochs; got '0 ms'; give a time"):
        hw.Environment("job", checkpoint_interval="0 s", unaligned=True)
    with pytest.raises(hw.DurationError):
        hw.Environment("job", unaligned="soon")
