"""The job that the chaos suite torments: windows with lateness, timers, an interval join and five file sinks.

Run as a program it is the driver: `python -m tests.chaos.job FOLDER DISK` reads FOLDER/log without end, and with
`--bounded` to its end; job folder and outputs are in DISK. What happens is told on standard output, a line of JSON each.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.chaos.events import BOUND_MS, DEADLINE_MS, JOIN_MS, LATENESS_MS, REVENUE_MS, WINDOW_MS

import headwater as hw

ORDER = "id long, ts timestamp, user string, kind string, amount long, of long"
PAYMENT = "id long, ts timestamp, of long, paid long"
LATE = hw.OutputTag("late", "id long, user string, amount long, window_end timestamp")

_SPARK = {
    # Two executors, each a process of its own that can be killed, with one core.
    "spark.master": "local-cluster[2,1,1024]",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    # A cluster gives an application up when its executors keep dying; here they are meant to.
    "spark.deploy.maxExecutorRetries": "-1",
    # An executor that stands still for so long is taken for dead; it wakes up as a ghost that goes on writing.
    "spark.executor.heartbeatInterval": "1s",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "10s",
    "spark.network.timeoutInterval": "2s",
}


class Orders(hw.KeyedProcessFunction):
    """Numbers the rows of each user, and tells when an order is due that was not cancelled."""

    n = hw.ValueState("long", default=0)
    waiting = hw.MapState("long", "long")
    """Orders that are not due yet, with the time when they are."""

    def process(self, event: Any, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        self.n.set(self.n.get() + 1)
        if event.kind == "cancel":
            at = self.waiting.get(event.of)
            if at is not None:
                self.waiting.remove(event.of)
                if at not in self.waiting.values():
                    ctx.timers.delete_event_time(at)
        else:
            at = ctx.timestamp + DEADLINE_MS
            self.waiting.put(event.id, at)
            ctx.timers.event_time(at)
        yield {"what": "seen", "id": event.id, "user": event.user, "number": self.n.get()}

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        for order, at in sorted(self.waiting.items()):
            if at == timer.timestamp:
                self.waiting.remove(order)
                yield {"what": "due", "id": order, "user": ctx.key, "number": at}


def build(folder: Path, disk: Path, **settings: Any) -> hw.Environment:
    """The job over FOLDER/log, with its job folder and outputs in DISK."""
    env = hw.Environment("chaos", job_dir=disk / "job", **{"max_rows_per_epoch": 2_000, **settings})
    by_time = hw.Watermarks.bounded("ts", f"{BOUND_MS} ms")
    orders = env.source(hw.connectors.log(folder / "log", "orders"), ORDER, by_time, name="orders")
    payments = env.source(hw.connectors.log(folder / "log", "payments"), PAYMENT, by_time, name="payments")

    windows = orders.key_by("user").window(hw.tumbling(f"{WINDOW_MS} ms")).allow_lateness(f"{LATENESS_MS} ms")
    totals = (
        windows.late_to(LATE)
        .panes("accumulating", info=True)
        .agg(n=hw.count(), total=hw.sum("amount"))
        .with_uid("totals")
    )
    totals.sink(hw.connectors.files(disk / "windows"), name="windows-out")
    totals.side_output(LATE).sink(hw.connectors.files(disk / "late"), name="late-out")

    followed = orders.key_by("user").process(Orders(), "what string, id long, user string, number long", name="follow")
    followed.sink(hw.connectors.files(disk / "followed", format="json"), name="followed-out")

    asked = orders.where("kind = 'order'").select("id", "ts", "user").key_by("id")
    pairs = asked.interval_join(
        payments.key_by("of"), between=(f"{JOIN_MS[0]} ms", f"{JOIN_MS[1]} ms"), suffix="_paid"
    ).select("id", "user", "id_paid", "paid")
    pairs.sink(hw.connectors.files(disk / "pairs"), name="pairs-out")

    per_user = pairs.key_by("user").window(hw.tumbling(f"{REVENUE_MS} ms"))
    revenue = per_user.agg(pairs=hw.count(), paid=hw.sum("paid")).with_uid("revenue")
    revenue.sink(hw.connectors.files(disk / "revenue", format="json"), name="revenue-out")
    return env


def drive(build: Callable[..., hw.Environment]) -> int:
    """The driver program: it makes the job with FOLDER, DISK and settings, runs it, and tells what happens."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("disk", type=Path)
    options.add_argument("--bounded", action="store_true")
    args = options.parse_args()
    parent = os.getppid()
    restart = hw.restart.exponential(initial="500 ms", max="4 s", reset_after="30 s", attempts=20)
    env = build(args.folder, args.disk, restart=restart, spark_config=_SPARK)
    try:
        job = env.start(bounded=args.bounded, on_step=lambda step, epoch: _tell(step=step.name, epoch=epoch))
        told = len(job.status().restarts)
        while not job.wait(0.1):
            reasons = job.status().restarts
            for reason in reasons[told:]:
                _tell(restart=reason.error, message=reason.message)
            told = len(reasons)
            if os.getppid() != parent:
                return 1  # nobody is left to read what is told
    except hw.HeadwaterError as error:
        _tell(failed=type(error).__name__, message=str(error))
        return 1
    _tell(ended=job.status().state)
    return 0


def _tell(**facts: Any) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(drive(build))
