"""Alerts: a sensor has been silent, by the time of the readings or, when no reading comes at all, by the clock.

    python examples/alerts.py                  # in this process
    python examples/alerts.py --engine spark   # the same job on Spark

Shows: event-time and processing-time timers in one function, and a job that goes on until it is stopped. Event time moves
only with the readings: once all sensors are silent it stands still, and only processing time can notice.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import headwater as hw

SILENT_MS = 10 * 60 * 1000
"""By event time: ten minutes in which others reported."""
STALLED_MS = 1000
"""By the clock: short, so that the example is; minutes in earnest."""
READING = "sensor string, ts timestamp, celsius double"
ALERT = "sensor string, last_seen timestamp, noticed_by string"


class SilenceAlert(hw.KeyedProcessFunction):
    """Keeps one timer of each kind ahead of the last reading; the one that fires first takes the other along."""

    silent_at = hw.ValueState("long")
    stalled_at = hw.ValueState("long")

    def process(self, reading: Any, ctx: hw.Context) -> None:
        """Set both timers anew."""
        silent_at = max(self.silent_at.get() or 0, ctx.timestamp + SILENT_MS)
        self._disarm(ctx)
        self.silent_at.set(silent_at)
        self.stalled_at.set(ctx.now + STALLED_MS)
        ctx.timers.event_time(silent_at)
        ctx.timers.processing_time(ctx.now + STALLED_MS)

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        """One alert until the sensor reports again."""
        last_seen = datetime.fromtimestamp((self.silent_at.get() - SILENT_MS) / 1000, UTC)
        self._disarm(ctx)
        yield {"sensor": ctx.key, "last_seen": last_seen, "noticed_by": timer.domain}

    def _disarm(self, ctx: hw.Context) -> None:
        if self.silent_at.get() is not None:
            ctx.timers.delete_event_time(self.silent_at.get())
            ctx.timers.delete_processing_time(self.stalled_at.get())
        self.silent_at.clear()
        self.stalled_at.clear()


def write_readings(folder: Path) -> None:
    """A reading a minute from each of three sensors for half an hour; the one in the attic stops after five minutes."""
    noon = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
    rows = [
        (sensor, noon + timedelta(minutes=minute), 20.0)
        for minute in range(30)
        for sensor in ("attic", "cellar", "garden")
        if sensor != "attic" or minute <= 5
    ]
    schema = hw.Schema.of(READING).arrow
    topic = hw.EventLog(folder / "log").create_topic("readings", schema)
    topic.append(pa.table(list(zip(*rows, strict=True)), schema=schema))


def main(engine: str, folder: Path, *, alerts: int = 3, limit_s: float = 120.0) -> list[Any]:
    """Run the job until it has raised so many alerts."""
    write_readings(folder)
    env = hw.Environment("alerts", checkpoint_interval="100 ms", engine=engine)
    readings = env.source(hw.connectors.log(folder / "log", "readings"), READING, hw.Watermarks.monotonous("ts"))
    raised = hw.connectors.memory()
    readings.key_by("sensor").process(SilenceAlert(), ALERT).sink(raised)
    job = env.start(bounded=False)
    until = time.monotonic() + limit_s
    while len(raised.rows) < alerts and time.monotonic() < until and not job.wait(0.05):
        pass
    job.stop()
    return sorted(raised.rows)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--engine", choices=["local", "spark"], default="local")
    with tempfile.TemporaryDirectory() as temporary:
        for alert in main(options.parse_args().engine, Path(temporary)):
            print(f"{alert.sensor}: silent since {alert.last_seen:%H:%M}, noticed by {alert.noticed_by} time")
