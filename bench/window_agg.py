"""Count and sum per user and window: Headwater beside Spark's native groupBy(user, window), same events, same run.

Both read the same events in epochs of the same size, keep their windows with the same watermark delay, and write what
fires to files. The first epochs of each side warm it up and are not counted. Three cases: many keys, few keys, and windows
that slide; the last line is that of many keys.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from parts.events import SCHEMA, event_tables
from parts.timing import EpochTimes, print_result, spark_rate
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import headwater as hw
from headwater.scratch import Scratch
from headwater.spark.session import job_session, local_session


def headwater_rate(log: Path, folder: Path, rows_per_epoch: int, windows: hw.WindowAssigner) -> float:
    """Rows per second of Headwater."""
    env = hw.Environment("bench", job_dir=folder / "job", max_rows_per_epoch=rows_per_epoch)
    source = hw.connectors.log(log, "events")
    env.source(source, SCHEMA, hw.Watermarks.bounded("ts", "2 s")).key_by("user").window(windows).agg(
        n=hw.count(), total=hw.sum("amount")
    ).sink(hw.connectors.files(folder / "out"))
    times = EpochTimes()
    job = env.run(bounded=True, on_step=times)
    return times.rate(job.status().steps["source"]["rows_in"], rows_per_epoch)


def peer_rate(spark: SparkSession, events: Path, folder: Path, size: str, slide: str | None) -> float:
    """Rows per second of Spark."""
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
    return spark_rate(query)


@dataclass(frozen=True)
class Case:
    """What is measured: the windows, over how many keys, in how many epochs of how many rows."""

    name: str
    size: str
    slide: str | None
    keys: int
    epochs: int
    rows_per_epoch: int

    @property
    def windows(self) -> hw.WindowAssigner:
        return hw.sliding(self.size, self.slide) if self.slide else hw.tumbling(self.size)


CASES = (
    Case("window_agg_few_keys", "10 seconds", None, 100, 10, 500_000),
    Case("window_agg_sliding", "60 seconds", "5 seconds", 100_000, 4, 200_000),  # Spark's side is slow here
    Case("window_agg", "10 seconds", None, 100_000, 6, 500_000),
)


def measure(case: Case) -> None:
    """Measure both sides and print the ratio."""
    folder = Scratch("bench-window").path
    topic = hw.EventLog(folder / "log").create_topic("events", hw.Schema.of(SCHEMA).arrow, partitions=2)
    (folder / "parquet").mkdir()
    tables = event_tables(case.epochs * case.rows_per_epoch, case.keys, case.rows_per_epoch // 2)
    for number, table in enumerate(tables):
        topic.append(table, partition=number % 2)
        pq.write_table(table, folder / "parquet" / f"part-{number:04d}.parquet")
    spark = local_session(2, {})
    ours = headwater_rate(folder / "log", folder / "headwater", case.rows_per_epoch, case.windows)
    theirs = peer_rate(spark, folder / "parquet", folder / "spark", case.size, case.slide)
    print_result(case.name, "spark_native", ours, theirs)


def main() -> None:
    """Measure every case, or those named."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("cases", nargs="*", choices=[*(case.name for case in CASES), []], default=[])
    chosen = options.parse_args().cases
    for case in CASES:
        if not chosen or case.name in chosen:
            measure(case)


if __name__ == "__main__":
    main()
