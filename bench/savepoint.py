"""Savepoints of a job with a million keys: taken while it runs, and gone on from at other parallelisms.

The job keeps a count, a map of two entries and, for every tenth key, a timer. While the savepoint is taken it goes on
with its input; the seconds of its epochs then are shown beside those before. The same state is then gone on from at
parallelism 1, 3 and 8: each must have the same tables, and give the same further results. The peer is what Spark itself
offers for its state: reading it with the `statestore` source into Parquet, here that of a native aggregate with as many
keys. The figures are entries a second, so that the count, the map entries and the timers of a key count as what they are.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import headwater as hw
from headwater.scratch import Scratch
from headwater.spark.session import job_session, local_session

SCHEMA = "user long, ts timestamp, amount double"
OUT = "user long, n long, total double"
WARM_UP, COMPARED = 12, 12
"""Epochs of the running job that are passed over, and those that the ones during the savepoint are compared with."""
LEFT_OUT = {"@subtask", "@key_group", "registration"}
"""Columns that say where a row was kept, not what it is."""


class Purchases(hw.KeyedProcessFunction):
    """A count, the totals by kind of a purchase, and a reminder for some."""

    n = hw.ValueState("long", default=0)
    totals = hw.MapState("string", "double")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        n = self.n.get() + 1
        self.n.set(n)
        if n == 1:
            self.totals.put("first", event.amount)
        total = self.totals.get("all", 0.0) + event.amount
        self.totals.put("all", total)
        if event.user % 10 == 0:
            ctx.timers.event_time(ctx.timestamp + 3_600_000)
        yield (event.user, n, total)

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield (ctx.key, -self.n.get(), self.totals.get("all"))


class Epochs:
    """When epochs were published; pass it as `on_step`."""

    def __init__(self) -> None:
        self.published: dict[int, float] = {}

    def __call__(self, step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.CLEANED:
            self.published[epoch] = time.perf_counter()

    def wait_for(self, count: int) -> None:
        """Wait until so many more epochs are published."""
        wanted = len(self.published) + count
        while len(self.published) < wanted:
            time.sleep(0.01)

    def seconds(self, start: float, end: float) -> list[float]:
        """The length of each epoch that ended in a span."""
        times = sorted(self.published.values())
        return [after - before for before, after in pairwise(times) if start <= after <= end]


class Shop:
    """The log of the job, and the job in its shapes."""

    def __init__(self, folder: Path, spark: SparkSession, keys: int) -> None:
        self.folder, self._spark, self._keys = folder, spark, keys
        self._topic = hw.EventLog(folder / "log").create_topic("events", hw.Schema.of(SCHEMA).arrow, partitions=2)
        self._random = np.random.default_rng(1)
        self._count = 0

    def append(self, users: Any) -> None:
        """One event of each user, a millisecond apart, in both partitions."""
        millis = 1_700_000_000_000 + self._count + np.arange(len(users))
        self._count += len(users)
        amounts = self._random.integers(0, 400, len(users)) / 4  # so that sums are exact in any order
        table = pa.table({"user": users, "ts": pa.array(millis * 1000, pa.timestamp("us", "UTC")), "amount": amounts})
        for partition in range(2):
            self._topic.append(table.filter(pa.array(np.arange(len(users)) % 2 == partition)), partition=partition)

    def append_every_user(self) -> None:
        self.append(self._random.permutation(self._keys))

    def append_some_users(self, rows: int) -> None:
        self.append(self._random.integers(0, self._keys, rows))

    def env(self, name: str, parallelism: int) -> hw.Environment:
        env = hw.Environment(
            "bench",
            job_dir=self.folder / name / "job",
            spark=self._spark,
            parallelism=parallelism,
            checkpoint_interval="100 ms",
            max_rows_per_epoch=250_000,
        )
        source = hw.connectors.log(self.folder / "log", "events")
        bought = env.source(source, SCHEMA, hw.Watermarks.bounded("ts", "0 s"))
        bought.key_by("user").process(Purchases(), OUT).sink(hw.connectors.files(self.folder / name / "out"))
        return env

    def until_read(self, job: hw.Job) -> None:
        """Wait until the job has published what it read, which is all there is."""
        while True:
            status = job.status()
            read = sum(status.positions.get("source", {}).values())
            if read == self._count and status.published == status.epoch:
                return
            job.wait(0.02)


def take(shop: Shop, feed_rows: int) -> dict[str, Any]:
    """Savepoints of the job: one while input comes in, the last one when it is stopped."""
    epochs = Epochs()
    job = shop.env("first", 2).start(on_step=epochs)
    shop.until_read(job)
    done = threading.Event()

    def feed() -> None:
        while not done.wait(0.2):
            shop.append_some_users(feed_rows)

    feeder = threading.Thread(target=feed)
    feeder.start()
    epochs.wait_for(WARM_UP)
    warm = time.perf_counter()
    epochs.wait_for(COMPARED)
    begun = time.perf_counter()
    job.savepoint(shop.folder / "live")
    ended = time.perf_counter()
    done.set()
    feeder.join()
    shop.until_read(job)
    stopped = time.perf_counter()
    job.stop(savepoint=shop.folder / "saved")
    before, during = epochs.seconds(warm, begun), epochs.seconds(begun, ended)
    return {
        "take_s": ended - begun,
        "stop_s": time.perf_counter() - stopped,
        "epochs_during": len(during),
        "epoch_before_s": statistics.median(before),
        "epoch_during_s": statistics.median(during),
        "longest_epoch_before_s": max(before),
        "longest_epoch_during_s": max(during),
    }


def restore(shop: Shop, parallelism: int) -> float:
    """Seconds from the start to the first committed epoch of a job that goes on from the savepoint; checks its state."""
    name = f"at{parallelism}"
    epochs = Epochs()
    begun = time.perf_counter()
    job = shop.env(name, parallelism).start(from_=shop.folder / "saved", on_step=epochs)
    while not epochs.published:
        job.wait(0.01)
    seconds = min(epochs.published.values()) - begun
    job.stop(savepoint=shop.folder / name / "saved")
    compare(shop.folder / "saved", shop.folder / name / "saved")
    return seconds


def compare(one: Path, other: Path) -> None:
    """Refuse two savepoints whose tables differ."""
    names = sorted(path.relative_to(one) for path in (one / "state").glob("*/*"))
    for name in names:
        tables = [_sorted(path / name) for path in (one, other)]
        if not tables[0].equals(tables[1]):
            raise SystemExit(
                f"{other / name} has {len(tables[1])} entries, or others than the {len(tables[0])} of {one}"
            )
    if names != sorted(path.relative_to(other) for path in (other / "state").glob("*/*")):
        raise SystemExit(f"{other} has other states than {one}")


def _sorted(folder: Path) -> pa.Table:
    table = pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])
    table = table.drop_columns([name for name in table.column_names if name in LEFT_OUT])
    if "channel" in table.column_names:  # event time by channel: every subtask has heard the same
        table = pa.Table.from_pylist([dict(row) for row in sorted({tuple(r.items()) for r in table.to_pylist()})])
    return table.sort_by([(name, "ascending") for name in table.column_names])


def results(shop: Shop, parallelism: int) -> Counter[tuple[Any, ...]]:
    """What a restored job gives for all further input."""
    name = f"at{parallelism}"
    shop.env(name, parallelism).run(bounded=True)
    table = ds.dataset(shop.folder / name / "out", format="parquet").to_table()
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def entries_of(savepoint: Path) -> tuple[int, int]:
    """The entries and bytes of a savepoint."""
    files = list((savepoint / "state").rglob("*.parquet"))
    return sum(pq.read_metadata(path).num_rows for path in files), sum(path.stat().st_size for path in files)


def peer(spark: SparkSession, folder: Path, keys: int) -> tuple[int, float]:
    """The entries of the state of a native aggregate with as many keys, and the seconds to get them into Parquet."""
    own = job_session(spark, 2, {})
    own.range(keys).selectExpr("id as user", "double(id % 400) / 4 as amount").write.parquet(str(folder / "events"))
    events = own.readStream.schema("user long, amount double").parquet(str(folder / "events"))
    counts = events.groupBy("user").agg({"user": "count", "amount": "sum"})
    writer = counts.writeStream.outputMode("update").foreachBatch(lambda batch, _: batch.foreach(lambda _: None))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    begun = time.perf_counter()
    shutil.copytree(folder / "checkpoint", folder / "copy")
    state = own.read.format("statestore").option("path", str(folder / "copy")).load()
    state.write.option("compression", "zstd").parquet(str(folder / "state"))
    seconds = time.perf_counter() - begun
    return ds.dataset(folder / "state", format="parquet").count_rows(), seconds


def main() -> None:
    """Measure, compare and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--keys", type=int, default=1_000_000)
    options.add_argument("--feed-rows", type=int, default=2_000, help="rows of input every 200 ms while it is taken")
    options.add_argument("--limit-s", type=float, default=30.0, help="how long the savepoint may take")
    args = options.parse_args()
    folder = Scratch("bench-savepoint").path
    spark = local_session(2, {})
    try:
        shop = Shop(folder, spark, args.keys)
        shop.append_every_user()
        parts: dict[str, Any] = take(shop, args.feed_rows)
        print(json.dumps({name: round(value, 3) for name, value in parts.items()}))
        entries, size_bytes = entries_of(folder / "live")
        parallelisms = (1, 3, 8)
        restored = {parallelism: restore(shop, parallelism) for parallelism in parallelisms}
        print(json.dumps({f"restore_s_{p}": round(s, 3) for p, s in restored.items()}))
        shop.append_some_users(args.keys // 4)
        outputs = [results(shop, parallelism) for parallelism in parallelisms]
        if any(output != outputs[0] for output in outputs):
            raise SystemExit("the restored jobs gave different results")
        peer_entries, peer_s = peer(spark, folder / "peer", args.keys)
        print(
            json.dumps(
                {"entries": entries, "bytes": size_bytes, "peer_entries": peer_entries, "peer_s": round(peer_s, 3)}
            )
        )
        ours, theirs = entries / parts["take_s"], peer_entries / peer_s
        result = {"bench": "savepoint", "headwater": round(ours, 1), "spark_statestore": round(theirs, 1)}
        print(json.dumps({**result, "ratio": round(ours / theirs, 2), "take_s": round(parts["take_s"], 2)}))
        if parts["take_s"] > args.limit_s:
            raise SystemExit(f"the savepoint took {parts['take_s']:.1f} s, more than {args.limit_s} s")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
