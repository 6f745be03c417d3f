"""Why a window has not fired: each reason, from the status of a job and the outline of its run."""

from __future__ import annotations

from typing import Any

import pytest

import headwater as hw
from headwater.control.firing import Firing, why_not_fired
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.errors import JobError
from headwater.job.engine import Settings
from headwater.job.outline import JobOutline, outline_of
from headwater.job.splits import SplitStatus
from headwater.job.status import JobStatus, StepStatus
from headwater.plan.plan import plan_job

NOW = 1_000_000
MOVING = SplitStatus(9, 52_000, last_rows_ms=NOW, moved_ms=NOW)


def outline(marks: hw.Watermarks | None = None, windows: Any = None, lateness: str | None = None) -> JobOutline:
    env = hw.Environment("doc", engine="local")
    rows = hw.connectors.log("log", "orders")
    source = env.source(rows, "user string, ts long", marks or hw.Watermarks.bounded("ts", "1 s"), name="orders")
    windowed = source.key_by("user").window(windows or hw.tumbling("10 s"))
    windowed = windowed if lateness is None else windowed.allow_lateness(lateness)
    windowed.agg(n=hw.count()).with_uid("counts").sink(hw.connectors.blackhole())
    settings = Settings(None, 500, 100, 1_000, bounded=False)
    return outline_of(plan_job(env.graph, 2, 128), settings, "local", 0)


def ask(splits: dict[str, SplitStatus], mark_ms: int = 31_500, end_ms: int | None = None, **more: Any) -> Firing:
    status = JobStatus(
        "running",
        1,
        steps={"counts": StepStatus(watermark_ms=mark_ms)},
        splits={"orders": splits},
        now_ms=NOW,
        since_ms=5,
    )
    is_running = more.pop("is_running", True)
    return why_not_fired(status, outline(**more), "counts", end_ms, now_ms=NOW, is_running=is_running)


def test_the_next_window_waits_for_a_split_that_is_silent() -> None:
    silent = SplitStatus(3, 31_500, last_rows_ms=NOW - 60_000, moved_ms=NOW - 61_000)
    found = ask({"0": MOVING, "1": silent})
    assert (found.verdict, found.start_ms, found.end_ms, found.missing_ms) == ("waits", 30_000, 40_000, 8_499)
    assert found.because == "split '1' of source 'orders' has had no rows since, and everybody waits for it"
    (held,) = found.holding
    assert (held.split, held.reason, held.since_ms, held.missing_ms) == ("1", "silent", NOW - 61_000, 8_499)
    assert ".with_idleness('30 s')" in held.way_out


def test_a_split_whose_rows_are_not_later_is_told_from_one_without_rows() -> None:
    found = ask({"0": MOVING, "1": SplitStatus(3, 31_500, last_rows_ms=NOW, moved_ms=NOW - 61_000)})
    assert found.holding[0].reason == "old rows"
    assert "see that the times in 'ts' go up" in found.holding[0].way_out


def test_a_split_that_moves_has_no_time_since_which_it_stands() -> None:
    found = ask({"0": MOVING}, mark_ms=51_999)
    assert (found.end_ms, found.holding[0].reason, found.holding[0].since_ms) == (60_000, "advancing", None)


def test_a_split_that_never_had_a_row_has_stood_since_the_start() -> None:
    found = ask({"0": MOVING, "1": SplitStatus()}, mark_ms=MIN_TIMESTAMP)
    assert (found.end_ms, found.watermark_ms) == (60_000, None)
    assert [(one.split, one.reason) for one in found.holding] == [("1", "no rows yet"), ("0", "advancing")]
    assert found.holding[0].since_ms == 5


def test_the_slowest_of_several_comes_first_and_idle_and_ended_ones_hold_nothing_back() -> None:
    silent = SplitStatus(3, 35_000, last_rows_ms=5, moved_ms=5)
    slower = SplitStatus(3, 31_500, last_rows_ms=5, moved_ms=5)
    idle, ended = SplitStatus(3, 7, is_idle=True), SplitStatus(3, MAX_TIMESTAMP)
    found = ask({"a": silent, "b": slower, "c": idle, "d": ended})
    assert [one.split for one in found.holding] == ["b", "a"]


def test_with_idleness_the_way_out_is_to_wait() -> None:
    marks = hw.Watermarks.bounded("ts", "1 s").with_idleness("90 s")
    found = ask({"0": SplitStatus(3, 31_500, last_rows_ms=5, moved_ms=5)}, marks=marks)
    assert found.holding[0].way_out == "nobody waits for it once it has been without rows for 90 s"


def test_a_source_without_event_time_keeps_windows_until_the_end_of_input() -> None:
    env = hw.Environment("doc", engine="local")
    source = env.source(hw.connectors.log("log", "orders"), "user string, ts long", name="orders")
    source.key_by("user").window(hw.processing_time(hw.tumbling("10 s"))).agg(n=hw.count()).with_uid("counts").sink(
        hw.connectors.blackhole()
    )
    made = outline_of(plan_job(env.graph, 2, 128), Settings(None, 500, 100, 1_000, bounded=False), "local", 0)
    found = why_not_fired(JobStatus("running"), made, "counts", None, now_ms=NOW, is_running=True)
    assert (found.verdict, found.end_ms) == ("unknown", None)
    assert "its trigger fires them" in found.because


def test_a_window_that_has_fired_is_kept_for_late_rows_as_long_as_it_says() -> None:
    found = ask({"0": MOVING}, end_ms=30_000, lateness="1 h")
    assert (found.verdict, found.missing_ms, found.holding) == ("fired", 0, ())
    assert found.because.endswith("it has fired, if it had rows, and is kept for late rows for 1 h")


def test_a_window_fires_with_its_last_timestamp_and_not_one_before() -> None:
    assert ask({"0": MOVING}, mark_ms=39_998, end_ms=40_000).verdict == "waits"
    assert ask({"0": MOVING}, mark_ms=39_999, end_ms=40_000).verdict == "fired"


def test_windows_follow_their_offset_and_slide() -> None:
    sliding = hw.sliding("10 s", "4 s")
    assert ask({"0": MOVING}, mark_ms=31_999, windows=sliding).end_ms == 34_000


def test_sessions_end_at_no_even_distance() -> None:
    found = ask({"0": SplitStatus(3, 31_500, last_rows_ms=5, moved_ms=5)}, windows=hw.session("5 s"))
    assert (found.verdict, found.end_ms) == ("waits", None)
    assert found.holding[0].reason == "silent"


def test_a_job_that_does_not_run_and_input_that_has_ended_are_told_as_that() -> None:
    assert ask({"0": MOVING}, is_running=False).because == "the job does not run: event time goes on when it does"
    assert ask({"0": MOVING}, mark_ms=MAX_TIMESTAMP).verdict == "ended"


def test_a_step_without_windows_is_refused() -> None:
    with pytest.raises(JobError, match="step 'orders' has no windows that could fire; those with windows are counts"):
        why_not_fired(JobStatus("running"), outline(), "orders", None, now_ms=NOW, is_running=True)
