"""Mistakes in functions: told when the step is added where it can be seen, otherwise at the first row."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from tests.mistakes.mistake import ORDER, ROWS, orders, says

import headwater as hw


@says("'map'", "usr", "user, ts, amount")
def field_mistyped_in_function(folder: Path) -> None:
    orders().map(lambda order: {"who": order.usr}, "who string").collect()


@says("'map'", "nme", "name")
def function_gives_an_unknown_field(folder: Path) -> None:
    orders().map(lambda order: {"nme": order.user}, "name string").collect()


@says("'map'", "total", "double", "much")
def function_gives_a_wrong_type(folder: Path) -> None:
    orders().map(lambda order: {"total": "much"}, "total double").collect()


@says("'map'", "float")
def function_gives_no_row(folder: Path) -> None:
    orders().map(lambda order: order.amount, "total double").collect()


@says("'totals'", "'ann'", "ZeroDivisionError", "functions.py", "2026-01-01")
def function_raises(folder: Path) -> None:
    class Share(hw.KeyedProcessFunction):
        def process(self, order: Any, ctx: hw.Context) -> Any:
            yield {"share": order.amount / 0}

    orders().key_by("user").process(Share(), "share double", name="totals").collect()


@says("'window_reduce'", "'ann'", "ZeroDivisionError", "functions.py")
def reduce_function_raises(folder: Path) -> None:
    windows = orders().key_by("user").window(hw.tumbling("1 min"))
    windows.reduce(lambda a, b: {**a._asdict(), "amount": a.amount / 0}).collect()


@says("__init__", "class", "hw.ValueState")
def state_made_in_init(folder: Path) -> None:
    class Count(hw.KeyedProcessFunction):
        def __init__(self) -> None:
            self.n = hw.ValueState("long", default=0)

        def process(self, order: Any, ctx: hw.Context) -> Any:
            self.n.set(self.n.get() + 1)  # type: ignore[attr-defined]
            yield {"n": self.n.get()}  # type: ignore[attr-defined]

    orders().key_by("user").process(Count(), "n long").collect()


@says("guard", "open")
def lock_made_in_init(folder: Path) -> None:
    class Count(hw.KeyedProcessFunction):
        def __init__(self) -> None:
            self.guard = threading.Lock()

        def process(self, order: Any, ctx: hw.Context) -> Any:
            yield {"n": 1}

    env = hw.Environment("shop", job_dir=folder / "job")
    orders(env).key_by("user").process(Count(), "n long").sink(hw.connectors.files(folder / "out"))
    env.run()


@says("'none'", "int64")
def state_default_of_another_type(folder: Path) -> None:
    hw.ValueState("long", default="none")  # type: ignore[call-overload]


@says("on_element", "TriggerResult")
def trigger_that_returns_nothing(folder: Path) -> None:
    class Each(hw.Trigger):
        def on_element(self, row: Any, ctx: Any) -> Any:
            pass

    orders().key_by("user").window(hw.tumbling("1 min")).trigger(Each()).agg(n=hw.count()).collect()


@says("hw.Window")
def assigner_that_returns_tuples(folder: Path) -> None:
    class Days(hw.WindowAssigner):
        def assign(self, timestamp: int, row: Any = None) -> Any:
            return [(0, 86_400_000)]

    orders().key_by("user").window(Days()).agg(n=hw.count()).collect()


@says("'route[other]'", "unknown m", "fields n")
def side_output_of_another_schema(folder: Path) -> None:
    class Route(hw.ProcessFunction):
        def process(self, order: Any, ctx: hw.Context) -> Any:
            ctx.output(hw.OutputTag("other", "n long"), {"m": 1})
            yield {"n": 1}

    orders().process(Route(), "n long").collect()


@says("amount", "three", "double")
def row_of_a_wrong_type(folder: Path) -> None:
    hw.Environment("shop", engine="local").from_rows([("ann", ROWS[0][1], "three")], ORDER)


@says("amount")
def row_too_short(folder: Path) -> None:
    hw.Environment("shop", engine="local").from_rows([("ann", ROWS[0][1])], ORDER)


@says("'clock'", "ctx.now", "key_by")
def clock_asked_for_without_a_key(folder: Path) -> None:
    class Clock(hw.ProcessFunction):
        def process(self, order: Any, ctx: hw.Context) -> Any:
            yield {"now": ctx.now}

    orders().process(Clock(), "now timestamp").collect()


@says("timers")
def event_time_timer_without_event_time(folder: Path) -> None:
    class Later(hw.KeyedProcessFunction):
        def process(self, order: Any, ctx: hw.Context) -> Any:
            ctx.timers.event_time(ctx.timestamp + 60_000)
            return ()

    orders(timed=False).key_by("user").process(Later(), "n long").collect()
