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
