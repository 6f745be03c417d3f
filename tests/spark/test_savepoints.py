"""Savepoints and live state on Spark: to and from the local engine, as DataFrames, and in a job folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.parts.halves import run_epochs

import headwater as hw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::headwater.GuaranteeWarning"),  # a sink in memory, to compare
]

SCHEMA = "k string, n bigint, at bigint"
ROWS = [(f"k{n * 7 % 5}", n, 1000 * n - 1500 * (n % 3 == 2)) for n in range(60)]


def job(sink: Any, **settings: Any) -> hw.Environment:
    """Two levels, timers, sliced windows, sessions and a join, over two sources."""

    class Running(hw.KeyedProcessFunction):
        total = hw.ValueState("bigint", default=0)
        seen = hw.ListState("bigint")

        def process(self, event: Any, ctx: hw.Context) -> Any:
            self.total.set(self.total.get() + event.n)
            self.seen.add(event.n)
            ctx.timers.event_time(ctx.timestamp + 5000)
            yield ctx.key, self.total.get()

        def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Any:
            yield ctx.key, -self.total.get()

    env = hw.Environment("both", max_rows_per_epoch=12, checkpoint_interval="100 ms", **settings)
    marks = hw.Watermarks.bounded("at", "2 s")
    one, two = (env.from_rows(ROWS, SCHEMA, marks, name=name) for name in ("one", "two"))
    running = one.key_by("k").process(Running(), "k string, n bigint").with_uid("running")
    sums = running.key_by("k").window(hw.tumbling("10 s")).agg(n=hw.sum("n")).with_uid("sums").select("k", "n")
    sessions = two.key_by("k").window(hw.session("6 s")).agg(n=hw.count()).with_uid("sessions").select("k", "n")
    joined = one.key_by("n").interval_join(two.key_by("n"), ("-1 s", "1 s")).with_uid("joined").select("k", "n")
    running.union(sums).union(sessions).union(joined).sink(sink)
    return env


def test_a_job_moves_from_spark_to_the_local_engine_and_back(spark: SparkSession, tmp_path: Path) -> None:
    whole, kept = hw.connectors.memory(), hw.connectors.memory()
    job(whole, engine="local").run()
    first = run_epochs(job(kept, spark=spark, job_dir=tmp_path / "one"), 2).stop(savepoint=tmp_path / "a")
    second = run_epochs(job(kept, engine="local", parallelism=3), 1, from_=first).stop(savepoint=tmp_path / "b")
    saved = hw.savepoint.read(second)
    assert saved.epoch > hw.savepoint.read(first).epoch

    total = saved["running", "total"].to_spark(spark)
    assert total.columns == ["key", "value"]
    assert sorted(map(tuple, total.collect())) == sorted(
        (row["key"], row["value"]) for row in saved["running", "total"].to_arrow().to_pylist()
    )
    fixed = total.selectExpr("key", "value + 0 as value")
    hw.savepoint.write(tmp_path / "c", job(kept, engine="local"), {("running", "total"): fixed}, base=second)

    seen: list[Any] = []
    jobs: list[Any] = []

    def look(step: hw.EpochStep, epoch: int) -> None:
        """While the job runs, before its thread has published the next epoch."""
        if step is hw.EpochStep.CLEANED and jobs and len(seen) < 2:
            seen.append(jobs[0].state("running", "total"))

    folder = tmp_path / "two"
    env = job(kept, spark=spark, job_dir=folder)
    jobs.append(env.start(from_=tmp_path / "c", on_step=look))
    jobs[0].wait()
    assert Counter(kept.rows) == Counter(whole.rows)

    last = jobs[0].state("running", "total")
    assert last.get("k0") == sum(n for k, n, _ in ROWS if k == "k0")
    assert jobs[0].state("running", "seen").get("k0") == [n for k, n, _ in ROWS if k == "k0"]
    views = [*seen, last]
    assert [view.epoch for view in views] == sorted(view.epoch for view in views)
    for view in seen:
        again = jobs[0].state("running", "total", epoch=view.epoch)
        assert sorted(map(repr, again.table().to_pylist())) == sorted(map(repr, view.table().to_pylist()))
    with pytest.raises(hw.JobError, match=f"does not have epoch 0 any more or yet; it has epochs {saved.epoch + 1} to"):
        jobs[0].state("running", "total", epoch=0)
    with pytest.raises(
        hw.SavepointError, match="job 'both' has no state 'sum' of a step 'running'; it has running/total"
    ):
        jobs[0].state("running", "sum")

    done = job(kept, spark=spark, job_dir=folder).run(from_=tmp_path / "c")  # the same again: it has nothing to do
    assert done.status().state == "finished"
    assert Counter(kept.rows) == Counter(whole.rows)
    assert hw.savepoint.read(done.savepoint(tmp_path / "end")).has_ended
    with pytest.raises(
        hw.JobError, match=r"holds a job that was not started from the savepoint .*; .*use a new job_dir"
    ):
        job(kept, spark=spark, job_dir=folder).run(from_=first)


def statements(table: str, **settings: Any) -> hw.Environment:
    env = hw.Environment("statements", max_rows_per_epoch=12, **settings)
    rows = env.from_rows(ROWS, SCHEMA, hw.Watermarks.bounded("at", "2 s"), name="given")
    env.create_view("given", rows.with_column("ts", "to_timestamp_ltz(at, 3)"), time="ts")
    env.execute_sql(f"CREATE TABLE {table} (k STRING, n BIGINT) WITH ('connector' = 'memory')")
    env.execute_sql(f"""
        INSERT INTO {table}
        SELECT k, COUNT(*) FROM given GROUP BY k
        UNION ALL SELECT a.k, b.n FROM given a JOIN given b ON a.k = b.k AND b.n = a.n + 5
        UNION ALL SELECT k, SUM(n) FROM TABLE(TUMBLE(TABLE given, DESCRIPTOR(ts), INTERVAL '10' SECOND))
          GROUP BY k, window_start, window_end
    """)
    return env


def test_a_job_of_sql_moves_from_spark_to_the_local_engine_at_another_parallelism(
    spark: SparkSession, tmp_path: Path
) -> None:
    whole = statements("shown", engine="local")
    whole.run(bounded=True)
    first = statements("shown", spark=spark, job_dir=tmp_path / "job", parallelism=2)
    path = run_epochs(first, 2, bounded=True).stop(savepoint=tmp_path / "sp")
    second = statements("shown", engine="local", parallelism=3)
    second.run(bounded=True, from_=path)
    assert Counter(first.table_rows("shown") + second.table_rows("shown")) == Counter(whole.table_rows("shown"))
