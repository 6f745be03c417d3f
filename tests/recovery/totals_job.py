"""The job that recovery tests kill: two chained keyed steps with timers, two file sinks, small epochs.

Run as a program: totals_job.py FOLDER LOG [STEP EPOCH] runs to the end of what there is, or kills its own process group at a
step of an epoch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from crash import kill

import headwater as hw

SCHEMA = "user string, ts timestamp, amount double"
ROWS = 1200
ROWS_PER_EPOCH = 150
EPOCHS = ROWS // ROWS_PER_EPOCH


class Totals(hw.KeyedProcessFunction):
    """A running count and total per user, and a row of its own 100 s after each tenth: a longer time than an epoch's."""

    n = hw.ValueState("long", default=0)
    total = hw.ValueState("double", default=0.0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.n.set(self.n.get() + 1)
        self.total.set(self.total.get() + event.amount)
        if self.n.get() % 10 == 0:
            ctx.timers.event_time(ctx.timestamp + 100_000)
        yield {"user": event.user, "n": self.n.get(), "total": self.total.get()}

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield {"user": ctx.key, "n": -self.n.get(), "total": self.total.get()}


class PerInitial(hw.KeyedProcessFunction):
    """The second level: the last totals of the users with one initial, in a map."""

    last = hw.MapState("string", "double")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.last.put(event.user, event.total)
        yield {"initial": ctx.key, "users": len(self.last.keys()), "total": sum(self.last.values())}


def write_events(log: Path, start: int = 0, end: int = ROWS) -> None:
    """Rows by their numbers. Amounts are multiples of a quarter, so that sums are exact in any order."""
    topic = hw.EventLog(log).create_topic("orders", SCHEMA, partitions=2, exist_ok=True)
    for first in range(start, end, 100):
        index = range(first, first + 100)
        table = pa.table(
            {
                "user": [f"{'abc'[i % 3]}{i * 7 % 20}" for i in index],
                "ts": pa.array([1_700_000_000_000_000 + i * 500_000 for i in index], pa.timestamp("us", "UTC")),
                "amount": [i % 17 / 4 for i in index],
            }
        )
        topic.append(table, partition=first // 100 % 2)


def build(folder: Path, *, log: Path, totals: Totals | None = None, **settings: Any) -> hw.Environment:
    settings = {"max_rows_per_epoch": ROWS_PER_EPOCH, "job_dir": folder / "job", **settings}
    env = hw.Environment("totals", **settings)
    orders = env.source(hw.connectors.log(log, "orders"), SCHEMA, hw.Watermarks.bounded("ts", "5 s"))
    counted = orders.key_by("user").process(totals or Totals(), "user string, n long, total double", name="totals")
    counted.sink(hw.connectors.files(folder / "totals")).with_uid("totals-out")
    initials = counted.where("n > 0").key_by(lambda r: r.user[0], type="string")
    per_initial = initials.process(PerInitial(), "initial string, users int, total double")
    per_initial.sink(hw.connectors.files(folder / "initials", format="json")).with_uid("initials-out")
    return env


def published(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Every visible file with its rows, in order."""
    import json

    import pyarrow.parquet as pq

    files: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((folder / "totals").glob("*.parquet")):
        files[path.name] = pq.read_table(path).to_pylist()
    for path in sorted((folder / "initials").glob("*.jsonl")):
        files[path.name] = [json.loads(line) for line in path.read_text().splitlines()]
    return files


def main() -> None:
    folder, log = Path(sys.argv[1]), Path(sys.argv[2])
    kill_at = (hw.EpochStep[sys.argv[3]], int(sys.argv[4])) if len(sys.argv) > 3 else None

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        print(step.name, epoch, flush=True)
        if (step, epoch) == kill_at:
            kill()

    build(folder, log=log).run(on_step=on_step, bounded=True)


if __name__ == "__main__":
    main()
