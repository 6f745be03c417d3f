"""A count-and-sum process function per record with its state on disk beside the same with its state in memory, same events.

All runs read the same events in epochs of the same size and keep a count and a sum for each of 100,000 keys. On disk it is
measured twice: as it is, where so many keys fit into what the backend holds in memory, and holding so little that most
keys are written and read again in every epoch. A run that is not counted warms up the JVM, as the first two epochs of
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
from headwater.state.disk import backend as disk

OUT = "user long, n long, total double"


class CountAndSum(hw.KeyedProcessFunction):
    """The function of all runs."""

    n = hw.ValueState("long", default=0)
    total = hw.ValueState("double", default=0.0)

    def __init__(self, held_bytes: int) -> None:
        self._held_bytes = held_bytes

    def open(self) -> None:
        """Set what the disk backend of this worker holds in memory."""
        disk.HELD_BYTES = self._held_bytes

    def process(self, event: Any, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        n = self.n.get() + 1
        total = self.total.get() + event.amount
        self.n.set(n)
        self.total.set(total)
        yield {"user": event.user, "n": n, "total": total}


def rate(log: Path, folder: Path, rows_per_epoch: int, backend: str, held_bytes: int = disk.HELD_BYTES) -> float:
    """Rows per second with a backend."""
    env = hw.Environment("bench", job_dir=folder / "job", max_rows_per_epoch=rows_per_epoch, state_backend=backend)
    source = hw.connectors.log(log, "events")
    events = env.source(source, SCHEMA, hw.Watermarks.bounded("ts", "2 s"))
    events.key_by("user").process(CountAndSum(held_bytes), OUT).sink(hw.connectors.files(folder / "out"))
    times = EpochTimes()
    job = env.run(bounded=True, on_step=times)
    return times.rate(job.status().steps["source"]["rows_in"], rows_per_epoch)


def main() -> None:
    """Measure all runs and print the ratio of disk to memory."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--epochs", type=int, default=10)
    options.add_argument("--rows-per-epoch", type=int, default=250_000)
    options.add_argument("--keys", type=int, default=100_000)
    options.add_argument("--little-bytes", type=int, default=2 << 20, help="what a subtask holds in the last run")
    args = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-disk-"))
    try:
        topic = hw.EventLog(folder / "log").create_topic("events", hw.Schema.of(SCHEMA).arrow, partitions=2)
        tables = event_tables(args.epochs * args.rows_per_epoch, args.keys, args.rows_per_epoch // 2)
        for number, table in enumerate(tables):
            topic.append(table, partition=number % 2)
        rate(folder / "log", folder / "warm", args.rows_per_epoch, "memory")
        in_memory = rate(folder / "log", folder / "memory", args.rows_per_epoch, "memory")
        on_disk = rate(folder / "log", folder / "disk", args.rows_per_epoch, "disk")
        spilled = rate(folder / "log", folder / "spilled", args.rows_per_epoch, "disk", args.little_bytes)
        print_result("disk_state_spilled", "memory", spilled, in_memory)
        print_result("disk_state", "memory", on_disk, in_memory)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
