"""Idle splits on the local engine: rows come at given times, the clock moves 100 ms an epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.parts.coming import SCHEMA
from tests.parts.watching import OUT, Watch

import headwater as hw
from headwater.connectors.memory import MemorySink
from headwater.epoch import offsets
from headwater.epoch.offset import Offset
from headwater.plan.plan import plan_job
from headwater.testing import TimedRows


class Again(hw.KeyedProcessFunction):
    """The next level: shows when its own event time passes."""

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        if event.what != "timer":
            ctx.timers.event_time(event.at + 10)
        return iter(())

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield ctx.key, "deep timer", timer.timestamp, ctx.now


def tick(epoch: int) -> int:
    return 100 * (epoch + 1)


def run(*sources: TimedRows, strategy: hw.Watermarks, levels: int = 1) -> list[tuple[Any, ...]]:
    env = hw.Environment("idle", engine="local", checkpoint_interval="1 ms")
    streams = [env.source(source, SCHEMA, strategy, name=f"s{i}") for i, source in enumerate(sources)]
    stream = streams[0] if len(streams) == 1 else streams[0].union(*streams[1:])
    result = stream.key_by("k").process(Watch(), OUT)
    if levels == 2:
        result = result.key_by("k").process(Again(), OUT)
    sink = MemorySink()
    result.sink(sink)
    env.run(clock=tick)
    return [tuple(row) for row in sink.rows if row.now <= 2_000]


BUSY = [(at, ("a", at)) for at in range(0, 5_000, 100)]
"""A row every 100 ms, whose event time is the processing time."""
QUIET = [(10_000, ("b", 10_000))]
PLAIN = hw.Watermarks.monotonous("ts")


def timers(rows: list[tuple[Any, ...]], what: str = "timer") -> list[tuple[int, int]]:
    """Which timers fired, and when."""
    return [(at, now) for _, kind, at, now in rows if kind == what]


def test_without_idleness_a_quiet_split_holds_timers_back() -> None:
    assert timers(run(TimedRows([BUSY, QUIET], SCHEMA), strategy=PLAIN)) == []


def test_an_idle_split_does_not_hold_timers_back() -> None:
    found = timers(run(TimedRows([BUSY, QUIET], SCHEMA), strategy=PLAIN.with_idleness("500 ms")))
    first = [(at, now) for at, now in found if now == 500]
    assert first == [(at + 10, 500) for at in range(0, 500, 100)], "all that had waited, once it is idle"
    assert found[len(first) :] == [(now - 100 + 10, now) for now in range(600, 2_001, 100)], "then as they are due"


def test_idleness_goes_through_every_level() -> None:
    found = run(TimedRows([BUSY, QUIET], SCHEMA), strategy=PLAIN.with_idleness("500 ms"), levels=2)
    assert timers(found, "deep timer")[:5] == [(at + 10, 500) for at in range(0, 500, 100)]


def test_an_idle_source_does_not_block_the_union_with_another() -> None:
    sources = TimedRows([BUSY], SCHEMA), TimedRows([QUIET, QUIET], SCHEMA)
    found = timers(run(*sources, strategy=PLAIN.with_idleness("500 ms")))
    assert found[0] == (10, 500)
    assert found[-1] == (1_910, 2_000)


def test_a_split_that_wakes_up_is_not_late_by_itself() -> None:
    wakes = [(1_000, ("b", 1_000)), (1_100, ("b", 1_100)), *QUIET]
    found = run(TimedRows([BUSY, wakes], SCHEMA), strategy=PLAIN.with_idleness("500 ms"))
    assert [row for row in found if row[0] == "b" and row[1] != "timer"] == [
        ("b", "row", 1_000, 1_000),
        ("b", "row", 1_100, 1_100),
    ]
    held = [(at, now) for at, now in timers(found) if at >= 1_100]
    assert held[:2] == [(1_110, 1_600), (1_110, 1_600)], "and it counts again, until it is idle the next time"


def test_a_split_that_wakes_up_far_behind_does_not_hold_the_others_back() -> None:
    wakes = [(at, ("b", at - 900)) for at in range(1_000, 1_500, 100)] + QUIET
    found = run(TimedRows([BUSY, wakes], SCHEMA), strategy=PLAIN.with_idleness("500 ms"))
    assert {row[1] for row in found if row[0] == "b" and row[1] != "timer"} == {"late"}
    assert [(at, now) for k, kind, at, now in found if (k, kind) == ("a", "timer") and now > 1_000] == [
        (now - 100 + 10, now) for now in range(1_100, 2_001, 100)
    ]


def test_when_all_splits_are_idle_event_time_goes_to_the_furthest() -> None:
    ahead, behind = [(0, ("a", 700)), *QUIET], [(0, ("b", 100)), *QUIET]
    found = timers(
        run(TimedRows([ahead, behind], SCHEMA), strategy=hw.Watermarks.bounded("ts", "0 ms").with_idleness("1 s"))
    )
    assert found == [(110, 1_100)], "699 is the furthest; the timer for 710 waits"


def test_when_a_split_last_had_rows_is_in_the_offset() -> None:
    env = hw.Environment("offset", engine="local")
    source = TimedRows([[(0, ("a", 1)), (250, ("a", 2)), (9_000, ("a", 3))], QUIET], SCHEMA)
    env.source(source, SCHEMA, PLAIN.with_idleness("200 ms"), name="timed").sink(hw.connectors.memory())
    plan = plan_job(env.graph, 1, 128)
    offset, seen = offsets.first_offset(plan, tick), []
    for _ in range(6):
        after = offsets.next_offset(plan, offset, tick, 100, None)
        idle = [part.idle for part in offsets.ranges(plan, offset, after)]
        seen.append((after.now_ms, after.active_ms["timed"], idle))
        offset = after
    assert seen == [
        (100, {"0": 100, "1": 0}, [False, False]),
        (200, {"0": 100, "1": 0}, [False, True]),
        (300, {"0": 300, "1": 0}, [False, True]),
        (400, {"0": 300, "1": 0}, [False, True]),
        (500, {"0": 300, "1": 0}, [True, True]),
        (600, {"0": 300, "1": 0}, [True, True]),
    ]


def test_an_offset_from_before_there_was_idleness_counts_from_now_on() -> None:
    env = hw.Environment("offset", engine="local")
    env.source(TimedRows([QUIET], SCHEMA), SCHEMA, PLAIN.with_idleness("150 ms"), name="timed").sink(
        hw.connectors.memory()
    )
    plan = plan_job(env.graph, 1, 128)
    known = offsets.first_offset(plan, tick).to_json()
    old = Offset.from_json({k: v for k, v in known.items() if k not in ("active_ms", "marks", "format")}, "the log")
    first = offsets.next_offset(plan, old, lambda _: 5_000, 100, None)
    second = offsets.next_offset(plan, first, lambda _: 5_200, 100, None)
    assert [part.idle for part in offsets.ranges(plan, old, first)] == [False]
    assert [part.idle for part in offsets.ranges(plan, first, second)] == [True]
