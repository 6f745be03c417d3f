from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headwater as hw

SCHEMA = "k string, ts long"


class Remind(hw.KeyedProcessFunction):
    def process(self, event: Any, ctx: hw.Context) -> None:
        def later() -> None:
            ctx.timers.event_time(event.ts + 10)

        later()


class ByClock(hw.KeyedProcessFunction):
    def process(self, event: Any, ctx: hw.Context) -> None:
        ctx.timers.processing_time(ctx.now + 10)


class Meet(hw.CoProcessFunction):
    def process1(self, event: Any, ctx: hw.Context) -> None:
        ctx.timers.event_time(event.ts + 10)


def job(folder: Path, build: Callable[[Any, Any], Any], watermarks: hw.Watermarks | None = None) -> hw.Environment:
    """A job over a log, which does not end, with or without watermarks, and rows that do, without."""
    hw.EventLog(folder).create_topic("orders", SCHEMA, exist_ok=True)
    env = hw.Environment("times", engine="local", checkpoint_interval="1 ms")
    orders = env.source(hw.connectors.log(folder, "orders"), SCHEMA, watermarks, name="orders")
    build(orders, env.from_rows([("a", 1)], SCHEMA, name="rows")).sink(hw.connectors.memory())
    return env


def reminded(orders: Any, _: Any) -> Any:
    return orders.key_by("k").process(Remind(), "k string", name="remind")


def test_timers_that_can_never_fire_are_warned_of(tmp_path: Path) -> None:
    told = (
        r"step 'remind' waits for event time, which never moves: source 'orders' has no watermarks.*give it watermarks"
    )
    with pytest.warns(hw.EventTimeWarning, match=told) as caught:
        running = job(tmp_path, reminded).start()
    running.stop()
    assert [one.filename for one in caught] == [__file__]
    with pytest.warns(hw.EventTimeWarning, match="step 'meet' waits for event time"):
        running = job(tmp_path, lambda a, b: a.connect(b).process(Meet(), "k string", name="meet")).start()
    running.stop()


@pytest.mark.parametrize(
    ("build", "watermarks", "bounded"),
    [
        (reminded, hw.Watermarks.monotonous("ts"), False),
        (reminded, None, True),
        (lambda _, rows: reminded(rows, _), None, False),
        (lambda orders, _: reminded(orders.assign_watermarks(hw.Watermarks.monotonous("ts")), _), None, False),
        (lambda orders, _: orders.key_by("k").process(ByClock(), "k string"), None, False),
    ],
    ids=["with watermarks", "bounded", "rows that end", "watermarks in between", "by the clock"],
)
def test_event_time_that_moves_or_is_not_waited_for_is_nothing_to_warn_of(
    tmp_path: Path, build: Callable[[Any, Any], Any], watermarks: hw.Watermarks | None, bounded: bool
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        running = job(tmp_path, build, watermarks).start(bounded=bounded)
    running.stop()
