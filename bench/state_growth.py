"""Epochs of a count-and-sum function that touch 10,000 keys, over ever more stored keys: in memory, and on disk within a bound.

For each size a run loads the keys, and a second one, in the same folder, touches random ones; the time of its epochs counts,
but for the first ones. Bases of the changelog are made due all the time, so that epochs that write them are among them. It
reports the epochs' times, what is resident of the workers, and what share of the state's bytes an epoch writes beside the
share of the keys that it touches: the epochs that write changes alone, and the median of all, parts of bases included. The
ratio of the last line is that of the median in memory at the largest size to that at the smallest, which is measured before
the others and after them, since the speed of a machine drifts: the mean of both counts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from parts.memory import resident_bytes
from parts.timing import WARM_UP, print_result

import headwater as hw
from headwater.scratch import Scratch
from headwater.state import changelog
from headwater.words import StateBackendName

SCHEMA = "user long, amount double"
OUT = "user long, n long, total double"
LOADED_AT_ONCE = 500_000


class CountAndSum(hw.KeyedProcessFunction):
    """A count and a sum for each key."""

    n = hw.ValueState("long", default=0)
    total = hw.ValueState("double", default=0.0)

    def __init__(self, base_after: int) -> None:
        self._base_after = base_after

    def open(self) -> None:
        """In the worker: let a base be due after so many records."""
        changelog.COMPACT_AFTER_RECORDS = self._base_after

    def process(self, event: Any, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        n = self.n.get() + 1
        total = self.total.get() + event.amount
        self.n.set(n)
        self.total.set(total)
        yield {"user": event.user, "n": n, "total": total}


@dataclass
class Epochs:
    """When each epoch was published, and the most that a worker, and all of them, had resident after one; an `on_step`."""

    published: list[float] = field(default_factory=list)
    worker_bytes: int = 0
    all_bytes: int = 0

    def __call__(self, step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.CLEANED:
            self.published.append(time.perf_counter())
            resident = resident_bytes(os.getpid(), "pyspark.daemon")
            self.worker_bytes = max([self.worker_bytes, *resident])
            self.all_bytes = max(self.all_bytes, sum(resident))

    def seconds(self) -> list[float]:
        """What each epoch after the warm-up took."""
        return np.diff(self.published)[WARM_UP:].tolist()


@dataclass(frozen=True)
class Measured:
    """One size on one backend."""

    backend: str
    keys: int
    p50_ms: int
    max_ms: int
    first_epoch_s: float
    worker_mb: int
    workers_mb: int
    """Of all together, with those that read sources."""
    touched_share: float
    written_share: float
    """Of the bytes that the state was loaded with, what the median of the epochs wrote that wrote changes alone."""
    with_bases_share: float
    """The median of all epochs, of which those that wrote parts of a base wrote more."""


def appended(log: Path, users: Iterator[np.ndarray]) -> None:
    """Add rows of users to the log."""
    topic = hw.EventLog(log).topic("events")
    for number, some in enumerate(users):
        amounts = np.random.default_rng(number).random(len(some))  # equal ones would take no room where they are stored
        columns = {"user": pa.array(some, pa.int64()), "amount": pa.array(amounts)}
        topic.append(pa.table(columns), partition=number % 2)


def measure(folder: Path, backend: StateBackendName, keys: int, args: argparse.Namespace) -> Measured:
    """Load keys, touch some of them in each of many epochs."""
    random = np.random.default_rng(1)
    log = folder / "log"
    hw.EventLog(log).create_topic("events", hw.Schema.of(SCHEMA).arrow, partitions=2)

    def run(rows_per_epoch: int, base_after: int) -> Epochs:
        env = hw.Environment(
            "bench",
            job_dir=folder / "job",
            max_rows_per_epoch=rows_per_epoch,
            state_backend=backend,
            state_memory=args.state_memory,
            checkpoints_retained=1_000,
        )
        events = env.source(hw.connectors.log(log, "events"), SCHEMA)
        events.key_by("user").process(CountAndSum(base_after), OUT, name="totals").sink(
            hw.connectors.files(folder / "out")
        )
        epochs = Epochs()
        env.run(available_now=True, on_step=epochs)
        return epochs

    order = random.permutation(keys)
    appended(log, (order[at : at + LOADED_AT_ONCE // 2] for at in range(0, keys, LOADED_AT_ONCE // 2)))
    run(LOADED_AT_ONCE, changelog.COMPACT_AFTER_RECORDS)
    loaded = written(folder / "job")
    touched = args.touched // 2
    appended(log, (random.choice(keys, touched, replace=False) for _ in range(2 * args.epochs)))
    started = time.perf_counter()
    epochs = run(args.touched, args.base_after)
    seconds = epochs.seconds()
    after = [one for one in written(folder / "job")[len(loaded) :] if one]
    changes = [one for one in after if one < 2 * min(after)]
    return Measured(
        backend,
        keys,
        round(statistics.median(seconds) * 1000),
        round(max(seconds) * 1000),
        round(epochs.published[0] - started, 1),
        epochs.worker_bytes >> 20,
        epochs.all_bytes >> 20,
        round(args.touched / keys, 4),
        round(statistics.median(changes) / sum(loaded), 4),
        round(statistics.median(after) / sum(loaded), 4),
    )


def written(job_dir: Path) -> list[int]:
    """What each epoch has added to the state of the step."""
    steps = [one.steps.get("totals") for one in sorted(hw.checkpoints(job_dir), key=lambda one: one.epoch)]
    return [sum((step.changelog_bytes or {}).values()) for step in steps if step is not None]


def slowest_text(one: Measured) -> str:
    """How far the slowest epoch is from the others, in a line."""
    return f"{one.backend}, {one.keys:,} keys: the slowest epoch took {one.max_ms / one.p50_ms:.2f} times the median"


def shares_text(one: Measured) -> str:
    """What an epoch writes beside what it touches, in a line."""
    return (
        f"{one.backend}, {one.keys:,} keys: an epoch that touches {one.touched_share:.2%} of the keys writes "
        f"{one.written_share:.2%} of the state's bytes, {one.with_bases_share:.2%} with parts of bases"
    )


def main() -> None:
    """Measure every size, print the figures, and the ratio in memory."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--memory", type=int, nargs="*", default=[100_000, 1_000_000, 5_000_000], help="sizes in memory"
    )
    options.add_argument("--disk", type=int, nargs="*", default=[100_000, 20_000_000], help="sizes on disk")
    options.add_argument("--epochs", type=int, default=40)
    options.add_argument("--touched", type=int, default=10_000, help="keys an epoch")
    options.add_argument("--state-memory", default="512 MB", help="what a worker holds on disk")
    options.add_argument("--base-after", type=int, default=8, help="records after which a base is due")
    args = options.parse_args()
    medians = {}
    for backend, sizes in (("memory", args.memory), ("disk", args.disk)):
        again = sizes[:1] if len(sizes) > 1 else []
        found = [measured(backend, keys, args) for keys in [*sizes, *again]]
        if found:
            smallest = [one.p50_ms for one in found if one.keys == sizes[0]]
            medians[backend] = found[len(sizes) - 1].p50_ms, statistics.mean(smallest)
    for backend in sorted(medians):
        print_result(f"state_growth_{backend}", "smallest", *medians[backend])


def measured(backend: StateBackendName, keys: int, args: argparse.Namespace) -> Measured:
    """Measure a size in a folder of its own, and print it."""
    folder = Scratch("bench-growth")
    one = measure(folder.path, backend, keys, args)
    folder.close()
    print(json.dumps(vars(one)), flush=True)
    print(slowest_text(one), shares_text(one), sep="\n", flush=True)
    return one


if __name__ == "__main__":
    main()
