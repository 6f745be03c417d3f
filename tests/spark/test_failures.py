"""What a user meets when something is wrong: errors that name the step and the way out, and a job that can go on."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.errors import StreamingQueryException

import headwater as hw
from headwater.spark.failures import marked, unwrap

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = "k string, ts timestamp, v long"


class Sums(hw.KeyedProcessFunction):
    total = hw.ValueState("long", default=0)

    def __init__(self, poison: int | None = None) -> None:
        self.poison = poison

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        if event.v == self.poison:
            self.fail_on(event)
        self.total.set(self.total.get() + event.v)
        yield (event.k, self.total.get())

    def fail_on(self, event: Any) -> None:
        raise ZeroDivisionError(f"poison {event.v}")


def _write(folder: Path, count: int, start: int = 0) -> None:
    log = hw.EventLog(folder / "log")
    topic = log.create_topic("events", hw.Schema.of(SCHEMA).arrow, exist_ok=True)
    rows = range(start, start + count)
    times = pa.array([i * 1_000_000 for i in rows], pa.timestamp("us", "UTC"))
    topic.append(pa.table({"k": [f"k{i % 3}" for i in rows], "ts": times, "v": list(rows)}))


def _job(folder: Path, spark: SparkSession, function: hw.KeyedProcessFunction, **settings: Any) -> hw.Environment:
    settings = {"job_dir": folder / "job", "max_rows_per_epoch": 4, **settings}
    env = hw.Environment("sums", spark=spark, **settings)
    source = env.source(hw.connectors.log(folder / "log", "events"), SCHEMA, hw.Watermarks.monotonous("ts"))
    sums = source.key_by("k").process(function, "k string, total long").with_uid("sums")
    sums.sink(hw.connectors.files(folder / "out"))
    return env


def _rows(folder: Path) -> list[tuple[str, int]]:
    if not list((folder / "out").glob("*.parquet")):
        return []
    return sorted((r["k"], r["total"]) for r in ds.dataset(folder / "out", format="parquet").to_table().to_pylist())


def _truth(count: int) -> list[tuple[str, int]]:
    totals: dict[str, int] = {}
    rows = []
    for i in range(count):
        totals[f"k{i % 3}"] = totals.get(f"k{i % 3}", 0) + i
        rows.append((f"k{i % 3}", totals[f"k{i % 3}"]))
    return sorted(rows)


def test_poison_names_step_key_and_time_and_leaves_a_job_that_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    _write(tmp_path, 12)
    with pytest.raises(hw.UserCodeError) as caught:
        _job(tmp_path, spark, Sums(poison=9)).run(bounded=True)
    error = caught.value
    assert (error.step, error.key, error.timestamp) == ("sums", "k0", 9000)
    first, *rest = str(error).splitlines()
    assert (
        first
        == "step 'sums' failed for key 'k0' at timestamp 9000, 1970-01-01 00:00:09.000: ZeroDivisionError: poison 9"
    )
    assert "fail_on" in str(error)
    assert not any("headwater/operators" in line or "pyspark" in line for line in rest)
    assert _rows(tmp_path) == _truth(8), "the epochs before the poison are published"
    _job(tmp_path, spark, Sums()).run(bounded=True)
    assert _rows(tmp_path) == _truth(12)


def test_wrong_value_names_step_field_and_value(spark: SparkSession, tmp_path: Path) -> None:
    _write(tmp_path, 4)

    class Wrong(Sums):
        def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
            yield (event.k, "many")

    with pytest.raises(hw.RowError, match="step 'sums', field 'total': value 'many' does not fit int64"):
        _job(tmp_path, spark, Wrong()).run(bounded=True)


def test_another_program_in_the_job_folder_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    _write(tmp_path, 4)
    _job(tmp_path, spark, Sums()).run(bounded=True)

    class Other(Sums):
        total = hw.ValueState("double", default=0.0)

    with pytest.raises(hw.JobError, match=r"step 'sums' was .*bigint.*, is .*double"):
        _job(tmp_path, spark, Other()).run(bounded=True)
    with pytest.raises(hw.JobError, match="parallelism was 2, is 3"):
        _job(tmp_path, spark, Sums(), parallelism=3).run(bounded=True)


def test_finished_job_with_new_input_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    _write(tmp_path, 4)
    _job(tmp_path, spark, Sums()).run(bounded=True)
    job = _job(tmp_path, spark, Sums()).run(bounded=True)
    assert job.status().state == "finished"
    assert _rows(tmp_path) == _truth(4)
    _write(tmp_path, 2, start=4)
    with pytest.raises(hw.JobError, match="reached the end of its input"):
        _job(tmp_path, spark, Sums()).run(bounded=True)


def test_output_folder_of_another_run_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    _write(tmp_path, 4)
    _job(tmp_path, spark, Sums()).run(bounded=True)
    with pytest.raises(hw.PublishError, match="holds the output of another run"):
        _job(tmp_path, spark, Sums(), job_dir=tmp_path / "job2").run(bounded=True)


def test_offset_that_retention_removed_is_named(spark: SparkSession, tmp_path: Path) -> None:
    log = hw.EventLog(tmp_path / "log")
    schema = hw.Schema.of(SCHEMA).arrow
    log.create_topic("events", schema, segment_bytes=4096, retention=hw.Retention(max_bytes=8192))
    _write(tmp_path, 4)
    job = _job(tmp_path, spark, Sums()).start()
    while job.status().published < 0:
        assert not job.wait(0.05), "it runs until it is stopped"
    job.stop()
    for _ in range(200):
        _write(tmp_path, 4)
    assert log.topic("events").start_offsets()[0] > 0
    with pytest.raises(hw.LogError, match="offset"):
        _job(tmp_path, spark, Sums()).run(bounded=True)


def test_missing_topic_is_refused_before_spark_starts(tmp_path: Path) -> None:
    hw.EventLog(tmp_path / "log").create_topic("other", hw.Schema.of(SCHEMA).arrow)
    with pytest.raises(hw.LogError, match="other"):
        _job(tmp_path, "no session is needed", Sums()).run(bounded=True)  # type: ignore[arg-type]


def test_schema_that_does_not_fit_the_topic_is_refused(tmp_path: Path) -> None:
    hw.EventLog(tmp_path / "log").create_topic("events", pa.schema([("k", pa.string())]))
    with pytest.raises(
        hw.SourceError, match="has the schema 'k string', the job declares 'k string, ts timestamp, v bigint'"
    ):
        _job(tmp_path, "no session is needed", Sums()).run(bounded=True)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that was stopped after some epochs, with rows that it has not read."""
    folder = tmp_path_factory.mktemp("stopped")
    _write(folder, 12)
    job = _job(folder, spark, Sums()).start()
    while job.status().published < 2:
        assert not job.wait(0.05), "it runs until it is stopped"
    job.stop()
    _write(folder, 4, start=12)
    return folder


@pytest.mark.parametrize("name", ["metadata", "offsets/{epoch}", "commits/{epoch}", "state/0/1/{version}.changelog"])
def test_damaged_checkpoint_is_refused_by_the_name_of_the_file(
    name: str, stopped: Path, spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(stopped, folder)
    checkpoint = folder / "job" / "checkpoint"
    epoch = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
    path = checkpoint / name.format(epoch=epoch, version=epoch + 1)
    whole = path.read_bytes()
    path.write_bytes(b"")
    with pytest.raises(hw.JobError) as caught:
        _job(folder, spark, Sums(), restart=hw.restart.fixed(3, delay="1 ms")).run(bounded=True)
    assert f"{path} cannot be used: " in str(caught.value)
    assert "restore the file from a copy of the job folder" in str(caught.value)
    assert not (folder / "job" / "restarts.jsonl").exists(), "a start again would not mend it"
    path.write_bytes(whole)
    _job(folder, spark, Sums()).run(bounded=True)
    assert _rows(folder) == _truth(16)


class Counted(Sums):
    """Sums that end at one row, and write down each call with it."""

    def __init__(self, calls: Path, end: Callable[[], Any]) -> None:
        super().__init__(poison=9)
        self._calls, self._end = calls, end

    def fail_on(self, event: Any) -> None:
        with self._calls.open("a") as calls:
            calls.write("called\n")
        self._end()


def _looks_like_ours() -> None:
    """An error with a text in which lines of ours are, whole and broken."""
    with pytest.raises(RuntimeError) as caught, marked():
        raise hw.JobError.corrupt("nothing", "nothing")
    raise RuntimeError(f"{caught.value}\nheadwater-error:0123456789abcdef:AAAA\nheadwater-error:AAAA")


@pytest.mark.parametrize(
    ("end", "cause"),
    [(partial(sys.exit, 3), "SystemExit: 3"), (_looks_like_ours, "headwater-error:AAAA")],
)
def test_function_that_fails_is_called_once_and_the_job_can_go_on(
    end: Callable[[], Any], cause: str, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "headwater.spark")
    _write(tmp_path, 12)
    calls = tmp_path / "calls"
    with pytest.raises(hw.UserCodeError) as caught:
        _job(tmp_path, spark, Counted(calls, end)).run(bounded=True)
    error = caught.value
    assert (error.step, error.key, error.timestamp) == ("sums", "k0", 9000)
    assert str(error).splitlines()[-1].endswith(cause)
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__, "nothing of Spark's is shown"
    assert calls.read_text() == "called\n"
    while "Lost task" not in caplog.text:
        time.sleep(0.01)  # what Spark has logged is on its way
    assert not list((tmp_path / "job" / "outbox").glob("plan-*"))
    _job(tmp_path, spark, Sums()).run(bounded=True)
    assert _rows(tmp_path) == _truth(12)


def test_restart_strategy_sees_the_failure_and_the_new_attempt_is_exact(spark: SparkSession, tmp_path: Path) -> None:
    _write(tmp_path, 12)
    calls = tmp_path / "calls"

    def end_once() -> None:
        if calls.read_text() == "called\n":
            raise ZeroDivisionError

    job = _job(tmp_path, spark, Counted(calls, end_once), restart=hw.restart.fixed(3, delay="1 ms")).run(bounded=True)
    assert [(r.error, r.step) for r in job.status().restarts] == [("UserCodeError", "sums")]
    assert _rows(tmp_path) == _truth(12)


class FailingSource(hw.connectors.Source):
    """A source that cannot be read: for a while, or at all, as the error says."""

    bounded = True

    def __init__(self, calls: Path, error: Callable[[str, str, str], Exception], times: int) -> None:
        self._calls, self._error, self._times = calls, error, times

    def describe(self) -> str:
        return "failing"

    def check(self, schema: hw.Schema) -> None: ...

    def earliest(self) -> dict[str, int]:
        return {"0": 0}

    def latest(self, start: dict[str, int], elapsed_ms: int) -> dict[str, int]:
        return {"0": 1}

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        with self._calls.open("a") as calls:
            calls.write("called\n")
        if self._calls.read_text().count("called") <= self._times:
            raise self._error("source", "it is away", "wait")
        yield pa.RecordBatch.from_pydict({"n": [1]})


@pytest.mark.parametrize(
    ("error", "times", "calls"),
    [(hw.SourceError.at_step, 1, 2), (hw.SourceError.at_step, 9, 3), (hw.SchemaError.does_not_fit, 9, 1)],
)
def test_only_what_may_pass_is_tried_again(
    error: Any, times: int, calls: int, spark: SparkSession, tmp_path: Path
) -> None:
    env = hw.Environment("source", spark=spark, parallelism=2)
    rows = env.source(FailingSource(tmp_path / "calls", error, times), "n long")
    expected = nullcontext() if times < calls else pytest.raises(error.__self__, match="'source': it is away; wait")
    with expected:
        assert [row.n for row in rows.collect()] == [1]
    assert (tmp_path / "calls").read_text().count("called") == calls


LOST = "Job aborted due to stage failure: Task 1 failed 3 times, most recent failure: Lost task 1.2 in stage 5.0 (TID 14): "


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "[STREAM_FAILED] Query [id = 1] terminated with exception: no luck\n\tat a.b\nCaused by: c.d.AnError: y",
            "no luck; AnError: y",
        ),
        (
            f"{LOST}org.apache.spark.SparkException: Python worker exited\n\tat a.b\nCaused by: java.io.EOFException",
            "SparkException: Python worker exited; EOFException",
        ),
        (
            f'{LOST}PythonException: Traceback (most recent call last):\n  File "a.py", line 1\n    x\nOSError: no\n\n\tat a.b',
            "OSError: no",
        ),
        (
            "An error occurred while calling o1.collect.\n: java.lang.OutOfMemoryError: Java heap space\n\tat a.b",
            "OutOfMemoryError: Java heap space",
        ),
    ],
)
def test_error_of_sparks_is_short(said: str, told: str, tmp_path: Path) -> None:
    first, *_ = str(unwrap("sums", StreamingQueryException(said), tmp_path)).splitlines()
    assert first == f"job 'sums' stopped: {told}"


def test_full_disk_is_named(tmp_path: Path) -> None:
    said = str(unwrap("sums", OSError(28, "No space left on device"), tmp_path))
    assert said.startswith(f"job 'sums' stopped: no space left on device; the disk of the job folder {tmp_path} has")
    assert "goes on from its last committed epoch" in said
