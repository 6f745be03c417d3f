"""The job between real systems: a Kafka topic in; windows and running totals into Kafka topics and PostgreSQL tables.

Run as a program it is the driver, as `tests.chaos.job` is; FOLDER/ends.json says where the systems are.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.chaos.ends.events import BOUND_MS, WINDOW_MS
from tests.chaos.job import drive

import headwater as hw

_TIMEOUT = "20 s"


class Totals(hw.KeyedProcessFunction):
    """A user's orders so far, after each."""

    n = hw.ValueState("long", default=0)
    total = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        self.n.set(self.n.get() + 1)
        self.total.set(self.total.get() + event.amount)
        yield {"user": event.user, "n": self.n.get(), "total": self.total.get()}


def build(folder: Path, disk: Path, **settings: Any) -> hw.Environment:
    """The job, with its folder in DISK."""
    ends = json.loads((folder / "ends.json").read_text())
    servers, database = ends["kafka"], ends["postgres"]
    env = hw.Environment("ends", job_dir=disk / "job", **{"max_rows_per_epoch": ends["rows_per_epoch"], **settings})
    source = hw.connectors.kafka("orders", servers, metadata={"user": "key"}, group="chaos", timeout=_TIMEOUT)
    orders = env.source(
        source, "user string, amount long, ts long", hw.Watermarks.bounded("ts", f"{BOUND_MS} ms"), name="orders"
    ).key_by("user")
    totals = orders.process(Totals(), "user string, n long, total long", name="totals")
    windows = (
        orders.window(hw.tumbling(f"{WINDOW_MS} ms")).agg(n=hw.count(), total=hw.sum("amount")).with_uid("windows")
    )
    totals.sink(hw.connectors.kafka_sink("totals", servers, key="user", timeout=_TIMEOUT), name="totals-topic")
    windows.sink(hw.connectors.kafka_sink("windows", servers, key="user", timeout=_TIMEOUT), name="windows-topic")
    totals.sink(hw.connectors.postgres(database, "totals", mode="upsert", key="user"), name="totals-table")
    windows.sink(hw.connectors.postgres(database, "windows"), name="windows-table")
    return env


if __name__ == "__main__":
    sys.exit(drive(build))
