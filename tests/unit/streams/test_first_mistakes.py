"""Mistakes of the first hour: each is told when the job is built or starts, in a sentence with the way out."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.testing import Harness

ROWS = [{"user": "ann", "n": 1, "ts": 5}, {"user": "bob", "n": 2, "ts": 7}]
SCHEMA = "user string, n long, ts long"
PLAIN = hw.Watermarks.monotonous("ts")


def events(watermarks: hw.Watermarks | None = PLAIN) -> Any:
    return hw.Environment("mistake", engine="local").from_rows(ROWS, SCHEMA, watermarks, name="events")


def total(stream: Any) -> Any:
    return stream.key_by("user").window(hw.tumbling("10 ms")).agg(n=hw.sum("n")).with_uid("totals")


def joined(stream: Any) -> Any:
    timed = stream._env.from_rows(ROWS, SCHEMA, PLAIN, name="timed")
    return timed.join(stream).where("user").equal_to("user").window(hw.tumbling("10 ms")).apply()


def of_union(stream: Any) -> Any:
    timed = stream._env.from_rows(ROWS, SCHEMA, PLAIN, name="timed")
    return total(timed.union(stream))


@pytest.mark.parametrize(
    "build",
    [
        total,
        lambda s: total(s.map(lambda row: row).where("n > 0")),
        of_union,
        lambda s: s.window_all(hw.session("1 s")).agg(n=hw.count()),
        joined,
        lambda s: total(s.key_by("user").process(Passing(), SCHEMA)),
        lambda s: total(s.deduplicate("n").key_by("user").reduce(lambda a, b: b)),
    ],
    ids=["at once", "behind steps", "beside another", "over all", "joined", "behind a function", "behind others"],
)
def test_windows_and_joins_in_event_time_over_rows_without_one_are_refused_before_a_row_is_read(
    build: Callable[[Any], Any],
) -> None:
    with pytest.raises(hw.GraphError, match="works in event time, and the rows of source 'events' have none") as told:
        build(events(None)).collect()
    assert "hw.Watermarks.bounded('time', '5 s'), or use hw.processing_time" in str(told.value)


@pytest.mark.parametrize("untimed", ["left", "right"])
def test_joins_in_event_time_over_rows_without_one_are_refused_with_what_they_can_do(untimed: str) -> None:
    stream = events(None)
    timed = stream._env.from_rows(ROWS, SCHEMA, PLAIN, name="timed")
    left, right = (one.key_by("user") for one in ((stream, timed) if untimed == "left" else (timed, stream)))
    with pytest.raises(hw.GraphError, match=r"source 'events' have none; .* or join by time='processing'"):
        left.interval_join(right, ("0 s", "1 s")).collect()
    with pytest.raises(hw.GraphError, match=r"source 'events' have none; .* or take event time from a column with"):
        left.temporal_join(right).collect()


class Passing(hw.KeyedProcessFunction):
    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        yield event


class Timing(hw.KeyedProcessFunction):
    def process(self, event: Any, ctx: hw.Context) -> None:
        ctx.timers.event_time(event.ts)

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield {"user": ctx.key, "n": {"ann": 1, "bob": 2}[ctx.key], "ts": timer.timestamp}


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.key_by("user").window(hw.count(1)).agg(n=hw.sum("n")),
        lambda s: total(s.map_batches(lambda table: table, timestamp="ts")),
        lambda s: total(s.assign_watermarks(PLAIN)),
        lambda s: total(s.key_by("user").process(Timing(), SCHEMA)),
        lambda s: s.key_by("user").window(hw.global_window()).trigger(hw.triggers.count(1)).agg(n=hw.sum("n")),
    ],
    ids=["by count", "times given on the way", "watermarks assigned", "times of timers", "global"],
)
def test_windows_that_need_no_watermarks_go_without(build: Callable[[Any], Any]) -> None:
    assert sorted(row.n for row in build(events(None)).collect()) == [1, 2]


def test_windows_without_a_key_name_both_ways_out() -> None:
    with pytest.raises(
        hw.GraphError, match=r"\.window\(\.\.\.\) needs a keyed stream; got Step; call \.key_by"
    ) as told:
        events().window(hw.tumbling("1 s"))
    assert ".window_all(...)" in str(told.value)
    with pytest.raises(hw.GraphError, match=r"\.agg\(\.\.\.\) needs a keyed stream"):
        events().agg(n=hw.count())


def test_a_stream_has_no_other_attributes_than_it_had() -> None:
    assert not hasattr(events(), "window")
    with pytest.raises(AttributeError, match="'Step' object has no attribute 'filtre'"):
        events().filtre(lambda row: True)


class InInit(hw.KeyedProcessFunction):
    def __init__(self) -> None:
        self.count = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> None:
        self.count.set(self.count.get() + 1)


def test_state_made_in_init_is_told_to_move_to_the_class() -> None:
    with pytest.raises(hw.GraphError, match=r"got 'self\.count = hw\.ValueState\(\.\.\.\)'; move it out of __init__"):
        events().key_by("user").process(InInit(), "n long")


class Counting(hw.Trigger):
    def __init__(self) -> None:
        self.seen = hw.ValueState("long", default=0)

    def on_element(self, event: Any, ctx: Any) -> hw.TriggerResult:
        return hw.TriggerResult.FIRE


@pytest.mark.parametrize("trigger", [Counting(), hw.triggers.purging(Counting())], ids=["alone", "in another"])
def test_state_made_in_init_of_a_trigger_is_told_to_move_too(trigger: hw.Trigger) -> None:
    windows = events().key_by("user").window(hw.tumbling("1 s"))
    with pytest.raises(
        hw.GraphError, match=r"'Counting' has .*got 'self\.seen = hw\.ValueState.*; move it out of __init"
    ):
        windows.trigger(trigger).agg(n=hw.count())


class Guarded(hw.Trigger):
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def on_element(self, event: Any, ctx: Any) -> hw.TriggerResult:
        return hw.TriggerResult.FIRE


def test_what_cannot_be_copied_is_found_in_a_part_and_where_there_is_no_open() -> None:
    windows = events().key_by("user").window(hw.tumbling("1 s"))
    told = r"self\._inner\.lock \(a _thread\.lock\) cannot be copied: .*; make it where it is used, or in open"
    with pytest.raises(hw.GraphError, match=told):
        windows.trigger(hw.triggers.purging(Guarded())).agg(n=hw.count()).collect()


class Holding(hw.KeyedProcessFunction):
    def __init__(self, held: object) -> None:
        self.name, self.held = "holding", held

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        yield {"n": 1}


class HoldingRows(hw.ProcessFunction):
    def __init__(self, held: object) -> None:
        self.held = held

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        yield {"n": 1}


@pytest.mark.parametrize(
    "build",
    [lambda s, f: s.key_by("user").process(Holding(f), "n long"), lambda s, f: s.process(HoldingRows(f), "n long")],
)
@pytest.mark.parametrize(
    ("held", "kind"), [(threading.Lock, "_thread.lock"), (lambda: sqlite3.connect(":memory:"), "sqlite3.Connection")]
)
def test_what_cannot_be_copied_is_named_and_told_to_be_made_in_open(build: Any, held: Any, kind: str) -> None:
    thing = held()
    with pytest.raises(hw.GraphError, match=f"self.held \\(a {kind}\\) cannot be copied: .*; make it in open\\(\\)"):
        build(events(), thing).collect()
    if isinstance(thing, sqlite3.Connection):
        thing.close()


def test_a_sink_whose_path_is_a_file_is_refused_where_it_is_made(tmp_path: Path) -> None:
    file = tmp_path / "out.parquet"
    file.write_text("")
    for path in (file, file / "below"):
        with pytest.raises(hw.GraphError, match=r"'files' writes into a folder; got '.*out.parquet'; that is a file"):
            hw.connectors.files(path)


def test_two_sinks_in_one_folder_are_refused_before_either_writes(tmp_path: Path) -> None:
    stream = events()
    stream.sink(hw.connectors.files(tmp_path / "out"), name="first")
    stream.sink(hw.connectors.files(tmp_path / "there" / ".." / "out"), name="second")
    with pytest.raises(hw.GraphError, match=r"sinks 'first' and 'second' both write to the folder .*out"):
        stream._env.run()
    assert not (tmp_path / "out").exists()


def test_a_sink_does_not_put_its_files_among_those_of_others(tmp_path: Path) -> None:
    (tmp_path / "old.jsonl").write_text("{}\n")
    (tmp_path / "notes.txt").write_text("others need not mind")
    stream = events()
    stream.sink(hw.connectors.files(tmp_path, format="json"), name="out")
    with pytest.raises(hw.PublishError, match=r"files that no job has written there, such as old\.jsonl, and readers"):
        stream._env.run()
    (tmp_path / "old.jsonl").unlink()
    stream._env.run()
    assert len(list(tmp_path.glob("*.jsonl"))) == 1


class Silent(hw.Trigger):
    def on_element(self, event: Any, ctx: hw.TriggerContext) -> Any:
        ctx.timers.event_time(ctx.window.last)

    def on_event_time(self, timestamp: int, ctx: hw.TriggerContext) -> hw.TriggerResult:
        return hw.TriggerResult.FIRE


@pytest.mark.parametrize(
    "trigger", [Silent(), hw.triggers.purging(Silent()), hw.either(Silent(), hw.triggers.count(2))]
)
def test_a_trigger_that_returns_nothing_is_told_what_to_return(trigger: hw.Trigger) -> None:
    with pytest.raises(hw.RowError, match=r"Silent\.on_element must return a hw\.TriggerResult; got None; end it with"):
        events().key_by("user").window(hw.tumbling("10 ms")).trigger(trigger).agg(n=hw.count()).collect()


class Pairs(hw.WindowAssigner):
    def __init__(self, given: Any) -> None:
        self.given = given

    def assign(self, event: Any, timestamp: int) -> Any:
        return self.given


@pytest.mark.parametrize("given", [[(0, 10)], (0, 10), None, hw.Window(0, 10)], ids=str)
def test_an_assigner_that_gives_no_windows_is_told_what_to_give(given: Any) -> None:
    with pytest.raises(
        hw.RowError, match=r"assign of Pairs must give windows; got .*return a list such as \[hw\.Window"
    ):
        events().key_by("user").window(Pairs(given)).agg(n=hw.count()).with_uid("paired").collect()


def test_a_window_that_ends_before_it_starts_is_told_of() -> None:
    with pytest.raises(hw.RowError, match=r"a window ends after its start.*Pairs gave Window\(start=10, end=0\)"):
        events().key_by("user").window(Pairs([hw.Window(10, 0)])).agg(n=hw.count()).collect()


def test_state_before_the_first_epoch_says_when_to_ask() -> None:
    class Count(hw.KeyedProcessFunction):
        count = hw.ValueState("long", default=0)

        def process(self, event: Any, ctx: hw.Context) -> None:
            self.count.set(self.count.get() + 1)

    going = threading.Event()
    stream = events()
    stream.map(lambda row: going.wait(30) and row).key_by("user").process(Count(), "n long").sink(
        hw.connectors.memory()
    )
    job = stream._env.start()
    try:
        with pytest.raises(
            hw.JobError, match=r"has not committed an epoch yet.*ask again when job\.status\(\)\.published"
        ):
            job.state("count", "count")
    finally:
        going.set()
        job.wait()
    assert job.state("count", "count").get("ann") == 1


def test_a_field_that_a_row_does_not_have_is_told_with_those_that_it_has() -> None:
    with pytest.raises(
        hw.UserCodeError, match="the row has no field 'usr'; its fields are user, n, ts; did you mean 'user'"
    ):
        events().map(lambda ev: {"user": ev.usr, "n": 1, "ts": 1}).collect()
    harness = Harness(lambda s: s, SCHEMA)
    harness.push(("ann", 1, 2), at=1)
    (row,) = harness.take()
    assert getattr(row, "usr", "none") == "none"
    assert not hasattr(row, "amount")
