"""What state costs, asked before a job runs, of a sample, and of the job that has run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater as hw


class Visits(hw.KeyedProcessFunction):
    count = hw.ValueState("long", default=0, ttl=hw.ttl("100 s"))
    pages = hw.MapState("string", "long")

    def process(self, visit: Any, ctx: hw.Context) -> Iterator[Any]:
        self.count.set(self.count.get() + 1)
        self.pages.put(visit.page, 1)
        yield ctx.key, self.count.get()


SCHEMA = "user long, page string, at long"


def visits(count: int) -> list[tuple[int, str, int]]:
    """One a second, each of a new user."""
    return [(n, f"page {n % 3}", 1000 * n) for n in range(count)]


def job(watermarks: hw.Watermarks | None = None, rows: Any = None) -> tuple[hw.Environment, Any]:
    env = hw.Environment("visits", engine="local", max_rows_per_epoch=50)
    sink = hw.connectors.memory()
    source = env.from_rows(visits(600) if rows is None else rows, SCHEMA, watermarks)
    source.key_by("user").process(Visits(), "user long, n long", name="visits").sink(sink)
    return env, sink


def test_a_plan_tells_what_is_kept_and_no_sizes() -> None:
    told = job()[0].explain_state()
    count, pages = told["visits"].keeps
    assert (count.lasts_ms, count.clock, pages.lasts_ms) == (100_000, "processing", None)
    assert (told["visits"].sizes, told["visits"].grows, told.measured) == ((), None, None)
    assert str(told) == job()[0].explain("state")


def test_a_sample_tells_sizes_growth_and_what_expires_and_writes_nothing() -> None:
    env, sink = job()
    step = env.explain_state(sample=600, rows_per_second=1)["visits"]
    count, pages = (next(size for size in step.sizes if size.name == name) for name in ("count", "pages"))
    assert count.growth is not None
    assert pages.growth is not None
    assert 100 <= count.entries <= 130  # as many as come in the time that they are there
    assert (pages.entries, count.growth.is_level, pages.growth.has_only_grown) == (600, True, True)
    assert round(pages.growth.entries_per_hour, -2) == 3_600
    assert pages.growth.week_bytes == pytest.approx(pages.entry_bytes * 3_600 * 168, rel=0.02)
    assert count.growth.week_bytes < 2 * count.size_bytes
    assert step.expired == 600 - count.entries
    assert (step.grows, step.clock, sink.rows) == ("so far", "processing", [])


def test_growth_is_told_by_event_time_where_rows_have_it() -> None:
    env, _ = job(hw.Watermarks.monotonous("at"))
    told = env.explain_state(sample=300)
    step = told["visits"]
    growth = next(size.growth for size in step.sizes if size.name == "pages")
    assert growth is not None
    assert (step.clock, round(growth.entries_per_hour, -2)) == ("event", 3_600)
    assert "in a sample of 30" in str(told)
    assert "growth by event time" in str(told)
    assert "has only grown so far: visits; clear it" in str(told)


def test_without_time_there_are_sizes_and_no_forecast() -> None:
    step = job()[0].explain_state(sample=100)["visits"]
    assert {size.growth for size in step.sizes} == {None}
    assert step.size_bytes > 0


def test_rows_can_be_given_for_a_source() -> None:
    env, _ = job(rows=[])
    step = env.explain_state(sample={"rows": visits(96)}, rows_per_second=1)["visits"]
    assert next(size.entries for size in step.sizes if size.name == "pages") == 96


def test_a_source_that_gives_rows_by_time_gives_them_to_a_sample() -> None:
    env = hw.Environment("visits", engine="local")
    source = env.source(hw.connectors.generator(lambda n: (n, "page", n), rate=10_000), SCHEMA)
    source.key_by("user").process(Visits(), "user long, n long", name="visits").sink(hw.connectors.blackhole())
    step = env.explain_state(sample=100)["visits"]
    assert next(size.entries for size in step.sizes if size.name == "pages") >= 100
    assert step.clock == "processing"


def test_an_endless_source_is_read_for_a_time(tmp_path: Path) -> None:
    hw.EventLog(tmp_path).create_topic("visits", SCHEMA, partitions=1).append(visits(40))
    env = hw.Environment("visits", engine="local")
    source = env.source(hw.connectors.log(tmp_path, "visits"), SCHEMA)
    source.key_by("user").process(Visits(), "user long, n long", name="visits").sink(hw.connectors.blackhole())
    told = env.explain_state(sample="300 ms")
    assert "in a sample of 300 ms of 40 rows" in str(told)


@pytest.mark.parametrize(
    ("sample", "said"),
    [(0, "1 row or more"), ({"other": []}, "samples sources: rows"), ("soon", "the sample of explain_state")],
)
def test_what_is_no_sample_is_refused(sample: Any, said: str) -> None:
    with pytest.raises(hw.HeadwaterError, match=said):
        job()[0].explain_state(sample=sample)


def test_a_job_that_has_run_tells_the_same_with_its_own_time() -> None:
    env, _ = job()
    done = env.run(clock=lambda epoch: 50_000 * epoch)
    told = done.explain_state()
    step = told["visits"]
    assert step.expired == done.status().steps["visits"]["state_expired"] == 500
    assert [size.entries for size in step.sizes if size.name == "count"] == [100]
    assert done.status().steps["visits"].growth["week_bytes"] > 1_000_000
    assert "expired in this run: 500" in str(told)
    assert "level, as the run is older than entries get: count" in str(told)
    content = json.loads(json.dumps(told.to_dict()))
    assert content["steps"]["visits"]["sizes"][0]["entries"] == 100
    assert content["steps"]["visits"]["grows"] == "so far"


def sampled(function: Any, rows: Any = None, backend: Any = "memory") -> tuple[Any, str]:
    """What is told of a step that runs a function, asked of a sample of rows."""
    env = hw.Environment("growing", engine="local", state_backend=backend)
    source = env.from_rows(visits(960) if rows is None else rows, SCHEMA, hw.Watermarks.monotonous("at"))
    source.key_by("user").process(function, "user long", name="step").sink(hw.connectors.blackhole())
    told = env.explain_state(sample=960)
    return told["step"], str(told)


class Timed(hw.KeyedProcessFunction):
    """Sets a timer for a time that is far away."""

    def process(self, visit: Any, ctx: hw.Context) -> Iterator[Any]:
        ctx.timers.event_time(visit.at + 30 * 86_400_000)
        return iter(())

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        return iter(())


class TimedAndExpiring(Timed):
    last = hw.ValueState("long", ttl=hw.ttl("1 min", clock="event"))

    def process(self, visit: Any, ctx: hw.Context) -> Iterator[Any]:
        self.last.set(visit.at)
        return super().process(visit, ctx)


class Logged(hw.KeyedProcessFunction):
    """Keeps all that comes of a key."""

    log = hw.ListState("string")
    by_time = hw.MapState("long", "string")

    def process(self, visit: Any, ctx: hw.Context) -> Iterator[Any]:
        self.log.add("x" * 50)
        self.by_time.put(visit.at, "x")
        return iter(())


@pytest.mark.parametrize("backend", ["memory", "disk"])
def test_what_keys_have_grows_where_the_keys_stay_the_same(backend: str) -> None:
    step, text = sampled(Logged(), [(n % 10, "page", 1000 * n) for n in range(4_800)], backend)
    log, by_time = (next(size for size in step.sizes if size.name == name) for name in ("log", "by_time"))
    assert (log.entries, by_time.entries, step.grows) == (10, 10, "so far")
    for size in (log, by_time):
        assert size.growth.has_only_grown
        assert size.growth.week_bytes > 100 * size.size_bytes
    assert "has only grown so far: step; clear it" in text


@pytest.mark.parametrize("backend", ["memory", "disk"])
@pytest.mark.parametrize("function", [Timed(), TimedAndExpiring()])
def test_timers_are_kept_until_they_fire_however_short_states_last(function: Any, backend: str) -> None:
    step, text = sampled(function, backend=backend)
    timers = next(size for size in step.sizes if size.name == "@timers.event")
    assert (timers.entries, timers.growth.is_level, timers.growth.has_only_grown) == (960, False, True)
    assert timers.growth.week_bytes > 100 * timers.size_bytes
    assert (step.keeps[-1].what, step.grows) == ("timers", "so far")
    assert step.ways_out == ("set timers for what is due soon, and delete those that are not needed any more",)
    assert "all of it is bounded" not in text
    levels = {size.name: size.growth.is_level for size in step.sizes if not size.name.startswith("@")}
    assert levels == ({"last": True} if isinstance(function, TimedAndExpiring) else {})


class Changes(hw.ProcessWindowFunction):
    """Keeps something of every window of a key, and something of the window."""

    seen = hw.MapState("long", "long")
    fired = hw.per_window(hw.ValueState("long"))

    def process(self, rows: Any, ctx: Any) -> Iterator[Any]:
        for row in rows:
            self.seen.put(row.at, 1)
        self.fired.set(1)
        yield (ctx.key,)


def test_what_the_function_of_windows_keeps_of_a_key_stays_when_windows_go() -> None:
    env = hw.Environment("growing", engine="local")
    source = env.from_rows(visits(960), SCHEMA, hw.Watermarks.monotonous("at"))
    windows = source.key_by("user").window(hw.tumbling("1 min")).allow_lateness("1 min")
    windows.process(Changes(), "user long").with_uid("step").sink(hw.connectors.blackhole())
    step = env.explain_state(sample=960)["step"]
    until = {held.what.split()[0]: held.until for held in step.keeps}
    assert until["seen"] == "your function removes it"
    assert until["fired"] == until["every"] == "the watermark passes the end of the window and 1 min more"
    levels = {size.name: size.growth.is_level for size in step.sizes if size.growth and size.entries}
    assert levels == {"rows": True, "fired": True, "seen": False, "@pane": True, "@timers.event": True}
    assert step.grows == "so far"
    assert "keep it with hw.per_window(...)" in step.ways_out[1]


def test_what_is_left_to_a_function_is_not_said_to_be_bounded() -> None:
    env, _ = job()
    told = env.explain_state()
    assert str(told).endswith("bounded if its function removes enough: visits")
    assert told["visits"].is_left_to_function


def test_keys_that_deduplicate_has_forgotten_are_counted() -> None:
    env = hw.Environment("once", engine="local", max_rows_per_epoch=20)
    source = env.from_rows(visits(200), SCHEMA, hw.Watermarks.monotonous("at"))
    source.deduplicate("user", ttl="30 s").sink(hw.connectors.blackhole())
    (step,) = env.explain_state(sample=200).steps.values()
    assert 0 < step.expired <= 170
    assert step.sizes[0].growth is not None


def test_windows_level_off_when_the_watermark_has_passed_the_first_ones() -> None:
    env = hw.Environment("windows", engine="local", max_rows_per_epoch=20)
    source = env.from_rows(visits(900), SCHEMA, hw.Watermarks.monotonous("at"))
    windows = source.key_by("page").window(hw.tumbling("1 min")).allow_lateness("1 min")
    windows.agg(n=hw.count()).sink(hw.connectors.memory())
    (step,) = env.explain_state(sample=900).steps.values()
    assert {held.lasts_ms for held in step.keeps} == {120_000}
    known = [size.growth for size in step.sizes if size.growth is not None and size.entries]
    assert [growth.is_level for growth in known] == [True] * len(known)
    assert known
