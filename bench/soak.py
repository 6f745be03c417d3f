"""A soak: keys come and go under a ttl for a while, and neither memory nor checkpoints may grow.

A job on Spark keeps a value and a map for each key, with a ttl of a minute; every second brings keys that were never seen
before, and asks some of the newest again. After `--settle` minutes the job is in its steady state: from there on the
resident memory of the workers, the entries and their size, what a worker without a copy would have to read, and the files
of the checkpoints are looked at every few seconds. Spark is told to remove what it need not keep six times as often as it
does by itself: else most of the files are such, and their number goes up and down with nothing but its rounds. Changelog
and checkpoints go up and down by themselves, as bases are written and old files removed, so a moment says little: a figure
is flat if its mean over the newer half of the steady time is less than `--rise` above that over its older half. The steady
time must be long enough for some bases. A picture of all of it is written, and the last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from parts.memory import resident_bytes
from parts.plot import Line, drawn

import headwater as hw
from headwater.scratch import Scratch

SCHEMA = "user long, page string"
_LEAST_LOOKS = 20
"""Fewer in the steady time show nothing."""
UNITS = {
    "worker_mb": ("resident memory of the workers", "MB"),
    "entries": ("entries of the state", "entries"),
    "state_mb": ("size of the state, as columns", "MB"),
    "stored_mb": ("to read when a worker has no copy", "MB"),
    "checkpoint_mb": ("files of the checkpoints", "MB"),
}


class Visits(hw.KeyedProcessFunction):
    """What a user did lately."""

    count = hw.ValueState("long", default=0, ttl=hw.ttl("60 s"))
    pages = hw.MapState("string", "long", ttl=hw.ttl("60 s"))

    def process(self, visit: Any, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        self.count.set(self.count.get() + 1)
        self.pages.put(visit.page, self.count.get())
        yield {"user": visit.user, "n": self.count.get()}


def visit(number: int) -> tuple[int, str]:
    """Two of three are of users who were never there before, the third is of one who came a little earlier."""
    user = number if number % 3 else max(0, number - 3_000)
    return user, f"page {number % 50}"


@dataclass(frozen=True)
class Look:
    """The job at a moment."""

    minute: float
    worker_mb: float
    entries: float
    state_mb: float
    stored_mb: float
    checkpoint_mb: float
    expired: int
    epoch: int


def look(job: hw.Job, job_dir: Path, began: float) -> Look:
    """How large everything is now."""
    status = job.status()
    step = status.steps.get("visits")
    stored = [one.stored_bytes for one in hw.checkpoints(job_dir) if one.stored_bytes is not None]
    size = sum(one.stat().st_size for one in list((job_dir / "checkpoint").rglob("*")) if one.is_file())
    return Look(
        (time.monotonic() - began) / 60,
        sum(resident_bytes(os.getpid(), "pyspark.daemon")) / 1e6,
        0 if step is None else sum(step.state.values()),
        0 if step is None else sum(step.state_bytes.values()) / 1e6,
        stored[-1] / 1e6 if stored else 0,
        size / 1e6,
        0 if step is None else step.counters.get("state_expired", 0),
        status.epoch,
    )


def rise(values: Sequence[float]) -> float:
    """By what part of it the mean of the newer half is above that of the older half."""
    middle = len(values) // 2
    older, newer = mean(values[:middle] or [0.0]), mean(values[middle:] or [0.0])
    return newer / older - 1 if older else 0.0


def run(folder: Path, args: argparse.Namespace) -> tuple[list[Look], hw.StateExplanation]:
    """Let the job run, and look at it."""
    job_dir = folder / "job"
    env = hw.Environment(
        "soak",
        job_dir=job_dir,
        checkpoint_interval="1 s",
        checkpoints_retained=20,
        state_backend=args.backend,
        spark_config={"spark.sql.streaming.stateStore.maintenanceInterval": "10s"},
    )
    source = hw.connectors.generator(visit, rate=args.rate)
    visits = env.source(source, SCHEMA).key_by("user").process(Visits(), "user long, n long", name="visits")
    visits.sink(hw.connectors.blackhole())
    job, began, looks = env.start(), time.monotonic(), []
    waiting = threading.Event()
    while time.monotonic() - began < 60 * args.minutes:
        if job.wait(args.every):
            break
        try:
            looks.append(look(job, job_dir, began))
        except OSError:  # a file went while it was looked at
            waiting.wait(0.1)
    told = job.explain_state()
    job.stop()
    return looks, told


def main() -> None:
    """Run, draw, judge."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=30)
    options.add_argument("--rate", type=float, default=2_000, help="rows a second")
    options.add_argument("--every", type=float, default=2, help="seconds between two looks")
    options.add_argument("--settle", type=float, default=10, help="minutes until the job is in its steady state")
    options.add_argument(
        "--rise", type=float, default=0.1, help="what part of it the mean of a flat figure may rise by"
    )
    options.add_argument("--backend", choices=("memory", "disk"), default="memory")
    options.add_argument("--picture", type=Path, default=Path(tempfile.gettempdir()) / "soak.svg")
    args = options.parse_args()
    folder = Scratch("bench-soak").path
    looks, told = run(folder, args)
    minutes = [one.minute for one in looks]
    lines = [Line(name, unit, [asdict(one)[field] for one in looks]) for field, (name, unit) in UNITS.items()]
    title = f"{args.rate:g} rows a second, two of three of them of new keys, a ttl of 60 s, {args.backend}"
    args.picture.write_text(drawn(title, minutes, lines), encoding="utf-8")
    steady = [asdict(one) for one in looks if one.minute >= args.settle]
    rises = {name: round(rise([one[name] for one in steady]), 4) for name in UNITS}
    is_flat = len(steady) >= _LEAST_LOOKS and all(share < args.rise for share in rises.values())
    print(told)
    print(f"picture: {args.picture}")
    for name, share in rises.items():
        print(f"{UNITS[name][0]}: the newer half is {share:+.1%} beside the older one")
    last = asdict(looks[-1]) if looks else {}
    print(json.dumps({"bench": "soak", "flat": is_flat, "rises": rises, "last": last}))
    sys.exit(0 if is_flat else 1)


if __name__ == "__main__":
    main()
