"""Timestamps near the ends of time: nothing wraps, and what cannot be is refused with the step and the row."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import headwater as hw
from headwater.connectors.memory import MemorySink
from headwater.data.batch import FURTHEST_MS, MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.testing import Harness
from headwater.windows.triggers import EventTimeTrigger

ROWS = "k string, ts long"
PLAIN = hw.Watermarks.monotonous("ts")


class ByElement(EventTimeTrigger):
    """The default trigger under another name, with which rows go one by one."""


WINDOWS = {
    "tumbling": hw.tumbling("10 s"),
    "tumbling, offset": hw.tumbling("10 s", "-3 s"),
    "sliding": hw.sliding("10 s", "5 s"),
    "cumulate": hw.cumulate("5 s", "10 s"),
    "session": hw.session("10 s"),
    "session by row": hw.session(by=lambda row: "10 s"),
}
ENDS = [MIN_TIMESTAMP + 1, -FURTHEST_MS, FURTHEST_MS, MAX_TIMESTAMP - 1, MAX_TIMESTAMP]


def windowed(windows: hw.WindowAssigner, *, by_element: bool) -> Any:
    def build(stream: Any) -> Any:
        handle = stream.key_by("k").window(windows)
        return (handle.trigger(ByElement()) if by_element else handle).agg(n=hw.count()).with_uid("totals")

    return build


@pytest.mark.parametrize("by_element", [False, True], ids=["by columns", "by element"])
@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("at", ENDS)
def test_a_row_whose_window_would_lie_beyond_time_is_refused_with_step_and_row(
    at: int, windows: str, by_element: bool
) -> None:
    harness = Harness(windowed(WINDOWS[windows], by_element=by_element), ROWS)
    with pytest.raises(hw.HeadwaterError, match=f"step 'totals'.*{at}") as raised:
        harness.push(("ann", 7), at=at)
    assert "292,000 years" in str(raised.value)
    assert "'ann'" in str(raised.value)


@pytest.mark.parametrize("by_element", [False, True], ids=["by columns", "by element"])
@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("at", [-FURTHEST_MS + 20_000, FURTHEST_MS - 20_000])
def test_windows_near_the_ends_are_exact(at: int, windows: str, by_element: bool) -> None:
    late = hw.OutputTag("late", "ts long, late_by_ms long")

    def build(stream: Any) -> Any:
        handle = stream.key_by("k").window(WINDOWS[windows]).allow_lateness(timedelta(days=999_999_999))
        return (handle.trigger(ByElement()) if by_element else handle).late_to(late).agg(n=hw.count()).select("n")

    harness = Harness(build, ROWS)
    harness.push(("ann", at), at=at)
    harness.watermark(at + 60_000)
    harness.push(("ann", at), at=at)
    ends = {row.timestamp for row in harness.take()}
    assert ends
    assert all(at - 10_000 <= end <= at + 10_000 for end in ends)
    assert harness.take(late) == []


@pytest.mark.parametrize("by_element", [False, True], ids=["by columns", "by element"])
def test_late_rows_of_far_years_are_as_all_others(by_element: bool) -> None:
    late = hw.OutputTag("late", "k string, late_by_ms long")
    at = 1_700_000_000_000_000

    def build(stream: Any) -> Any:
        handle = stream.key_by("k").window(hw.tumbling("10 s")).late_to(late)
        return (handle.trigger(ByElement()) if by_element else handle).agg(n=hw.count())

    harness = Harness(build, ROWS)
    harness.watermark(at + 60_000)
    harness.push(("ann", 1), at=at)
    assert harness.take(late) == [("ann", 60_000)]


def test_a_time_that_no_datetime_holds_is_told_with_what_was_meant() -> None:
    harness = Harness(windowed(hw.tumbling("10 s"), by_element=False), ROWS)
    harness.push(("ann", 1), at=1_700_000_000_000_000)
    with pytest.raises(hw.RowError, match="end with the year 9999; is the event-time column in microseconds"):
        harness.end()


def run(rows: list[tuple[Any, ...]], build: Any, schema: str = ROWS, watermarks: hw.Watermarks = PLAIN) -> list[Any]:
    env = hw.Environment("limits", engine="local")
    sink = MemorySink()
    build(env.from_rows(rows, schema, watermarks, name="events")).sink(sink)
    env.run()
    return sink.rows


def test_the_smallest_integer_is_no_timestamp_and_is_refused_as_null_is() -> None:
    with pytest.raises(
        hw.SourceError, match=r"'events'|events: the event-time column 'ts' is the smallest 64-bit"
    ) as raised:
        run([("ann", 1), ("bob", MIN_TIMESTAMP)], lambda stream: stream)
    assert "'bob'" in str(raised.value)


def test_the_smallest_integer_but_one_is_a_timestamp() -> None:
    class Times(hw.KeyedProcessFunction):
        def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
            yield {"at": ctx.timestamp}

    rows = [("ann", MIN_TIMESTAMP + 1), ("ann", MAX_TIMESTAMP)]
    found = run(
        rows, lambda s: s.key_by("k").process(Times(), "at long"), watermarks=hw.Watermarks.bounded("ts", "9 days")
    )
    assert [row.at for row in found] == [MIN_TIMESTAMP + 1, MAX_TIMESTAMP]


def test_a_timer_beyond_time_is_told_with_step_key_and_time() -> None:
    class Sets(hw.KeyedProcessFunction):
        def process(self, event: Any, ctx: hw.Context) -> None:
            ctx.timers.event_time(event.ts + 10)

    with pytest.raises(hw.UserCodeError, match=r"step 'sets' failed for key 'ann' at timestamp .*must fit 64 bits"):
        run([("ann", MAX_TIMESTAMP - 1)], lambda s: s.key_by("k").process(Sets(), "n long"))


@pytest.mark.parametrize("at", [MIN_TIMESTAMP + 5, MAX_TIMESTAMP - 5])
def test_an_interval_join_stops_at_the_ends_of_time(at: int) -> None:
    def build(left: Any) -> Any:
        right = left.select("k", "ts").key_by("k")
        return left.key_by("k").interval_join(right, between=("-1 day", "1 day")).select("k")

    assert len(run([("ann", at)], build)) == 1


def test_nanoseconds_in_a_column_of_milliseconds_are_named() -> None:
    nanoseconds = 1_700_000_000_123_456_789
    with pytest.raises(hw.RowError, match=r"is the event-time column in nanoseconds.*divide it by 1_000_000"):
        run([("ann", nanoseconds)], windowed(hw.tumbling("10 s"), by_element=False))


def test_event_time_thousands_of_years_ahead_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    microseconds = 1_700_000_000_123_456
    with caplog.at_level(logging.WARNING, "headwater"):
        run([("ann", microseconds), ("ann", microseconds + 1)], lambda stream: stream)
    (told,) = [record.getMessage() for record in caplog.records]
    assert told == (
        "source 'events': event time is in year 55840 (timestamp 1700000000123457); is the event-time column in "
        "microseconds? Headwater reads a bigint as milliseconds: divide it by 1_000"
    )


def test_likely_event_time_is_not_told_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "headwater"):
        run([("ann", 1_700_000_000_123)], lambda stream: stream)
    assert caplog.records == []


@pytest.mark.parametrize("duration", ["1000000000000000 days", "10000000000000000000 ms"])
def test_a_duration_that_no_number_holds_is_refused(duration: str) -> None:
    with pytest.raises(hw.DurationError, match="must fit 64 bits of milliseconds"):
        hw.Watermarks.bounded("ts", duration)


def test_windows_as_long_as_time_are_refused_where_they_are_made() -> None:
    with pytest.raises(hw.GraphError, match="needs a size of at most 292,000 years"):
        hw.tumbling(timedelta(days=999_999_999))
