"""A count-and-sum process function per record: Headwater beside Spark's transformWithState (Row), same events, same run.

Both read the same events in epochs of the same size and keep a count and a sum for each of 100,000 keys. The first epochs
of each side warm it up and are not counted: as many as take about half a minute, in which the JVM compiles what it runs. Those
are two of Spark's, which runs in a JVM that is warm from ours, and 30 of ours.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from parts.events import SCHEMA, event_tables
from parts.timing import EpochTimes, print_result, spark_rate
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import headwater as hw
from headwater.scratch import Scratch
from headwater.spark.session import JOB_CONFIG, LOCAL_FILES_CONFIG, local_session

OUT = "user long, n long, total double"


class CountAndSum(hw.KeyedProcessFunction):
    """Headwater's side."""

    n = hw.ValueState("long", default=0)
    total = hw.ValueState("double", default=0.0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        n = self.n.get() + 1
        total = self.total.get() + event.amount
        self.n.set(n)
        self.total.set(total)
        yield {"user": event.user, "n": n, "total": total}


class SparkCountAndSum(StatefulProcessor):
    """Spark's side: the same, record by record, with state in Spark's store."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("state", "n long, total double")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        n, total = self._state.get() or (0, 0.0)
        for row in rows:
            n, total = n + 1, total + row.amount
            yield Row(user=key[0], n=n, total=total)
        self._state.update((n, total))

    def close(self) -> None:
        """Nothing to close."""


def headwater_rate(log: Path, folder: Path, rows_per_epoch: int, warm_up: int) -> float:
    """Rows per second of Headwater."""
    env = hw.Environment("bench", job_dir=folder / "job", max_rows_per_epoch=rows_per_epoch)
    source = hw.connectors.log(log, "events")
    env.source(source, SCHEMA, hw.Watermarks.bounded("ts", "2 s")).key_by("user").process(CountAndSum(), OUT).sink(
        hw.connectors.files(folder / "out")
    )
    times = EpochTimes()
    job = env.run(bounded=True, on_step=times)
    return times.rate(job.status().steps["source"]["rows_in"], rows_per_epoch, warm_up)


def peer_rate(spark: SparkSession, events: Path, folder: Path, files_per_epoch: int) -> float:
    """Rows per second of Spark."""
    own = spark.newSession()
    for name, value in {**JOB_CONFIG, **LOCAL_FILES_CONFIG, "spark.sql.shuffle.partitions": "2"}.items():
        own.conf.set(name, value)
    own.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
    stream = own.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files_per_epoch).parquet(str(events))
    counted = stream.groupBy("user").transformWithState(SparkCountAndSum(), OUT, "append", "none")
    writer = counted.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    return spark_rate(query)


def main() -> None:
    """Measure both sides and print the ratio."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--epochs", type=int, default=60, help="epochs for Headwater")
    options.add_argument("--warm-up", type=int, default=30, help="epochs of these that are not counted")
    options.add_argument("--spark-epochs", type=int, default=4, help="epochs for Spark (much slower)")
    options.add_argument("--rows-per-epoch", type=int, default=250_000)
    options.add_argument("--keys", type=int, default=100_000)
    args = options.parse_args()
    folder = Scratch("bench-keyed").path
    topic = hw.EventLog(folder / "log").create_topic("events", hw.Schema.of(SCHEMA).arrow, partitions=2)
    (folder / "parquet").mkdir()
    for number, table in enumerate(
        event_tables(args.epochs * args.rows_per_epoch, args.keys, args.rows_per_epoch // 2)
    ):
        topic.append(table, partition=number % 2)
        if number < 2 * args.spark_epochs:
            pq.write_table(table, folder / "parquet" / f"part-{number:04d}.parquet")
    spark = local_session(2, {})
    ours = headwater_rate(folder / "log", folder / "headwater", args.rows_per_epoch, args.warm_up)
    theirs = peer_rate(spark, folder / "parquet", folder / "spark", 2)
    print_result("keyed_process", "spark_tws", ours, theirs)


if __name__ == "__main__":
    main()
