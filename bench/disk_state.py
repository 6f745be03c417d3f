"""Jobs with their state on disk beside the same with their state in memory, over the same events.

    process   a count-and-sum process function per record
    running   a count and a sum of each key so far, by columns
    windows   a count and a sum of each key in windows of `--window-epochs` epochs, by columns
    join      events with those of their key of `--window-epochs` epochs before, by columns: every event is kept

All runs read the same events in epochs of the same size. On disk each is measured twice: holding so little that most is
written and read again in every epoch, and within `--state-memory`; with 5,000,000 keys that is too little for them. A run
that is not counted warms up the JVM, as the first two epochs of each run warm up that run.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from parts.events import SCHEMA, event_tables
from parts.timing import EpochTimes, print_result

import headwater as hw
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


def rate(build: Build, folder: Path, args: argparse.Namespace, backend: StateBackendName, state_memory: str) -> float:
    """Rows per second with a backend."""
    env = hw.Environment(
        "bench",
        job_dir=folder / "job",
        max_rows_per_epoch=args.rows_per_epoch,
        state_backend=backend,
        state_memory=state_memory,
    )
    source = hw.connectors.log(folder.parent / "log", "events")
    events = env.source(source, SCHEMA, hw.Watermarks.bounded("ts", "2 s"))
    reach_ms = args.window_epochs * args.rows_per_epoch  # events are a millisecond apart
    build(events, reach_ms).sink(hw.connectors.files(folder / "out"))
    times = EpochTimes()
    job = env.run(bounded=True, on_step=times)
    found = times.rate(job.status().steps["source"]["rows_in"], args.rows_per_epoch)
    shutil.rmtree(folder, ignore_errors=True)
    return found


def main() -> None:
    """Measure all runs and print the ratio of disk to memory."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--epochs", type=int, default=10)
    options.add_argument("--rows-per-epoch", type=int, default=250_000)
    options.add_argument("--keys", type=int, default=100_000)
    options.add_argument(
        "--window-epochs", type=int, default=20, help="how many epochs windows and the join reach over"
    )
    options.add_argument("--state-memory", default="512 MB", help="what a worker holds")
    options.add_argument("--little-memory", default="16 MB", help="what a worker holds in the run that is not the last")
    options.add_argument("--programs", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS))
    args = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-disk-"))
    try:
        topic = hw.EventLog(folder / "log").create_topic("events", hw.Schema.of(SCHEMA).arrow, partitions=2)
        tables = event_tables(args.epochs * args.rows_per_epoch, args.keys, args.rows_per_epoch // 2)
        for number, table in enumerate(tables):
            topic.append(table, partition=number % 2)
        for name in args.programs:
            measure(name, folder, args)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(name: str, folder: Path, args: argparse.Namespace) -> None:
    """Measure one job on both backends."""

    def measured(run: str, backend: StateBackendName, state_memory: str) -> float:
        return rate(PROGRAMS[name], folder / f"{name}-{run}", args, backend, state_memory)

    measured("warm", "memory", args.state_memory)
    in_memory = measured("memory", "memory", args.state_memory)
    spilled = measured("spilled", "disk", args.little_memory)
    on_disk = measured("disk", "disk", args.state_memory)
    bench = "disk_state" if name == "process" else f"disk_state_{name}"
    print_result(f"{bench}_spilled", "memory", spilled, in_memory)
    print_result(bench, "memory", on_disk, in_memory)


if __name__ == "__main__":
    main()
