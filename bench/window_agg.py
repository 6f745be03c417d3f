"""Count and sum per user and window: Headwater beside Spark's native groupBy(user, window), same events, same run.

Both read the same events in epochs of the same size, keep their windows with the same watermark delay, and write what
fires to files. The first epochs of each side warm it up and are not counted.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq
from events import SCHEMA, event_tables, print_result
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import headwater as hw
from headwater.spark.session import job_session, local_session

WARM_UP = 2
"""Epochs of each side that are not counted."""


def headwater_rate(log: Path, folder: Path, rows_per_epoch: int, windows: hw.WindowAssigner) -> float:
    """Rows per second from the publication of the last epoch of the warm-up to that of the last one with rows."""
    env = hw.Environment("bench", job_dir=folder / "job", max_rows_per_epoch=rows_per_epoch)
    source = hw.connectors.log(log, "events")
    env.source(source, SCHEMA, hw.Watermarks.bounded("ts", "2 s")).key_by("user").window(windows).agg(
        n=hw.count(), total=hw.sum("amount")
    ).sink(hw.connectors.files(folder / "out"))
    published: dict[int, float] = {}

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.CLEANED:
            published[epoch] = time.perf_counter()

    job = env.run(bounded=True, on_step=on_step)
    rows = job.status().steps["source"]["rows_in"]
    epochs = rows // rows_per_epoch
    return (rows - WARM_UP * rows_per_epoch) / (published[epochs - 1] - published[WARM_UP - 1])


def spark_rate(spark: SparkSession, events: Path, folder: Path, size: str, slide: str | None) -> float:
    """Rows per second over all batches with rows after the warm-up."""
    own = job_session(spark, 2, {"spark.sql.execution.arrow.maxRecordsPerBatch": "10000"})
    stream = own.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2).parquet(str(events))
    window = F.window("ts", size, slide) if slide else F.window("ts", size)
    counted = (
        stream.withWatermark("ts", "2 seconds")
        .groupBy("user", window)
        .agg(F.count("*").alias("n"), F.sum("amount").alias("total"))
    )
    writer = counted.writeStream.format("parquet").option("path", str(folder / "out")).outputMode("append")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    batches = [p for p in query.recentProgress if p.numInputRows][WARM_UP:]
    return sum(p.numInputRows for p in batches) / (sum(p.durationMs["triggerExecution"] for p in batches) / 1000)


def main() -> None:
    """Measure both sides and print the ratio."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--epochs", type=int, default=10)
    options.add_argument("--rows-per-epoch", type=int, default=500_000)
    options.add_argument("--keys", type=int, default=100_000)
    options.add_argument("--size", default="10 seconds")
    options.add_argument("--slide")
    args = options.parse_args()
    windows = hw.sliding(args.size, args.slide) if args.slide else hw.tumbling(args.size)
    folder = Path(tempfile.mkdtemp(prefix="bench-window-"))
    try:
        topic = hw.EventLog(folder / "log").create_topic("events", hw.Schema.of(SCHEMA).arrow, partitions=2)
        (folder / "parquet").mkdir()
        tables = event_tables(args.epochs * args.rows_per_epoch, args.keys, args.rows_per_epoch // 2)
        for number, table in enumerate(tables):
            topic.append(table, partition=number % 2)
            pq.write_table(table, folder / "parquet" / f"part-{number:04d}.parquet")
        spark = local_session(2, {})
        ours = headwater_rate(folder / "log", folder / "headwater", args.rows_per_epoch, windows)
        theirs = spark_rate(spark, folder / "parquet", folder / "spark", args.size, args.slide)
        print_result("window_agg", "spark_native", ours, theirs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
