"""The floor of an epoch: p50 of almost empty epochs, Headwater beside a native Spark stateful query with the same settings.

Both read about ten rows an epoch, keep a count per key in RocksDB with the same settings, run one epoch after the other
without a pause, and hand their few result rows to the driver. The first epochs of each side warm it up. The sides take
turns, so that a noisy machine hurts both.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from parts.timing import print_result
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

import headwater as hw
from headwater.scratch import Scratch
from headwater.spark.session import job_session, local_session


class Counts(hw.KeyedProcessFunction):
    """A count per key."""

    n = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.n.set(self.n.get() + 1)
        yield (event.k, self.n.get())


def headwater_epochs(spark: SparkSession, count: int) -> list[float]:
    """Seconds from one epoch's commit to the next one's. The job has a folder of its own while it runs."""
    env = hw.Environment("floor", spark=spark, checkpoint_interval="0 s")
    source = hw.connectors.generator(lambda i: (i % 10,), rate=10)
    env.source(source, "k long").key_by("k").process(Counts(), "k long, n long").sink(hw.connectors.memory())
    committed: dict[int, float] = {}

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.PLANNED:
            committed[epoch] = time.perf_counter()

    job = env.start(on_step=on_step)
    while len(committed) <= count:
        time.sleep(0.05)
    job.stop()
    times = [committed[epoch] for epoch in sorted(committed)]
    return [after - before for before, after in pairwise(times)]


def spark_epochs(spark: SparkSession, folder: Path, count: int) -> list[float]:
    """The same of a native aggregate."""
    own = job_session(spark, 2, {})
    events = own.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    counts = events.groupBy((F.col("value") % 10).alias("k")).count()
    started: list[float] = []

    def handle(batch: DataFrame, _: int) -> None:
        started.append(time.perf_counter())
        batch.collect()

    writer = counts.writeStream.outputMode("update").foreachBatch(handle)
    query: StreamingQuery = writer.option("checkpointLocation", str(folder)).trigger(processingTime="0 seconds").start()
    while len(started) <= count:
        time.sleep(0.05)
    query.stop()
    return [after - before for before, after in pairwise(started)]


def main() -> None:
    """Measure in turns and print the ratio of the medians (lower is better)."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--epochs", type=int, default=40)
    options.add_argument("--warm-up", type=int, default=10)
    options.add_argument("--rounds", type=int, default=3)
    args = options.parse_args()
    folder = Scratch("bench-floor").path
    spark = local_session(2, {})
    ours: list[float] = []
    theirs: list[float] = []
    try:
        for turn in range(args.rounds):
            ours += headwater_epochs(spark, args.epochs)[args.warm_up :]
            theirs += spark_epochs(spark, folder / f"theirs{turn}", args.epochs)[args.warm_up :]
        print_result("epoch_floor", "spark_native", statistics.median(ours) * 1000, statistics.median(theirs) * 1000)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
