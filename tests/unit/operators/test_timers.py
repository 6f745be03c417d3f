"""Times as functions see them and as columns have them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest

import headwater as hw
from headwater.testing import Harness

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
START_MS = 1_704_067_200_000


class Seen(hw.KeyedProcessFunction):
    first = hw.ValueState("timestamp")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        if self.first.get() is None:
            self.first.set(ctx.now)
        ctx.timers.event_time(event.due)
        yield {"k": event.k, "now": ctx.now, "at": ctx.timestamp, "first": self.first.get()}

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield {"k": "timer", "now": ctx.now, "at": timer.timestamp, "first": self.first.get()}


def harness() -> Harness:
    out = "k string, now timestamp, at timestamp_ntz, first timestamp"
    return Harness(lambda s: s.key_by("k").process(Seen(), out), "k string, due timestamp")


def test_the_times_of_a_context_go_into_timestamp_columns_and_state() -> None:
    driven = harness()
    driven.advance_to(START_MS)
    driven.push(("a", START), at=START_MS + 7)
    (row,) = driven.take()
    assert (row.now, row.first) == (START, START)
    assert row.at == START.replace(tzinfo=None) + dt.timedelta(milliseconds=7)


def test_a_timer_is_set_for_a_datetime_rounded_down_to_milliseconds() -> None:
    driven = harness()
    driven.push(("a", START + dt.timedelta(microseconds=5_999)), at=START_MS)
    driven.take()
    driven.watermark(START_MS + 4)
    assert driven.take() == []
    driven.watermark(START_MS + 5)
    assert [row.timestamp for row in driven.take()] == [START_MS + 5]


def test_a_timer_is_set_for_nothing_else() -> None:
    class Wrong(hw.KeyedProcessFunction):
        def process(self, event: Any, ctx: hw.Context) -> None:
            ctx.timers.event_time("soon")  # type: ignore[arg-type]

    driven = Harness(lambda s: s.key_by("k").process(Wrong(), "k string"), "k string")
    with pytest.raises(hw.UserCodeError, match="set for a datetime or an integer of milliseconds, got 'soon'"):
        driven.push(("a",))
