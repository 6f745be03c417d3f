"""A job with much state that is killed: the time from its next start to its first epoch, beside the least it could be.

That is what Spark takes to start a small stateful query again, in a process that is started as the job's is, and then a
plain read of the bytes that the job has stored. A process loads keys with two numbers and a text each, and is killed
(SIGKILL, with its JVM); rows are added; a second process goes on in the same folder. The state is of `--mb`, as it is
stored; `--rounds` starts are measured on each side, in turns, and the medians count.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from parts.timing import print_result
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import headwater as hw
from headwater.scratch import Scratch
from headwater.spark.session import job_session, local_session

SCHEMA = "user long, amount double, note string"
OUT = "user long, n long"
LOADED_AT_ONCE = 250_000
NOTE_BYTES = 160
KEY_BYTES = 200
"""About what a key with its values takes where it is stored."""
READ_BYTES, POLL_S = 8 << 20, 0.5
DONE = "done"
"""What a process says when it has done what is waited for."""


class Profile(hw.KeyedProcessFunction):
    """A count, a sum and the newest note of each key."""

    n = hw.ValueState("long", default=0)
    total = hw.ValueState("double", default=0.0)
    note = hw.ValueState("string")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        self.n.set(self.n.get() + 1)
        self.total.set(self.total.get() + event.amount)
        self.note.set(event.note)
        if self.n.get() > 1:
            yield {"user": event.user, "n": self.n.get()}


class SparkCount(StatefulProcessor):
    """A count of each key, in Spark's store."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._n = handle.getValueState("n", "n long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        n = (self._n.get() or (0,))[0] + sum(1 for _ in rows)
        self._n.update((n,))
        yield Row(user=key[0], n=n)

    def close(self) -> None:
        """Nothing to close."""


def events(users: np.ndarray, seed: int) -> pa.Table:
    """A row for each user, with a note that does not compress."""
    drawn = np.random.default_rng(seed).integers(33, 127, (len(users), NOTE_BYTES), np.uint8)
    notes = pa.array(drawn.reshape(-1).view(f"S{NOTE_BYTES}")).cast(pa.string())
    return pa.table({"user": pa.array(users, pa.int64()), "amount": pa.array(np.ones(len(users))), "note": notes})


def run_headwater(folder: Path) -> None:
    """Run the job until it is killed; tells of the first epoch that it commits."""
    computed: set[int] = set()

    def tell(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.MANIFEST:
            computed.add(epoch)  # others were computed before, and are published now
        elif step is hw.EpochStep.COMMITTED and epoch in computed:
            print(DONE, flush=True)

    env = hw.Environment("recovery", job_dir=folder / "job", max_rows_per_epoch=LOADED_AT_ONCE)
    rows = env.source(hw.connectors.log(folder / "log", "events"), SCHEMA)
    rows.key_by("user").process(Profile(), OUT, name="profiles").sink(hw.connectors.files(folder / "out"))
    env.run(on_step=tell)


def run_spark(folder: Path) -> None:
    """Run a small query until it is killed; tells of its first batch."""
    own = job_session(local_session(2, {}), 2, {})
    stream = own.readStream.schema(SCHEMA).parquet(str(folder / "parquet"))
    counted = stream.groupBy("user").transformWithState(SparkCount(), OUT, "append", "none")
    writer = counted.writeStream.format("parquet").option("path", str(folder / "spark-out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    while not any(one.numInputRows for one in query.recentProgress):
        time.sleep(0.02)
    print(DONE, flush=True)
    query.awaitTermination()


def until_done(side: str, folder: Path, rows: int = 0) -> float:
    """Start a process, and kill it and its JVM once it is done; how many seconds that took.

    It is when it says so; and if rows are given, when so many are published.
    """
    started = time.perf_counter()
    command = [sys.executable, __file__, "--child", side, "--folder", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        is_done = any(line.strip() == DONE for line in process.stdout)
        seconds = time.perf_counter() - started
        while is_done and process.poll() is None and published_rows(folder) < rows:
            time.sleep(POLL_S)
        os.killpg(process.pid, signal.SIGKILL)
    if not is_done:
        raise RuntimeError(f"the process of {side} ended before it was done")
    return seconds


def published_rows(folder: Path) -> int:
    """How many rows of the log the job has published."""
    if not (folder / "job").exists():
        return 0
    positions = hw.control.job(folder / "job").positions
    return sum(sum(splits.values()) for splits in positions.values())


def read_seconds(stored: Path) -> tuple[float, int]:
    """How long it takes to read all files of a folder, and how many bytes they are."""
    started, size = time.perf_counter(), 0
    for file in (one for one in stored.rglob("*") if one.is_file()):
        with file.open("rb") as opened:
            while piece := opened.read(READ_BYTES):
                size += len(piece)
    return time.perf_counter() - started, size


def measure(folder: Path, mb: int, rounds: int) -> None:
    """Load, and then start both sides again and again."""
    keys = (mb << 20) // KEY_BYTES
    topic = hw.EventLog(folder / "log").create_topic("events", hw.Schema.of(SCHEMA).arrow, partitions=2)
    for at in range(0, keys, LOADED_AT_ONCE // 2):
        users = np.arange(at, min(at + LOADED_AT_ONCE // 2, keys))
        topic.append(events(users, at), partition=at // (LOADED_AT_ONCE // 2) % 2)
    until_done("headwater", folder, keys)
    (folder / "parquet").mkdir()
    some = events(np.arange(min(keys, 1_000)), 1)
    pq.write_table(some, folder / "parquet" / "first.parquet")
    until_done("spark", folder)
    ours, theirs, reads, size = [], [], [], 0
    for turn in range(rounds):
        topic.append(some, partition=0)
        ours.append(until_done("headwater", folder))
        pq.write_table(some, folder / "parquet" / f"again-{turn}.parquet")
        seconds, size = read_seconds(folder / "job" / "checkpoint" / "state")
        reads.append(seconds)
        theirs.append(until_done("spark", folder) + seconds)
    facts = {"keys": keys, "stored_mb": size >> 20, "read_s": round(min(reads), 2)}
    print(
        json.dumps({**facts, "ours_s": [round(one, 1) for one in ours], "least_s": [round(one, 1) for one in theirs]})
    )
    print_result("recovery", "restart_and_read", statistics.median(ours), statistics.median(theirs))


def main() -> None:
    """Measure, or be one of the processes that are started and killed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--mb", type=int, default=1024, help="the size of the state, as it is stored")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--child", choices=["headwater", "spark"], help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.child:
        if args.child == "headwater":
            run_headwater(args.folder)
        else:
            run_spark(args.folder)
        return
    folder = Scratch("bench-recovery").path
    measure(folder, args.mb, args.rounds)


if __name__ == "__main__":
    main()
