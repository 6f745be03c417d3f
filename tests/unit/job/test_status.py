from __future__ import annotations

import pytest

import headwater as hw
from headwater.data.batch import MIN_TIMESTAMP
from headwater.epoch.reports import TaskReport
from headwater.job.splits import SplitStatus
from headwater.job.status import JobStatus, RestartReason, StepStatus
from headwater.operators.stateless.pass_on import PassOperator
from headwater.task.counters import StepCounters


def report(*counters: StepCounters) -> TaskReport:
    return TaskReport((), {f"step{number}": one for number, one in enumerate(counters)})


def test_counters_travel_by_name_and_are_summed_over_subtasks_and_epochs() -> None:
    status = JobStatus("running")
    for epoch in range(2):
        told = [
            report(
                StepCounters(
                    5,
                    3,
                    70,
                    {"n": 2},
                    {"late_dropped": 1, "retries": 2},
                    4,
                    9,
                    outputs={"late": 2},
                    state_bytes={"n": 9},
                )
            ),
            report(StepCounters(5, 3, 50, {"n": 1}, {"retries": 1}, outputs={"late": 1}), StepCounters(1, 1, 9)),
        ]
        status = status.after(epoch, [TaskReport.from_bytes(one.to_bytes()) for one in told])
    step = status.steps["step0"]
    assert dict(step) == {
        "rows_in": 20,
        "rows_out": 12,
        "late_dropped": 2,
        "dead_letters": 0,
        "retries": 6,
        "in_flight": 4,
        "watermark_ms": 50,
        "state": {"n": 3},
        "outputs": {"late": 6},
        "work": {"busy_us": 0, "state_bytes": 9, "subtasks": 2, "busiest_rows": 10, "largest_state": 2},
        "state_bytes": {"n": 9},
        "growth": {},
    }
    assert (step.rows_in, step.counters["retries"]) == (step["rows_in"], step["retries"])
    assert (status.epoch, status.aligned_epoch) == (1, -1)


def test_a_watermark_does_not_go_back_and_an_epoch_that_leaves_nothing_in_flight_is_aligned() -> None:
    status = JobStatus("running").after(0, [report(StepCounters(1, 1, 50, in_flight=1, budget=1))])
    status = status.after(1, [report(StepCounters(0, 0, MIN_TIMESTAMP, in_flight=0, budget=1))])
    assert (status.steps["step0"].watermark_ms, status.aligned_epoch) == (50, 1)


def test_splits_are_known_by_what_their_tasks_told() -> None:
    def told(split: str, rows: int, at_ms: int, *, idle: bool = False) -> TaskReport:
        return TaskReport((), {"s": StepCounters(rows, rows, at_ms)}, {"s": {split: 9}}, idle=idle)

    status = JobStatus("running").after(0, [told("0", 3, 70), told("1", 2, 50)], 1_000)
    status = status.after(1, [told("0", 1, 60), told("1", 0, MIN_TIMESTAMP, idle=True)], 2_000)
    first, second = SplitStatus(4, 70, last_rows_ms=2_000, moved_ms=1_000), SplitStatus(2, 50, True, 1_000, 1_000)
    assert status.splits == {"s": {"0": first, "1": second}}
    assert status.now_ms == 2_000


def test_what_an_operator_counts_is_in_the_status_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PassOperator, "counters", lambda _: {"calls": 1})
    env = hw.Environment("counted", engine="local", parallelism=2, max_rows_per_epoch=1)
    env.from_rows([(1,), (2,), (3,)], "n long").rebalance().sink(hw.connectors.memory()).with_uid("passed")
    status = env.run().status()
    assert status.steps["passed"]["calls"] == 2 * (status.epoch + 1)


def test_what_it_took_to_bring_copies_of_state_up_to_date_is_summed_over_tasks_and_epochs() -> None:
    told = [TaskReport((), {}, caught_up_us=3, level_us=10), TaskReport((), {}, level_us=20)]
    status = JobStatus("running")
    for epoch in range(2):
        status = status.after(epoch, [TaskReport.from_bytes(one.to_bytes()) for one in told])
    assert (status.caught_up_us, status.level_us) == (6, 60)


def test_a_status_comes_back_from_json() -> None:
    steps = {"a": StepStatus(1, 2, 3, 4, {"n": 5}, {"late_dropped": 6, "dead_letters": 0, "retries": 7})}
    reasons = (RestartReason(1, 2, 3, "E", "no", None),)
    splits = {"rows": {"0": SplitStatus(9, 70, is_idle=True, last_rows_ms=60)}}
    status = JobStatus("failed", 7, 6, 5, steps, {"rows": {"0": 9}}, "no", reasons, splits, 80)
    assert JobStatus.from_json(status.to_json(), "here") == status
