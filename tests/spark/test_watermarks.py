"""Idleness and alignment on Spark: what the planner decides, in its own process, is what the local engine decides."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.parts.waiting import until

import headwater as hw
from headwater.data.batch import MIN_TIMESTAMP
from headwater.testing import TimedRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = "k string, ts long"


class Remind(hw.KeyedProcessFunction):
    """Shows at which processing time a timer fires in event time."""

    def process(self, event: Any, ctx: hw.Context) -> None:
        ctx.timers.event_time(event.ts + 10)

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield ctx.key, timer.timestamp, ctx.now


class Stamp(hw.KeyedProcessFunction):
    """Shows at which processing time, and so in which epoch, a row was read."""

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        yield ctx.key, event.ts, ctx.now


def tick(epoch: int) -> int:
    return 100 * (epoch + 1)


def test_an_idle_split_does_not_hold_timers_back_on_spark(spark: SparkSession) -> None:
    busy = [(at, ("a", at)) for at in range(0, 1_000, 100)]
    quiet = [(1_200, ("b", 1_200))]
    strategy = hw.Watermarks.monotonous("ts").with_idleness("300 ms")
    found = []
    for engine in ("local", "spark"):
        env = hw.Environment("idle", engine=engine, spark=spark, checkpoint_interval="1 ms")
        stream: Any = env.source(TimedRows([busy, quiet], SCHEMA), SCHEMA, strategy)
        for level in ("first", "second"):
            stream = stream.key_by("k").process(Remind(), "k string, ts long, now long", name=level)
        sink = hw.connectors.memory()
        stream.sink(sink)
        env.run(clock=tick)
        found.append(sorted(map(tuple, sink.rows)))
    assert found[0] == found[1]
    assert found[1][0] == ("a", 20, 300)


@pytest.mark.filterwarnings(
    "ignore::headwater.GuaranteeWarning"
)  # each process's part of the rows is what is looked at
def test_alignment_is_planned_alike_on_spark_also_after_a_crash(spark: SparkSession, tmp_path: Path) -> None:
    dense = [(0, ("a", ts)) for ts in range(0, 60, 10)]
    sparse = [(0, ("b", ts)) for ts in range(0, 600, 100)]
    strategy = hw.Watermarks.monotonous("ts").aligned("g", "150 ms")

    def crash(step: hw.EpochStep, epoch: int) -> None:
        if (step, epoch) == (hw.EpochStep.STAGED, 3):
            raise OSError("the driver dies here")

    def run(engine: str, on_step: Any = lambda step, epoch: None) -> set[tuple[Any, ...]]:
        env = hw.Environment("aligned", engine=engine, spark=spark, job_dir=tmp_path / engine, max_rows_per_epoch=2)
        stream = env.source(TimedRows([dense, sparse], SCHEMA), SCHEMA, strategy)
        sink = hw.connectors.memory()
        stream.key_by("k").process(Stamp(), "k string, ts long, now long").sink(sink)
        job = env.start(clock=tick, on_step=on_step)
        if on_step is crash:
            with pytest.raises(hw.JobError, match="the driver dies here"):
                job.wait()
        else:
            job.wait()
        return set(map(tuple, sink.rows))

    local = run("local")
    assert {(ts, now) for k, ts, now in local if k == "b"} > {(0, 100), (100, 200), (200, 300), (300, 600)}
    assert run("spark", crash) | run("spark") == local


def test_event_time_that_waits_for_a_split_without_rows_is_told_once_on_spark(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic = hw.EventLog(tmp_path).create_topic("rows", hw.Schema.of(SCHEMA).arrow, partitions=2)
    env = hw.Environment("standing", spark=spark, job_dir=tmp_path / "job", checkpoint_interval="1 ms")
    rows = env.source(hw.connectors.log(tmp_path, "rows"), SCHEMA, hw.Watermarks.monotonous("ts"), name="rows")
    rows.key_by("k").process(Stamp(), "k string, ts long, now long").sink(hw.connectors.files(tmp_path / "out"))

    def write(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.PLANNED:
            topic.append([("a", 1_000 * epoch)], partition=0)

    with caplog.at_level(logging.WARNING, "headwater.time"):
        job = env.start(on_step=write, clock=lambda epoch: 5_000 * (epoch + 1))
        until(lambda: job.status().epoch >= 9, job)
        job.stop()
    told = [record.getMessage() for record in caplog.records if record.name == "headwater.time"]
    assert len(told) == 1
    assert "it waits for split '1' of source 'rows', which has had no rows" in told[0]
    seen = hw.control.job(tmp_path / "job").splits["rows"]
    assert seen["0"].rows_in >= 8
    assert (seen["1"].rows_in, seen["1"].watermark_ms) == (0, MIN_TIMESTAMP)
