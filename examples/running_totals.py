"""Running totals: what each user spent on each day, order by order, and the final sum once the day is over.

    python examples/running_totals.py                  # in this process
    python examples/running_totals.py --engine spark   # the same job on Spark

Shows: value state, an event-time timer, a topic of the event log as source, Parquet files as sink.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import headwater as hw

DAY_MS = 24 * 3600 * 1000
ORDER = "user string, ts timestamp, amount double"
TOTAL = "user string, day date, total double, final boolean"


class Totals(hw.KeyedProcessFunction):
    """A total for each user and day."""

    total = hw.ValueState("double", default=0.0)

    def process(self, order: Any, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        """Add the order; the timer is the same for all orders of a day, so there is one."""
        self.total.set(self.total.get() + order.amount)
        ctx.timers.event_time(ctx.timestamp - ctx.timestamp % DAY_MS + DAY_MS - 1)
        yield {"user": order.user, "day": order.day, "total": self.total.get(), "final": False}

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        """The day is over, also for orders that were an hour late."""
        yield {"user": ctx.key.user, "day": ctx.key.day, "total": self.total.get(), "final": True}
        self.total.clear()


def build(folder: Path, engine: str) -> hw.Environment:
    """The job: FOLDER/log in, FOLDER/totals out."""
    env = hw.Environment("running-totals", job_dir=folder / "job", engine=engine)
    orders = env.source(hw.connectors.log(folder / "log", "orders"), ORDER, hw.Watermarks.bounded("ts", "1 h"))
    totals = orders.select("*", "cast(ts as date) as day").key_by("user", "day").process(Totals(), TOTAL)
    totals.sink(hw.connectors.files(folder / "totals"))
    return env


def write_orders(folder: Path) -> None:
    """Six orders on two days; ann's third one comes late."""
    rows = [
        ("ann", datetime(2026, 1, 1, 9, 0, tzinfo=UTC), 20.0),
        ("bob", datetime(2026, 1, 1, 17, 30, tzinfo=UTC), 4.5),
        ("ann", datetime(2026, 1, 1, 23, 50, tzinfo=UTC), 5.5),
        ("ann", datetime(2026, 1, 2, 0, 10, tzinfo=UTC), 100.0),
        ("ann", datetime(2026, 1, 1, 23, 55, tzinfo=UTC), 1.25),
        ("bob", datetime(2026, 1, 2, 12, 0, tzinfo=UTC), 8.0),
    ]
    schema = hw.Schema.of(ORDER).arrow
    topic = hw.EventLog(folder / "log").create_topic("orders", schema)
    topic.append(pa.table(list(zip(*rows, strict=True)), schema=schema))


def main(engine: str, folder: Path) -> list[dict[str, Any]]:
    """Write the orders, run the job over them, and read what it wrote."""
    write_orders(folder)
    build(folder, engine).run(bounded=True)
    rows: list[dict[str, Any]] = pq.read_table(folder / "totals").to_pylist()
    return sorted(rows, key=lambda row: tuple(row.values()))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--engine", choices=["local", "spark"], default="local")
    with tempfile.TemporaryDirectory() as temporary:
        for row in main(options.parse_args().engine, Path(temporary)):
            print(f"{row['user']}  {row['day']}  {row['total']:8.2f}  {'final' if row['final'] else ''}")
