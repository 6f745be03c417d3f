"""The Spark engine: the same results as the local one, and a job's life from start to stop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from tests.parts.waiting import until

import headwater as hw
from headwater.spark.exchange import hash_int, salts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EVENTS = "user string, ts timestamp, amount double"
BIG = hw.OutputTag("big", "user string, amount double")
FAILED = hw.OutputTag("failed", f"{EVENTS}, error string")


def _events(count: int) -> list[tuple[Any, ...]]:
    import datetime as dt

    start = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    return [(f"u{i * 7 % 11}", start + dt.timedelta(seconds=i), float(i % 9)) for i in range(count)]


class Totals(hw.KeyedProcessFunction):
    total = hw.ValueState("double", default=0.0)
    seen = hw.ListState("double")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.total.set(self.total.get() + event.amount)
        self.seen.add(event.amount)
        if event.amount > 7:
            ctx.output(BIG, (event.user, event.amount))
        ctx.timers.event_time(ctx.timestamp + 30_000)
        yield (event.user, self.total.get(), len(self.seen.get()))

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield (ctx.key, self.total.get(), -1)


class Latest(hw.KeyedProcessFunction):
    by_user = hw.MapState("string", "double")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.by_user.put(event.user, event.total)
        yield (ctx.key, self.by_user.keys(), sum(self.by_user.values()))


def _rich_graph(env: hw.Environment) -> list[tuple[hw.connectors.Sink, hw.Stream]]:
    """Two sources, a union, branches, side outputs, chained keyed steps, rows that fail, a rebalance and several sinks."""
    marks = hw.Watermarks.bounded("ts", "2 s")
    first = env.from_rows(_events(120), EVENTS, marks, name="first")
    second = env.from_rows(_events(60), EVENTS, marks, name="second").where("amount < 8")
    totals = first.union(second).key_by("user").process(Totals(), "user string, total double, n int")
    latest = totals.filter(lambda r: r.n >= 0).key_by(lambda r: len(r.user), type="int")
    shares = first.map(lambda r: (r.user, 10 / r.amount), "user string, share double", failed_to=FAILED)
    ends = [
        totals,
        totals.side_output(BIG),
        latest.process(Latest(), "length int, users array<string>, total double"),
        second.rebalance().select("user", "amount * 2 as twice"),
        first.global_().map(lambda r: (r.user,), "user string"),
        second.partition_custom(lambda user, n: int(user[1:]) % n, "user").where("amount > 1"),
        shares,
        shares.side_output(FAILED),
    ]
    sinks = []
    for number, end in enumerate(ends):
        sink = hw.connectors.memory()
        end.sink(sink).with_uid(f"out{number}")
        sinks.append((sink, end))
    return sinks


def test_spark_and_local_give_the_same_rows(spark: SparkSession) -> None:
    results = []
    for engine in ("local", "spark"):
        env = hw.Environment("rich", engine=engine, spark=spark, max_rows_per_epoch=20)
        sinks = _rich_graph(env)
        job = env.run()
        results.append([sink.rows for sink, _ in sinks])
    local, on_spark = results
    status = job.status()
    assert status.epoch >= 3
    assert status.copies_behind <= 2 * 2, "a subtask of a level moves at most once: the copy is used where it is"
    assert [len(rows) for rows in local] == [len(rows) for rows in on_spark]
    assert on_spark == local
    assert all(local)


def test_every_type_survives_the_way_through_spark(spark: SparkSession) -> None:
    import datetime as dt
    from decimal import Decimal

    schema = (
        "k string, b boolean, i8 tinyint, i16 smallint, i32 int, i64 bigint, f float, d double, dec decimal(20,4), bin binary, "
        "day date, at timestamp, local timestamp_ntz, took interval day to second, tags array<string>, "
        "props map<string,int>, place struct<city:string,geo:struct<lat:double,lon:double>>"
    )
    at = dt.datetime(1969, 12, 31, 23, 59, 59, 123456, dt.UTC)
    full = (
        *(
            "a",
            True,
            -8,
            -16,
            -32,
            -64,
            0.5,
            0.1,
            Decimal("1.2500"),
            b"\x00\xff",
            dt.date(1900, 1, 1),
            at,
            at.replace(tzinfo=None),
        ),
        *(dt.timedelta(milliseconds=-1), ["x", None], {"n": None, "m": 1}, ("Bern", (46.9, None))),
    )
    empty = ("a", *[None] * 16)

    class Keep(hw.KeyedProcessFunction):
        rows = hw.ListState("struct<" + schema.replace(" not null", "").replace(", ", ",").replace(" ", ":", 0) + ">")

        def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
            self.rows.add(event)
            yield from self.rows.get()

    env = hw.Environment("types", spark=spark, max_rows_per_epoch=1)
    rows = env.from_rows([full, empty], schema).key_by("k").process(Keep(), schema).collect()
    assert [tuple(row) for row in rows] == [full, full, empty]


def test_salts_put_each_subtask_on_its_own_partition(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    values = [0, 1, 2, 63, 1000, -1, 2**31 - 1]
    rows = spark.createDataFrame([(v,) for v in values], "v int").select(F.hash("v")).collect()
    assert [row[0] for row in rows] == [hash_int(v) for v in values]
    for parallelism in (1, 2, 3, 8, 50):
        assert [hash_int(v) % parallelism for v in salts(parallelism)] == list(range(parallelism))


def test_unbounded_job_runs_until_stopped_and_goes_on_later(spark: SparkSession, tmp_path: Path) -> None:
    topic = hw.EventLog(tmp_path / "log").create_topic("events", hw.Schema.of("k string, v long").arrow)

    class Sums(hw.KeyedProcessFunction):
        total = hw.ValueState("long", default=0)

        def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
            self.total.set(self.total.get() + event.v)
            ctx.timers.processing_time(ctx.now + 1)
            yield {"k": event.k, "total": self.total.get()}

        def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
            yield {"k": f"{ctx.key} at rest", "total": self.total.get()}

    def start() -> hw.Job:
        env = hw.Environment("sums", job_dir=tmp_path / "job", spark=spark, checkpoint_interval="50 ms")
        source = env.source(hw.connectors.log(tmp_path / "log", "events"), "k string, v long")
        source.key_by("k").process(Sums(), "k string, total long").sink(hw.connectors.files(tmp_path / "out"))
        return env.start()

    def rows() -> list[tuple[str, int]]:
        found = ds.dataset(tmp_path / "out", format="parquet").to_table().to_pylist()
        return sorted((row["k"], row["total"]) for row in found)

    job = start()
    with pytest.raises(hw.JobError, match="is in use by another job of this process"):
        start()
    topic.append(pa.table({"k": ["a", "a"], "v": [1, 2]}))
    until(lambda: len(rows()) == 3, job)
    assert rows() == [("a", 1), ("a", 3), ("a at rest", 3)], "the timer fires with no new row to wake it"
    status = job.status()
    assert status.state == "running"
    assert status.steps["sums"]["rows_in"] == 2
    assert status.positions == {"source": {"0": 2}}
    assert 0 < status.caught_up_us < status.level_us, "a new worker reads what is stored before it works"
    job.stop()
    assert job.status().state == "stopped"
    topic.append(pa.table({"k": ["a"], "v": [10]}))
    job = start()
    until(lambda: ("a at rest", 13) in rows(), job)
    job.stop()
    assert rows() == [("a", 1), ("a", 3), ("a", 13), ("a at rest", 3), ("a at rest", 13)]


def test_given_session_keeps_its_settings(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    env = hw.Environment("settings", spark=spark, parallelism=3)
    assert env.from_rows([("a", 1)], "k string, v int").key_by("k").map(lambda r: r).collect() == [("a", 1)]
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_large_rows_and_large_state_are_cut_and_joined_again(spark: SparkSession) -> None:
    class Remember(hw.KeyedProcessFunction):
        text = hw.ValueState("string", default="")

        def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
            self.text.set(self.text.get() + event.text)
            yield (event.k, len(self.text.get()))

    size = 3_000_000
    rows = [("a", chr(97 + n) * size) for n in range(4)]
    env = hw.Environment("large", spark=spark, max_rows_per_epoch=1)
    assert env.from_rows(rows, "k string, text string").key_by("k").process(
        Remember(), "k string, n long"
    ).collect() == [("a", size * n) for n in range(1, 5)]


class Runs(hw.KeyedProcessFunction):
    """Tells which runs its worker keeps state of."""

    n = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        from headwater.spark.worker import _workers

        self.n.set(self.n.get() + 1)
        yield {"jobs": sorted({kept.plan.graph.name for kept in _workers.values()})}


def test_workers_forget_the_state_of_a_job_that_has_ended(spark: SparkSession) -> None:
    for job in ("one", "other"):
        env = hw.Environment(job, spark=spark, parallelism=2)
        rows = env.from_rows([(f"k{n}",) for n in range(8)], "k string")
        told = rows.key_by("k").process(Runs(), "jobs array<string>").collect()
        assert [row.jobs for row in told] == [[job]] * 8
