"""Jobs with their state on disk beside the same with their state in memory, over the same events.

    process   a count-and-sum process function per record
    running   a count and a sum of each key so far, by columns
    windows   a count and a sum of each key in windows of `--window-epochs` epochs, by columns
    join      events with those of their key of `--window-epochs` epochs before, by columns: every event is kept

All runs read the same events in epochs of the same size, of so many keys that they do not fit `--state-memory`. With
`--little-memory` a further run holds so little that most is written and read again in every epoch. A short run that is not
counted warms up the JVM, as the first two epochs of each run warm up that run. The ratio of the last line is the lowest.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parts.events import SCHEMA, event_tables
from parts.memory import resident_bytes
from parts.timing import WARM_UP, EpochTimes

import headwater as hw
from headwater.scratch import Scratch
from headwater.words import StateBackendName

OUT = "user long, n long, total double"
Build = Callable[[hw.Stream, int], hw.Stream]
"""Makes the stream to write of the events and how many milliseconds windows and joins reach over."""


class CountAndSum(hw.KeyedProcessFunction):
    """The function of `process`."""

    n = hw.ValueState("long", default=0)
    total = hw.ValueState("double", default=0.0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        n = self.n.get() + 1
        total = self.total.get() + event.amount
        self.n.set(n)
        self.total.set(total)
        yield {"user": event.user, "n": n, "total": total}


def process(events: hw.Stream, _: int) -> hw.Stream:
    """A function by key."""
    return events.key_by("user").process(CountAndSum(), OUT)


def running(events: hw.Stream, _: int) -> hw.Stream:
    """Aggregates without windows."""
    return events.key_by("user").agg(n=hw.count(), total=hw.sum("amount"))


def windows(events: hw.Stream, reach_ms: int) -> hw.Stream:
    """Aggregates in windows."""
    return events.key_by("user").window(hw.tumbling(f"{reach_ms} ms")).agg(n=hw.count(), total=hw.sum("amount"))


def join(events: hw.Stream, reach_ms: int) -> hw.Stream:
    """Events with earlier ones of their key. Few pairs are shown: finding them is the work."""
    pairs = events.key_by("user").interval_join(events.key_by("user"), between=(f"-{reach_ms} ms", "0 s"))
    return pairs.where("amount + amount_right > 199.9")


PROGRAMS: dict[str, Build] = {"process": process, "running": running, "windows": windows, "join": join}


@dataclass(frozen=True)
class Measured:
    """A run: rows per second, and the most that a worker had resident."""

    rate: float
    worker_mb: int


class Watch(EpochTimes):
    """The times of epochs, and what workers have resident after each."""

    def __init__(self) -> None:
        super().__init__()
        self.worker_bytes = 0

    def __call__(self, step: hw.EpochStep, epoch: int) -> None:
        super().__call__(step, epoch)
        if step is hw.EpochStep.CLEANED:
            self.worker_bytes = max([self.worker_bytes, *resident_bytes(os.getpid(), "pyspark.daemon")])


def measure(build: Build, folder: Path, args: argparse.Namespace, backend: StateBackendName, memory: str) -> Measured:
    """Run a job with a backend."""
    env = hw.Environment(
        "bench",
        job_dir=folder / "job",
        max_rows_per_epoch=args.rows_per_epoch,
        state_backend=backend,
        state_memory=memory,
    )
    events = env.source(hw.connectors.log(args.log, "events"), SCHEMA, hw.Watermarks.bounded("ts", "2 s"))
    reach_ms = args.window_epochs * args.rows_per_epoch  # events are a millisecond apart
    build(events, reach_ms).sink(hw.connectors.files(folder / "out"))
    watch = Watch()
    try:
        job = env.run(bounded=True, on_step=watch)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Measured(watch.rate(job.status().steps["source"]["rows_in"], args.rows_per_epoch), watch.worker_bytes >> 20)


def compare(name: str, folder: Path, args: argparse.Namespace) -> float:
    """Measure one job on both backends; gives the ratio of disk to memory."""
    build = PROGRAMS[name]
    in_memory = measure(build, folder / f"{name}-memory", args, "memory", args.state_memory)
    ratio = 0.0
    for number, memory in enumerate(filter(None, [args.little_memory, args.state_memory])):
        on_disk = measure(build, folder / f"{name}-disk-{number}", args, "disk", memory)
        ratio = on_disk.rate / in_memory.rate
        facts = {"program": name, "state_memory": memory, "disk": round(on_disk.rate), "memory": round(in_memory.rate)}
        resident = {"worker_mb": on_disk.worker_mb, "worker_mb_in_memory": in_memory.worker_mb}
        print(json.dumps({**facts, "ratio": round(ratio, 2), **resident}), flush=True)
    return ratio


def main() -> None:
    """Measure all runs and print the lowest ratio of disk to memory."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--epochs", type=int, default=20)
    options.add_argument("--rows-per-epoch", type=int, default=500_000)
    options.add_argument("--keys", type=int, default=5_000_000)
    options.add_argument(
        "--window-epochs", type=int, default=20, help="how many epochs windows and the join reach over"
    )
    options.add_argument("--state-memory", default="512 MB", help="what a worker holds")
    options.add_argument("--little-memory", help="what a worker holds in a further run, such as '16 MB'")
    options.add_argument("--programs", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS))
    args = options.parse_args()
    folder = Scratch("bench-disk").path
    args.log = folder / "log"
    append(folder / "warm-up", WARM_UP + 1, args)
    append(folder / "log", args.epochs, args)
    warm_up = argparse.Namespace(**{**vars(args), "log": folder / "warm-up"})
    measure(process, folder / "warm", warm_up, "memory", args.state_memory)
    ratios = {name: compare(name, folder, args) for name in args.programs}
    lowest = min(ratios, key=lambda name: ratios[name])
    sizes = {"keys": args.keys, "rows": args.epochs * args.rows_per_epoch, "state_memory": args.state_memory}
    print(json.dumps({"bench": "disk_state", **sizes, "lowest": lowest, "ratio": round(ratios[lowest], 2)}))


def append(log: Path, epochs: int, args: argparse.Namespace) -> None:
    """Add events for so many epochs to a new log."""
    topic = hw.EventLog(log).create_topic("events", hw.Schema.of(SCHEMA).arrow, partitions=2)
    for number, table in enumerate(event_tables(epochs * args.rows_per_epoch, args.keys, args.rows_per_epoch // 2)):
        topic.append(table, partition=number % 2)


if __name__ == "__main__":
    main()
