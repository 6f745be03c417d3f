"""Live sources that have no splits for a while: event time waits for them, and does not end."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.parts.coming import SCHEMA, Coming
from tests.parts.watching import OUT, Watch

import headwater as hw
from headwater.connectors.memory import MemorySink
from headwater.testing import TimedRows

PLAIN = hw.Watermarks.monotonous("ts")


def tick(epoch: int) -> int:
    return 100 * (epoch + 1)


def run(*sources: TimedRows, strategy: hw.Watermarks = PLAIN) -> list[tuple[Any, ...]]:
    """What is shown in the first two seconds of a job that would go on."""
    env = hw.Environment("coming", engine="local", checkpoint_interval="1 ms")
    streams = [env.source(source, SCHEMA, strategy, name=f"s{i}") for i, source in enumerate(sources)]
    stream = streams[0] if len(streams) == 1 else streams[0].union(*streams[1:])
    sink = MemorySink()
    stream.key_by("k").process(Watch(), OUT).sink(sink)
    job = env.start(clock=tick, bounded=False)
    while (job.status().epoch or 0) < 25:
        time.sleep(0.005)
    job.stop()
    job.wait()
    return [tuple(row) for row in sink.rows if row.now <= 2_000]


def shown(rows: list[tuple[Any, ...]], *, key: str | None = None) -> list[tuple[Any, ...]]:
    return [row[1:] for row in rows if key in (None, row[0])]


def test_event_time_does_not_end_when_the_last_split_goes_and_another_one_comes() -> None:
    rows = run(
        Coming(
            [
                ([(0, 600)], [(100, ("a", 100)), (300, ("a", 300))]),
                ([(1_000, 9_000)], [(1_100, ("b", 200)), (1_300, ("b", 900))]),
            ]
        )
    )
    assert shown(rows, key="a") == [
        ("row", 100, 100),
        ("row", 300, 300),
        ("timer", 110, 300),
        ("timer", 310, 1_300),
    ], "the second timer waits for a row of the split that comes"
    assert shown(rows, key="b")[:2] == [("late", 200, 1_100), ("row", 900, 1_300)], "only what is behind a row is late"


def test_a_source_that_begins_without_splits_holds_event_time_back_until_it_has_some() -> None:
    busy = TimedRows([[(at, ("a", at)) for at in range(0, 9_000, 100)]], SCHEMA)
    rows = run(busy, Coming([([(1_000, 9_000)], [(1_200, ("b", 1_150)), (1_600, ("b", 1_590))])]))
    timers = [(at, now) for what, at, now in shown(rows, key="a") if what == "timer"]
    assert timers[0] == (10, 1_200)
    assert {now for _, now in timers} == {1_200, 1_600}
    assert ("late", 1_150, 1_200) not in shown(rows, key="b")


def test_a_source_without_splits_is_idle_as_its_strategy_says() -> None:
    busy = TimedRows([[(at, ("a", at)) for at in range(0, 9_000, 100)]], SCHEMA)
    coming = Coming([([(1_000, 1_300)], [(1_000, ("b", 1_000))]), ([(1_700, 9_000)], [(1_700, ("b", 1_700))])])
    rows = run(busy, coming, strategy=PLAIN.with_idleness("500 ms"))
    timers = [(at, now) for what, at, now in shown(rows, key="a") if what == "timer"]
    assert timers[0] == (10, 500), "without splits for 500 ms"
    assert (910, 1_000) in timers
    assert shown(rows, key="b")[0] == ("row", 1_000, 1_000)
    assert {what for what, _, _ in shown(rows, key="b")} == {"row", "timer"}


def test_a_split_that_goes_and_comes_back_counts_again() -> None:
    steady = [(at, ("a", at)) for at in range(0, 9_000, 100)]
    rows = run(
        Coming([([(0, 9_000)], steady), ([(0, 500), (1_000, 9_000)], [(100, ("b", 100)), (1_500, ("b", 1_500))])])
    )
    timers = [(at, now) for what, at, now in shown(rows, key="a") if what == "timer"]
    assert (810, 900) in timers, "while it is gone nobody waits for it"
    assert {now for _, now in timers if 1_000 <= now < 1_500} == set(), "when it is back, event time waits for its rows"
    assert timers[-1][1] >= 1_500


@pytest.mark.parametrize("others", [[], [TimedRows([[(0, ("a", 5))]], SCHEMA)]], ids=["alone", "beside rows"])
def test_a_bounded_run_over_a_source_without_splits_ends_and_fires(others: list[TimedRows]) -> None:
    env = hw.Environment("coming", engine="local", checkpoint_interval="1 ms")
    streams = [env.source(source, SCHEMA, PLAIN, name=f"s{i}") for i, source in enumerate([Coming([]), *others])]
    stream = streams[0] if len(streams) == 1 else streams[0].union(*streams[1:])
    sink = MemorySink()
    stream.key_by("k").window(hw.tumbling("10 ms")).agg(n=hw.count()).sink(sink)
    job = env.run(clock=tick, bounded=True)
    assert job.status().state == "finished"
    assert [row.n for row in sink.rows] == [1] * len(others)


def test_a_job_goes_on_from_a_savepoint_that_was_taken_while_there_were_no_splits(tmp_path: Path) -> None:
    def job(source: TimedRows, sink: MemorySink) -> hw.Environment:
        env = hw.Environment("coming", engine="local", checkpoint_interval="1 ms")
        env.source(source, SCHEMA, PLAIN, name="s").key_by("k").process(Watch(), OUT).with_uid("watch").sink(sink)
        return env

    gone = job(Coming([([(0, 300)], [(100, ("a", 100))])]), MemorySink()).start(clock=tick, bounded=False)
    while gone.status().published < 6:
        time.sleep(0.005)
    path = gone.stop(savepoint=tmp_path / "saved")
    sink = MemorySink()
    back = Coming([([], []), ([(0, 10**9)], [(0, ("b", 500)), (0, ("b", 900))])])
    job(back, sink).run(from_=path, clock=tick, bounded=True)
    shown = [tuple(row)[:3] for row in sink.rows]
    assert ("a", "timer", 110) in shown
    assert ("b", "row", 500) in shown


def test_a_split_that_comes_after_the_savepoint_moves_event_time_before_the_end(tmp_path: Path) -> None:
    """Nothing that stood for the missing splits is left behind in the state."""
    env = hw.Environment("coming", engine="local", checkpoint_interval="1 ms")
    env.source(Coming([]), SCHEMA, PLAIN, name="s").key_by("k").process(Watch(), OUT).with_uid("watch").sink(
        MemorySink()
    )
    empty = env.start(clock=tick, bounded=False)
    while empty.status().published < 3:
        time.sleep(0.005)
    path = empty.stop(savepoint=tmp_path / "saved")
    env, sink = hw.Environment("coming", engine="local", checkpoint_interval="1 ms"), MemorySink()
    rows = [(0, ("b", 500)), (0, ("b", 900))]
    stream = env.source(Coming([([(0, 10**9)], rows)]), SCHEMA, PLAIN, name="s")
    stream.key_by("k").process(Watch(), OUT).with_uid("watch").sink(sink)
    going = env.start(from_=path, clock=tick, bounded=False)
    while not any(row.what == "timer" for row in sink.rows) and going.status().epoch < 60:
        time.sleep(0.005)
    going.stop()
    assert [row.at for row in sink.rows if row.what == "timer"] == [510]
