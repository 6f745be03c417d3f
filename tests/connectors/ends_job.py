"""The job that is killed between real systems: events of a Kafka topic go on to another and to a table of a database, and
the newest total of each user to a second table.

Run as a program: ends_job.py FOLDER SERVERS TOPIC kills its own process group when the first output has epoch 1. What comes
out is in TOPIC-out. The database is in the environment, as DATABASE.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.recovery.crash import kill

import headwater as hw

SCHEMA = "user string, amount long"
ROWS, ROWS_PER_EPOCH = 400, 100


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


def build(folder: Path, servers: str, topic: str, **settings: Any) -> hw.Environment:
    env = hw.Environment("ends", max_rows_per_epoch=ROWS_PER_EPOCH, job_dir=folder / "job", **settings)
    rows = env.source(hw.connectors.kafka(topic, servers, group=topic), SCHEMA, name="events")
    rows.sink(hw.connectors.kafka_sink(f"{topic}-out", servers, key="user"), name="sent")
    rows.sink(hw.connectors.postgres("env:DATABASE", "events", create=True), name="kept")
    by_user = rows.key_by("user").process(Totals(), "user string, total long", name="totals")
    newest = hw.connectors.postgres("env:DATABASE", "totals", mode="upsert", key="user", create=True)
    by_user.sink(newest, name="newest")
    return env


def main() -> None:
    def on_step(step: hw.EpochStep, epoch: int) -> None:
        if (step, epoch) == (hw.EpochStep.PUBLISHING, 1):
            kill()

    build(Path(sys.argv[1]), *sys.argv[2:]).run(bounded=True, on_step=on_step)


if __name__ == "__main__":
    main()
