"""A count-and-sum process function per record with its state on disk beside the same with its state in memory, same events.

All runs read the same events in epochs of the same size and keep a count and a sum for each key. On disk it is measured
twice: holding so little that most keys are written and read again in every epoch, and within `--state-memory`; with
5,000,000 keys that is too little for them. A run that is not counted warms up the JVM, as the first two epochs of
each run warm up that run.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from parts.events import SCHEMA, event_tables
from parts.timing import EpochTimes, print_result

import headwater as hw
from headwater.words import StateBackendName

OUT = "user long, n long, total double"


class CountAndSum(hw.KeyedProcessFunction):
    """The function of all runs."""

    n = hw.ValueState("long", default=0)
    total = hw.ValueState("double", default=0.0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        n = self.n.get() + 1
        total = self.total.get() + event.amount
        self.n.set(n)
        self.total.set(total)
        yield {"user": event.user, "n": n, "total": total}


def rate(log: Path, folder: Path, rows_per_epoch: int, backend: StateBackendName, state_memory: str) -> float:
    """Rows per second with a backend."""
    env = hw.Environment(
        "bench",
        job_dir=folder / "job",
        max_rows_per_epoch=rows_per_epoch,
        state_backend=backend,
        state_memory=state_memory,
    )
    source = hw.connectors.log(log, "events")
    events = env.source(source, SCHEMA, hw.Watermarks.bounded("ts", "2 s"))
    events.key_by("user").process(CountAndSum(), OUT).sink(hw.connectors.files(folder / "out"))
    times = EpochTimes()
    job = env.run(bounded=True, on_step=times)
    return times.rate(job.status().steps["source"]["rows_in"], rows_per_epoch)


def main() -> None:
    """Measure all runs and print the ratio of disk to memory."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--epochs", type=int, default=10)
    options.add_argument("--rows-per-epoch", type=int, default=250_000)
    options.add_argument("--keys", type=int, default=100_000)
    options.add_argument("--state-memory", default="512 MB", help="what a worker holds")
    options.add_argument("--little-memory", default="16 MB", help="what a worker holds in the run that is not the last")
    args = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-disk-"))
    try:
        topic = hw.EventLog(folder / "log").create_topic("events", hw.Schema.of(SCHEMA).arrow, partitions=2)
        tables = event_tables(args.epochs * args.rows_per_epoch, args.keys, args.rows_per_epoch // 2)
        for number, table in enumerate(tables):
            topic.append(table, partition=number % 2)

        def measured(name: str, backend: StateBackendName, state_memory: str) -> float:
            return rate(folder / "log", folder / name, args.rows_per_epoch, backend, state_memory)

        measured("warm", "memory", args.state_memory)
        in_memory = measured("memory", "memory", args.state_memory)
        spilled = measured("spilled", "disk", args.little_memory)
        on_disk = measured("disk", "disk", args.state_memory)
        print_result("disk_state_spilled", "memory", spilled, in_memory)
        print_result("disk_state", "memory", on_disk, in_memory)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
