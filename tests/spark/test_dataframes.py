"""DataFrames at both ends of a job: none of their rows is lost or doubled, and theirs are the errors they make."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.parts.waiting import until

import headwater as hw
from headwater.connectors import Staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::headwater.GuaranteeWarning"),  # sinks in memory, to compare
]


def put(folder: Path, first: int, count: int = 5) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ids = list(range(first, first + count))
    pq.write_table(pa.table({"n": ids, "at": [1000 * n for n in ids]}), folder / f"{first:04d}.parquet")


def stream_of(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema("n long, at long").option("maxFilesPerTrigger", 1).parquet(str(folder))


class Count(hw.KeyedProcessFunction):
    count = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.count.set(self.count.get() + 1)
        yield event.n, self.count.get()


def counting(frame: DataFrame, spark: SparkSession, job_dir: Path, sink: Any) -> hw.Environment:
    env = hw.Environment("counting", spark=spark, job_dir=job_dir, checkpoint_interval="100 ms", checkpoints_retained=2)
    rows = env.from_dataframe(frame, hw.Watermarks.monotonous("at"), name="frame", splits=2)
    counts = rows.key_by(lambda row: row.n % 2, type="long").process(Count(), "n long, count long")
    counts.with_uid("counts").sink(sink, name="out")
    return env


def test_a_streaming_frame_is_read_once_over_restarts_and_a_savepoint(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", 0)
    put(tmp_path / "in", 5)
    sink = hw.connectors.memory()
    frame = stream_of(spark, tmp_path / "in")
    job = counting(frame, spark, tmp_path / "one", sink).start()
    until(lambda: len(sink.rows) == 10, job)
    job.stop()

    put(tmp_path / "in", 10)
    job = counting(frame, spark, tmp_path / "one", sink).start()
    until(lambda: len(sink.rows) == 15, job)
    path = job.stop(savepoint=tmp_path / "savepoint")
    assert path is not None
    assert {name.parent.name for name in (path / "sources").rglob("*") if name.is_file()} >= {"commits", "batches"}
    assert not list(path.rglob("*.arrow")), "what was read is not needed"

    put(tmp_path / "in", 15)
    job = counting(frame, spark, tmp_path / "two", sink).start(from_=path)
    until(lambda: len(sink.rows) == 20, job)
    job.stop()
    again = hw.connectors.memory()
    checkpoint = hw.checkpoints(tmp_path / "two").latest
    put(tmp_path / "in", 20)
    job = counting(frame, spark, tmp_path / "three", again).start(from_=checkpoint)
    until(lambda: len(again.rows) == 5, job)
    job.stop()
    rows = [*sink.rows, *again.rows]
    assert sorted(row.n for row in rows) == list(range(25))
    assert Counter(row.count for row in rows) == Counter([*range(1, 14), *range(1, 13)])


@pytest.mark.long  # tests/recovery/test_frames_killed.py kills and crashes a job over such a frame
def test_a_frame_that_differs_each_time_is_read_as_it_was_put_down(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as f

    frame = spark.readStream.format("rate").option("rowsPerSecond", 50).load().withColumn("luck", f.rand())
    failed: list[int] = []

    def fail_once(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.MANIFEST and epoch >= 1 and not failed:
            failed.append(epoch)
            raise RuntimeError("before the commit")

    sink = hw.connectors.memory()
    env = hw.Environment(
        "luck", spark=spark, job_dir=tmp_path, checkpoint_interval="200 ms", restart=hw.restart.fixed(1)
    )
    env.from_dataframe(frame, name="frame").sink(sink)
    job = env.start(on_step=fail_once)
    until(lambda: bool(failed) and len(sink.rows) > 60, job)
    job.stop()
    values = [row.value for row in sink.rows]
    assert sorted(values) == list(range(len(values)))
    put_down = {}
    for path in sorted((tmp_path / "sources" / "frame" / "batches").glob("*.json")):
        for name in json.loads(path.read_text())["files"]:
            with pa.memory_map(str(path.with_suffix("") / name)) as source:
                put_down.update(
                    {row["value"]: row["luck"] for row in pa.ipc.open_stream(source).read_all().to_pylist()}
                )
    assert [row.luck for row in sink.rows] == [put_down[value] for value in values]


def test_a_frame_that_is_not_streaming_is_bounded_input_with_its_types(spark: SparkSession) -> None:
    at = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    ddl = "k string, at timestamp, local timestamp_ntz, d decimal(5,2), took interval day to second, day date, b binary"
    nested = ", tags array<string>, by map<string,bigint>, s struct<a:int,at:timestamp>"
    row = ("a", at, at.replace(tzinfo=None), Decimal("1.25"), dt.timedelta(seconds=9), dt.date(2024, 1, 1), b"x")
    row = (*row, ["t"], {"x": 1}, (1, at))
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    frame = other.createDataFrame([row, (None,) * 10], ddl + nested).repartition(1)
    env = hw.Environment("static", spark=spark)
    read = env.from_dataframe(frame).map(lambda row: row, ddl + nested)
    given: list[tuple[int, list[Any]]] = []
    read.to_dataframe_sink(lambda out, epoch: given.append((epoch, [tuple(r) for r in out.collect()])))
    env.run()
    assert sorted(map(tuple, env.from_dataframe(frame, name="two").collect()), key=str) == sorted(
        [row, (None,) * 10], key=str
    )
    ((_, rows),) = given
    assert len(rows) == 2
    assert next(found for found in rows if found[0])[3:9] == row[3:9]
    with pytest.raises(hw.SchemaError, match=r"column 'months' of the DataFrame: .*year-month intervals"):
        env.from_dataframe(spark.sql("select interval 1 month as months"))
    with pytest.raises(hw.JobError, match="a DataFrame is Spark's; run the job with engine='spark'"):
        hw.Environment("local", engine="local").from_dataframe(frame)
    with pytest.raises(hw.GraphError, match="needs a DataFrame of Spark"):
        env.from_dataframe([1])


def test_a_frame_that_fails_fails_the_job_with_its_reason(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import functions as f

    put(tmp_path / "in", 0)

    broken = f.udf(lambda n: int(f"no luck with {n}"), "long")

    for streaming in (True, False):
        source = stream_of(spark, tmp_path / "in") if streaming else spark.read.parquet(str(tmp_path / "in"))
        env = hw.Environment("broken", spark=spark)
        env.from_dataframe(source.withColumn("m", broken("n")), name="frame").sink(hw.connectors.memory())
        with pytest.raises(
            hw.SourceError, match=r"(?s)step 'frame': its DataFrame failed: .*no luck with 0.*; mend its cause"
        ):
            env.run()


def test_an_epoch_that_was_given_and_not_recorded_is_given_again(spark: SparkSession, tmp_path: Path) -> None:
    given: list[tuple[int, list[int]]] = []

    def write(frame: DataFrame, epoch: int) -> None:
        given.append((epoch, sorted(row.n for row in frame.collect())))

    def job() -> hw.Environment:
        env = hw.Environment("out", spark=spark, job_dir=tmp_path, max_rows_per_epoch=10)
        rows = env.from_rows([(n,) for n in range(20)], "n long")
        rows.to_dataframe_sink(write, idempotent=True)
        return env

    def kill(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.PUBLISHING and epoch == 1:
            raise RuntimeError("killed")

    with pytest.raises(hw.JobError, match="RuntimeError: killed"):
        job().run(on_step=kill)
    job().run()
    assert given == [(0, list(range(10))), (1, list(range(10, 20))), (1, list(range(10, 20)))]
    assert job().guarantees()[0].guarantee is hw.Guarantee.EFFECTIVELY_ONCE


def test_delta_is_told_the_job_and_the_epoch(spark: SparkSession, tmp_path: Path) -> None:
    """No Delta Lake fits this version of Spark yet, so another format of this name writes down what it is told."""
    from pyspark.sql.datasource import DataSource, DataSourceWriter, WriterCommitMessage

    notes = str(tmp_path / "notes.jsonl")

    class Writer(DataSourceWriter):
        def __init__(self, options: dict[str, str]) -> None:
            self.options = options

        def write(self, rows: Iterator[Any]) -> WriterCommitMessage:
            self.rows = sum(1 for _ in rows)
            return WriterCommitMessage()

        def commit(self, messages: list[Any]) -> None:
            with Path(notes).open("a") as out:
                out.write(json.dumps(self.options) + "\n")

    class Delta(DataSource):
        @classmethod
        def name(cls) -> str:
            return "delta"

        def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
            return Writer(dict(self.options))

    spark.dataSource.register(Delta)
    spark.createDataFrame([(1,)], "n long").count()  # a format written in Python is that of the session last used here
    sink = hw.connectors.delta(tmp_path / "table")
    sink.use(spark)
    sink.open("out", "job-7", hw.Schema.of("n long"), resumed=False)
    for epoch in (3, 3, 4):
        staged = tmp_path / f"{epoch}.parquet"
        sink.stage(pa.table({"n": [epoch]}), staged)
        sink.publish(epoch, [Staged("out", str(staged), staged.name, 1, staged.stat().st_size)])
    assert sink.guarantee is hw.Guarantee.EXACTLY_ONCE
    lines = [json.loads(line) for line in Path(notes).read_text().splitlines()]
    told = [{key.lower(): value for key, value in line.items()} for line in lines]
    assert [(one["txnappid"], one["txnversion"], one["path"]) for one in told] == [
        ("job-7/out", epoch, str(tmp_path / "table")) for epoch in ("3", "3", "4")
    ]
