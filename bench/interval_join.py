"""Two streams joined by key and within 10 seconds: Headwater beside Spark's native stream-stream join, same run.

Both read the same two streams in epochs of the same size with the same watermark delay, and write the pairs to files. The
first epochs of each side warm it up and are not counted. Both must give the same number of pairs.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pyarrow.dataset as ds
import pyarrow.parquet as pq
from parts.events import SCHEMA, event_tables
from parts.timing import EpochTimes, print_result, spark_rate
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import headwater as hw
from headwater.scratch import Scratch
from headwater.spark.session import job_session, local_session

SIDES = ("left", "right")


def headwater_rate(log: Path, folder: Path, rows_per_epoch: int) -> float:
    """Rows of both streams per second of Headwater."""
    env = hw.Environment("bench", job_dir=folder / "job", max_rows_per_epoch=rows_per_epoch)
    left, right = (
        env.source(hw.connectors.log(log, side), SCHEMA, hw.Watermarks.bounded("ts", "2 s"), name=side).key_by("user")
        for side in SIDES
    )
    left.interval_join(right, between=("-10 s", "10 s")).sink(hw.connectors.files(folder / "out"))
    times = EpochTimes()
    job = env.run(bounded=True, on_step=times)
    return 2 * times.rate(job.status().steps["left"]["rows_in"], rows_per_epoch)


def peer_rate(spark: SparkSession, events: Path, folder: Path) -> float:
    """Rows of both streams per second of Spark."""
    own = job_session(spark, 2, {"spark.sql.execution.arrow.maxRecordsPerBatch": "10000"})

    def side(name: str) -> DataFrame:
        stream = own.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2).parquet(str(events / name))
        return stream.withWatermark("ts", "2 seconds").alias(name)

    apart = F.expr(
        "left.user = right.user AND right.ts BETWEEN left.ts - INTERVAL 10 SECONDS AND left.ts + INTERVAL 10 SECONDS"
    )
    shown = ["left.user", "left.ts", "left.amount", "right.ts as ts_right", "right.amount as amount_right"]
    pairs = side("left").join(side("right"), apart).selectExpr(*shown)
    writer = pairs.writeStream.format("parquet").option("path", str(folder / "out")).outputMode("append")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    return spark_rate(query)


def main() -> None:
    """Measure both sides and print the ratio."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--epochs", type=int, default=10)
    options.add_argument("--rows-per-epoch", type=int, default=100_000, help="of each stream")
    options.add_argument("--keys", type=int, default=50_000)
    args = options.parse_args()
    folder = Scratch("bench-join").path
    log = hw.EventLog(folder / "log")
    for seed, side in enumerate(SIDES):
        topic = log.create_topic(side, hw.Schema.of(SCHEMA).arrow, partitions=2)
        (folder / "parquet" / side).mkdir(parents=True)
        rows = args.epochs * args.rows_per_epoch
        for number, table in enumerate(event_tables(rows, args.keys, args.rows_per_epoch // 2, seed)):
            topic.append(table, partition=number % 2)
            pq.write_table(table, folder / "parquet" / side / f"part-{number:04d}.parquet")
    spark = local_session(2, {})
    ours = headwater_rate(folder / "log", folder / "headwater", args.rows_per_epoch)
    theirs = peer_rate(spark, folder / "parquet", folder / "spark")
    pairs = [ds.dataset(folder / side / "out", format="parquet").count_rows() for side in ("headwater", "spark")]
    if pairs[0] != pairs[1]:
        raise SystemExit(f"Headwater gave {pairs[0]} pairs, Spark {pairs[1]}")
    print_result("interval_join", "spark_native", ours, theirs)


if __name__ == "__main__":
    main()
