"""The job that is killed while it writes to a database: all events to one table, the newest total of each user to another.

Run as a program: tables_job.py FOLDER LOG [STEP EPOCH] runs to the end, or kills its own process group at a step of an
epoch. The database is in the environment, as DATABASE.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from crash import kill

import headwater as hw

SCHEMA = "user string, amount long"
ROWS, ROWS_PER_EPOCH = 600, 100


class Totals(hw.KeyedProcessFunction):
    """A running total of each user."""

    total = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.total.set(self.total.get() + event.amount)
        yield {"user": event.user, "total": self.total.get()}


def events() -> list[tuple[str, int]]:
    return [(f"u{n % 7}", n) for n in range(ROWS)]


def totals() -> dict[str, int]:
    """What is in the second table in the end."""
    found: dict[str, int] = {}
    for user, amount in events():
        found[user] = found.get(user, 0) + amount
    return found


def write_events(log: Path) -> None:
    topic = hw.EventLog(log).create_topic("events", hw.Schema.of(SCHEMA).arrow)
    users, amounts = zip(*events(), strict=True)
    topic.append(pa.table({"user": users, "amount": amounts}), partition=0)


def build(folder: Path, log: Path, **settings: Any) -> hw.Environment:
    env = hw.Environment("tables", max_rows_per_epoch=ROWS_PER_EPOCH, job_dir=folder / "job", **settings)
    rows = env.source(hw.connectors.log(log, "events"), SCHEMA)
    rows.sink(hw.connectors.postgres("env:DATABASE", "events", create=True), name="events")
    by_user = rows.key_by("user").process(Totals(), "user string, total long", name="totals")
    newest = hw.connectors.postgres("env:DATABASE", "totals", mode="upsert", key="user", create=True)
    by_user.sink(newest, name="newest")
    return env


def main() -> None:
    folder, log = Path(sys.argv[1]), Path(sys.argv[2])
    kill_at = (hw.EpochStep[sys.argv[3]], int(sys.argv[4])) if len(sys.argv) > 3 else None

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        if (step, epoch) == kill_at:
            kill()

    build(folder, log).run(bounded=True, on_step=on_step)


if __name__ == "__main__":
    main()
