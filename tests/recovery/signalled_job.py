"""The job that tests send signals to: a count for each user, in files of each epoch and in files that roll.

Run as a program: signalled_job.py FOLDER ENGINE [WAY], until a signal comes.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

import headwater as hw

SCHEMA = "user string, i long"
COUNTS = "user string, i long, n long"
ROWS_PER_EPOCH = 20


class Count(hw.KeyedProcessFunction):
    """Counts; at the row that is named in a file, it holds the epoch up as long as the file is there."""

    n = hw.ValueState("long", default=0)

    def __init__(self, folder: Path) -> None:
        self._hold, self._held = folder / "hold", folder / "held"

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        with suppress(FileNotFoundError):
            while event.i == int(self._hold.read_text()):
                self._held.touch()
                time.sleep(0.02)
        if event.user == "bad":
            raise ValueError("a bad user")
        self.n.set(self.n.get() + 1)
        yield {"user": event.user, "i": event.i, "n": self.n.get()}


def write_events(folder: Path, rows: int, bad: int | None = None) -> None:
    topic = hw.EventLog(folder / "log").create_topic("events", hw.Schema.of(SCHEMA).arrow)
    users = ["bad" if i == bad else f"u{i % 7}" for i in range(rows)]
    topic.append(pa.table({"user": users, "i": list(range(rows))}))


def expected(rows: int) -> list[tuple[str, int, int]]:
    return [(f"u{i % 7}", i, i // 7 + 1) for i in range(rows)]


def build(folder: Path, output: Path | None = None, **settings: Any) -> hw.Environment:
    output = output or folder
    given = {"max_rows_per_epoch": ROWS_PER_EPOCH, "checkpoint_interval": "100 ms", "job_dir": folder / "job"}
    quiet = {"log_level": "error"}  # a busy machine makes epochs slow, which is told
    env = hw.Environment("counts", **{**given, **quiet, **settings})
    counts = env.source(hw.connectors.log(folder / "log", "events"), SCHEMA).key_by("user")
    counted = counts.process(Count(folder), COUNTS, name="count")
    counted.sink(hw.connectors.files(output / "each", format="json")).with_uid("each")
    counted.sink(hw.connectors.files(output / "rolled", format="json", roll_every="1 h")).with_uid("rolled")
    return env


def published(output: Path) -> dict[str, list[tuple[str, int, int]]]:
    """The rows that can be seen in each output, by their number."""
    seen = {}
    for name in ("each", "rolled"):
        lines = [line for path in (output / name).glob("*.jsonl") for line in path.read_text().splitlines()]
        rows = [tuple(json.loads(line).values()) for line in lines]
        seen[name] = sorted(rows, key=lambda row: row[1])
    return seen


def main() -> None:
    folder, engine, way = Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "run"

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.CLEANED:
            print(epoch, flush=True)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # who is started in the background ignores it
    env = build(folder, engine=engine)
    print("begins", flush=True)
    if way == "interactive":
        sys.ps1 = ">>> "
        print(env.run(on_step=on_step).status().state)
        return
    try:
        env.run(on_step=on_step)
    finally:
        (folder / "cleaned-up").touch()


if __name__ == "__main__":
    main()
