"""Runs that read what is there and stop: run after run of one job, each row once over all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.parts.waiting import until

import headwater as hw
from headwater.task.inflight import FIRST_BUDGET

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::headwater.GuaranteeWarning"),  # sinks in memory, to compare
]

SCHEMA = "k string, ts long"
HOUR_MS = 3_600_000


def topic_in(folder: Path, partitions: int = 1) -> Any:
    return hw.EventLog(folder / "log").create_topic("rows", hw.Schema.of(SCHEMA).arrow, partitions=partitions)


def windows(folder: Path, spark: SparkSession, sink: Any, **settings: Any) -> hw.Environment:
    """Rows of each ten milliseconds, counted by key."""
    settings = {"job_dir": folder / "job", "checkpoint_interval": "10 ms", **settings}
    env = hw.Environment("windows", spark=spark, **settings)
    marks = hw.Watermarks.monotonous("ts").with_idleness("10 s")
    rows = env.source(hw.connectors.log(folder / "log", "rows"), SCHEMA, marks, name="rows")
    counted = rows.key_by("k").window(hw.tumbling("10 ms")).agg(n=hw.count()).with_uid("counted")
    shown = counted.map(lambda row: (round(row.window_end.timestamp() * 1000), row.n), "ends long, n long")
    shown.sink(sink, name="out")
    return env


def shown(folder: Path) -> Counter[tuple[Any, ...]]:
    found = ds.dataset(folder / "out", format="parquet").to_table().to_pylist()
    return Counter((row["ends"], row["n"]) for row in found)


def fail_at(step: hw.EpochStep) -> Any:
    def on_step(at: hw.EpochStep, epoch: int) -> None:
        if at is step:
            raise OSError(f"it dies at {step.name}")

    return on_step


def test_runs_go_on_exactly_once_through_crashes_a_live_run_a_rewind_and_the_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    topic = topic_in(tmp_path)

    def job() -> hw.Environment:
        return windows(tmp_path, spark, hw.connectors.files(tmp_path / "out"), max_rows_per_epoch=4)

    def add(*times: int) -> None:
        topic.append([("a", ts) for ts in times])

    add(1, 2, 11, 12, 13, 21)
    first = job().run(available_now=True)
    assert (first.status().state, first.status().positions) == ("stopped", {"rows": {"0": 6}})
    assert shown(tmp_path) == {(10, 2): 1, (20, 3): 1}, "the window that is not over stays open"

    nothing_new = job().run(available_now=True)
    assert (nothing_new.status().state, nothing_new.status().steps["rows"].rows_in) == ("stopped", 0)
    add(22, 31)
    with pytest.raises(hw.JobError, match="it dies at MANIFEST"):
        job().run(available_now=True, on_step=fail_at(hw.EpochStep.MANIFEST))
    assert shown(tmp_path) == {(10, 2): 1, (20, 3): 1}
    job().run(available_now=True)
    add(41)
    with pytest.raises(hw.JobError, match="it dies at COMMITTED"):
        job().run(available_now=True, on_step=fail_at(hw.EpochStep.COMMITTED))
    expected = {(10, 2): 1, (20, 3): 1, (30, 2): 1}
    assert shown(tmp_path) == expected
    job().run(available_now=True)
    assert shown(tmp_path) == {**expected, (40, 1): 1}, "what was committed is published first"

    checkpoints = hw.checkpoints(tmp_path / "job")
    checkpoints.rewind(checkpoints[0].epoch)
    assert job().run(available_now=True).status().state == "stopped"
    assert shown(tmp_path) == {**expected, (40, 1): 1}, "nothing comes again"

    add(51)
    live = job().start(bounded=False)
    until(lambda: shown(tmp_path) == {**expected, (40, 1): 1, (50, 1): 1}, live)
    live.stop()
    add(52, 61)
    last = job().run(bounded=True)
    assert last.status().state == "finished"
    assert shown(tmp_path) == {**expected, (40, 1): 1, (50, 1): 1, (60, 2): 1, (70, 1): 1}
    assert job().run(available_now=True).status().state == "finished", "that was the end, and there is nothing new"
    add(71)
    with pytest.raises(hw.JobError, match=r"is at its maximum.*new job_dir.*available_now=True"):
        job().run(available_now=True)


class Remind(hw.KeyedProcessFunction):
    """Tells a minute after a row, by the clock, at which time it was."""

    def process(self, event: Any, ctx: hw.Context) -> None:
        ctx.timers.processing_time(ctx.now + 60_000)

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield ctx.key, timer.timestamp, ctx.now


def test_timers_that_were_due_between_runs_fire_in_the_next_one(spark: SparkSession, tmp_path: Path) -> None:
    topic_in(tmp_path).append([("a", 1)])
    sink = hw.connectors.memory()

    def job() -> hw.Environment:
        env = hw.Environment("reminded", spark=spark, job_dir=tmp_path / "job")
        rows = env.source(hw.connectors.log(tmp_path / "log", "rows"), SCHEMA, name="rows")
        rows.key_by("k").process(Remind(), "k string, due long, now long", name="remind").sink(sink, name="out")
        return env

    job().run(available_now=True, clock=lambda _: 0)
    assert sink.rows == [], "the run does not wait for them"
    job().run(available_now=True, clock=lambda _: HOUR_MS)
    assert [tuple(row) for row in sink.rows] == [("a", 60_000, HOUR_MS)]


def test_hours_between_runs_make_no_row_late(spark: SparkSession, tmp_path: Path) -> None:
    topic = topic_in(tmp_path, partitions=2)
    sink = hw.connectors.memory()

    def run(hour: int) -> hw.Job:
        env = windows(tmp_path, spark, sink, max_rows_per_epoch=4)
        return env.run(available_now=True, clock=lambda epoch: hour * HOUR_MS + epoch)

    def found() -> list[tuple[int, int]]:
        return sorted((row.ends, row.n) for row in sink.rows)

    topic.append([("a", ts) for ts in (1, 2)], partition=0)
    topic.append([("a", 3)], partition=1)
    run(0)
    topic.append([("a", ts) for ts in range(4, 44)], partition=0)
    topic.append([("a", ts) for ts in range(4, 14)], partition=1)
    job = run(1)
    assert job.status().steps["counted"].counters["late_dropped"] == 0
    assert found() == [(10, 15)], "the slower split is waited for"
    topic.append([("a", 50)], partition=0)
    job = run(2)
    assert found() == [(10, 15), (20, 14), (30, 10), (40, 10), (50, 4)], "a split that had no row for an hour is not"
    assert job.status().steps["counted"].counters["late_dropped"] == 0


def test_a_run_keeps_its_end_over_a_restart_and_leaves_later_rows_to_the_next(
    spark: SparkSession, tmp_path: Path
) -> None:
    topic = topic_in(tmp_path)
    topic.append([("a", ts) for ts in range(5)])
    failed: list[int] = []

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.MANIFEST and not failed:
            failed.append(epoch)
            topic.append([("a", ts) for ts in range(5, 25)])
            raise OSError("it dies here")

    def job(sink: Any) -> hw.Environment:
        return windows(tmp_path, spark, sink, max_rows_per_epoch=2, restart=hw.restart.fixed(1, delay="0 ms"))

    sink = hw.connectors.memory()
    status = job(sink).run(available_now=True, on_step=on_step).status()
    assert (status.state, len(status.restarts), status.positions) == ("stopped", 1, {"rows": {"0": 5}})
    path = tmp_path / "savepoint"
    assert job(sink).run(available_now=True).savepoint(path) == path
    assert [(row.ends, row.n) for row in sink.rows] == [(10, 10), (20, 10)]

    topic.append([("a", 30)])
    copy = hw.connectors.memory()
    env = windows(tmp_path, spark, copy, job_dir=tmp_path / "copy")
    for _ in range(2):
        assert env.run(from_=path, available_now=True).status().state == "stopped"
    assert [(row.ends, row.n) for row in copy.rows] == [(30, 5)], "a job from a savepoint goes on as well"


class Numbered(hw.KeyedProcessFunction):
    seen = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.seen.set(self.seen.get() + 1)
        yield event.ts, self.seen.get()


def test_unaligned_epochs_leave_nothing_in_flight(spark: SparkSession, tmp_path: Path) -> None:
    topic = topic_in(tmp_path)
    sink = hw.connectors.memory()
    rows = 3 * FIRST_BUDGET
    for run in range(2):
        topic.append([("a", n) for n in range(run * rows, (run + 1) * rows)])
        env = hw.Environment("unaligned", spark=spark, job_dir=tmp_path / "job", unaligned="50 ms")
        stream = env.source(hw.connectors.log(tmp_path / "log", "rows"), SCHEMA, hw.Watermarks.monotonous("ts"))
        stream.key_by("k").process(Numbered(), "n long, number long", name="numbered").sink(sink, name="out")
        status = env.run(available_now=True).status()
        assert (status.state, status.steps["numbered"].in_flight) == ("stopped", 0)
        assert [tuple(row) for row in sink.rows] == [(n, n + 1) for n in range((run + 1) * rows)]


def test_files_frames_and_generators_are_read_as_far_as_they_are(spark: SparkSession, tmp_path: Path) -> None:
    """Beside each other, in one job; and rows in the program, which end and do not come again."""
    found = {name: hw.connectors.memory() for name in ("files", "frame", "made", "given")}

    def run(seconds: int, **kind: Any) -> hw.Job:
        env = hw.Environment("several", spark=spark, job_dir=tmp_path / "job", checkpoints_retained=2)
        frame = spark.readStream.schema("n long").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
        streams = {
            "files": env.source(hw.connectors.read_files(tmp_path / "in", settle="0 s"), "n long", name="files"),
            "frame": env.from_dataframe(frame, name="frame"),
            "made": env.source(hw.connectors.generator(lambda i: (i,), rate=10.0), "n long", name="made"),
            "given": env.from_rows([(0,), (1,)], "n long", name="given"),
        }
        for name, stream in streams.items():
            stream.sink(found[name], name=f"{name}-out")
        return env.run(clock=lambda _: 1000 * seconds, **kind)

    def numbers() -> dict[str, list[int]]:
        return {name: sorted(row.n for row in sink.rows) for name, sink in found.items()}

    (tmp_path / "in").mkdir()
    for part in range(3):
        pq.write_table(pa.table({"n": [2 * part, 2 * part + 1]}), tmp_path / "in" / f"{part}.parquet")
        assert run(part, available_now=True).status().state == "stopped"
        rows = list(range(2 * part + 2))
        assert numbers() == {"files": rows, "frame": rows, "made": list(range(10 * part)), "given": [0, 1]}
    assert run(3, bounded=True).status().state == "finished"
    assert [len(rows) for rows in numbers().values()] == [6, 6, 20, 2]
