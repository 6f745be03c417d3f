"""Back pressure: how much sources read while rows wait, and when the input of unaligned epochs ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.epoch import offsets
from headwater.epoch.backpressure import BacklogFile, Unaligned, next_pace
from headwater.epoch.offset import Offset, Pace
from headwater.epoch.reports import TaskReport, backlog_of
from headwater.plan.plan import JobPlan, plan_job
from headwater.task.counters import StepCounters
from headwater.task.inflight import FIRST_BUDGET
from headwater.testing import TimedRows

MANY = 100 * FIRST_BUDGET


@pytest.mark.parametrize(
    ("pace", "backlog", "expected"),
    [
        (None, 0.0, Pace(2 * FIRST_BUDGET, paused=False)),
        (Pace(100, paused=False), 0.0, Pace(400, paused=False)),
        (Pace(MANY - 1, paused=False), 0.3, Pace(MANY, paused=False)),
        (Pace(100, paused=False), 1.5, Pace(100, paused=False)),
        (Pace(100, paused=False), 4.5, Pace(50, paused=True)),
        (Pace(50, paused=True), 90.0, Pace(50, paused=True)),  # once for each pause
        (Pace(50, paused=True), 4.0, Pace(50, paused=False)),
        (Pace(1, paused=False), 5.0, Pace(1, paused=True)),
        (Pace(5 * MANY, paused=False), 1.0, Pace(MANY, paused=False)),  # the job allows less now
    ],
)
def test_sources_read_more_while_little_waits_and_nothing_while_much_does(
    pace: Pace | None, backlog: float, expected: Pace
) -> None:
    assert next_pace(pace, backlog, MANY, 2) == expected


def plan_of(count: int) -> JobPlan:
    env = hw.Environment("paced", engine="local")
    source = TimedRows([[(0, (n,)) for n in range(count)], []], "n long")
    env.source(source, "n long", name="s").rebalance().sink(hw.connectors.memory())
    return plan_job(env.graph, 2, 128)


def after(plan: JobPlan, start: Offset, backlog: float, **settings: Any) -> Offset:
    unaligned = Unaligned(500, backlog, **settings)
    return offsets.next_offset(plan, start, lambda _: 0, 4, None, unaligned=unaligned)


def test_nothing_is_read_while_sources_pause_and_the_end_waits_for_what_is_in_flight() -> None:
    plan = plan_of(6)
    found = [offsets.first_offset(plan, lambda _: 0)]
    for backlog in (0.0, 9.0, 1.0, 1.0, 0.5, 0.0):
        found.append(after(plan, found[-1], backlog))
    read = [offset.positions["s"]["0"] for offset in found[1:]]
    assert read == [4, 4, 6, 6, 6, 6]
    assert [offset.end for offset in found[1:]] == [False] * 5 + [True]
    assert [offsets.facts_of(offset).unaligned_ms for offset in found[1:]] == [500] * 5 + [None], "it ends aligned"


def test_the_last_rows_are_not_in_the_aligned_epoch_that_ends_the_input() -> None:
    plan = plan_of(3)
    first = after(plan, offsets.first_offset(plan, lambda _: 0), 0.0)
    assert (first.positions["s"]["0"], first.end) == (3, False)
    last = after(plan, first, 0.0)
    assert (last.end, offsets.facts_of(last).unaligned_ms) == (True, None)


def test_an_aligned_epoch_that_was_asked_for_reads_nothing() -> None:
    plan = plan_of(6)
    start = offsets.first_offset(plan, lambda _: 0)
    aligned = after(plan, start, 1.0, wants_aligned=True)
    assert aligned.positions == start.positions
    assert offsets.facts_of(aligned).unaligned_ms is None
    assert after(plan, aligned, 0.0).positions["s"]["0"] == 4


def test_a_pause_does_not_make_a_split_idle() -> None:
    env = hw.Environment("paced", engine="local")
    source = TimedRows([[(0, (n,)) for n in range(9)]], "n long")
    watermarks = hw.Watermarks.monotonous("n").with_idleness("1 ms")
    env.source(source, "n long", watermarks, name="s").rebalance().sink(hw.connectors.memory())
    plan = plan_job(env.graph, 1, 128)
    offset = offsets.first_offset(plan, lambda _: 0)
    for epoch in range(3):
        end = offsets.next_offset(
            plan, offset, lambda e: 50 * e, 1, None, unaligned=Unaligned(500, 9.0 if epoch else 0.0)
        )
        assert [part.idle for part in offsets.ranges(plan, offset, end)] == [False]
        offset = end
    assert offset.positions["s"]["0"] == 1


def test_the_backlog_is_that_of_the_slowest_subtask_and_aligned_epochs_have_none() -> None:
    def report(**steps: tuple[int, int]) -> TaskReport:
        counters = {uid: StepCounters(9, 9, 0, in_flight=rows, budget=most) for uid, (rows, most) in steps.items()}
        return TaskReport((), counters)

    assert backlog_of([report(a=(10, 100), b=(0, 1)), report(a=(30, 10), b=(5, 10))]) == 3.0
    assert backlog_of([TaskReport((), {"source": StepCounters(4, 4, 0)})]) == 0.0


def test_the_planner_reads_the_backlog_that_the_driver_wrote(tmp_path: Path) -> None:
    BacklogFile(tmp_path, unaligned=True).write(3, 1.25)
    assert BacklogFile(tmp_path, unaligned=True).read(4, 0.0) == 1.25
    assert BacklogFile(tmp_path, unaligned=True).read(3, 0.0) == 0.0, "of an epoch that this history has not come to"
    assert BacklogFile(tmp_path, unaligned=False).read(4, 0.0) == 0.0
