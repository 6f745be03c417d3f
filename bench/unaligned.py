"""One subtask becomes a hundred times slower for a while: how long epochs take, and how late the results of the other are.

A job reads rows as they come, counts them by key, and closes every second of each key with a timer. During a burst each row
of one key takes 20 ms. Aligned epochs take as long as that subtask; unaligned ones about the checkpoint interval, and what
the other subtask has to say, its timers too, is not held up. Both sides are checked: no row is missing, doubled or out of
its key's order.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import headwater as hw
from headwater.connectors.contract import Staged, read_staged
from headwater.state.keys import DEFAULT_KEY_GROUPS, key_groups, subtasks_of

KEYS, SLOW_KEY, SLOW_S = 20, 0, 0.02
SCHEMA = "k long, n long, made_ms long, is_slow boolean"
OUT = "k long, n long, number long, made_ms long"


class CountSlowly(hw.KeyedProcessFunction):
    """The number of each row in its key; a row without a number when a second is over."""

    seen = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        if event.is_slow:
            time.sleep(SLOW_S)
        self.seen.set(self.seen.get() + 1)
        ctx.timers.event_time(event.made_ms // 1000 * 1000 + 999)
        yield event.k, event.n, self.seen.get(), event.made_ms

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield ctx.key, -1, 0, timer.timestamp


class Arrivals(hw.connectors.Sink):
    """Every row with the time at which it was published, in seconds."""

    def __init__(self) -> None:
        self.found: list[tuple[float, pa.Table]] = []

    def __getstate__(self) -> dict[str, Any]:
        return {"found": []}

    def describe(self) -> str:
        return "arrivals"

    def open(self, uid: str, job_id: str, schema: hw.Schema, *, resumed: bool) -> None:
        """Nothing to open."""

    def publish(self, epoch: int, files: list[Staged]) -> None:
        self.found += [(time.time(), read_staged(file)) for file in files]


class EpochDurations:
    """How long each epoch took until its output was staged; pass it as `on_step`."""

    def __init__(self) -> None:
        self._planned, self.seconds = 0.0, list[float]()

    def __call__(self, step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.PLANNED:
            self._planned = time.perf_counter()
        elif step is hw.EpochStep.STAGED:
            self.seconds.append(time.perf_counter() - self._planned)


def rows(seconds: int, rate: int, burst: range) -> list[tuple[int, Any]]:
    """Rows with the millisecond from which they can be read."""
    found = []
    for n in range(seconds * rate):
        at, key = n * 1000 // rate, n % KEYS
        found.append((at, (key, n, at, key == SLOW_KEY and at // 1000 in burst)))
    return found


def measured(given: list[tuple[int, Any]], folder: Path, burst: range, **settings: Any) -> dict[str, Any]:
    """Run the job; its durations and delays from the burst on, in milliseconds."""
    env = hw.Environment("bench", job_dir=folder, checkpoint_interval="1 s", **settings)
    sink, durations = Arrivals(), EpochDurations()
    source = env.source(hw.testing.TimedRows([given], SCHEMA), SCHEMA, hw.Watermarks.monotonous("made_ms"))
    source.key_by("k").process(CountSlowly(), OUT).sink(sink)
    warm_up: list[int] = []

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        durations(step, epoch)
        position = job.status().positions.get("source", {}).get("0", 0) if started else 0
        if not warm_up and position and given[position - 1][0] // 1000 >= burst.start - 1:
            warm_up.append(len(durations.seconds))

    started: list[bool] = []
    job = env.start(bounded=False, on_step=on_step)
    started.append(True)
    job.wait()
    check(sink, given)
    results, timers = delays(sink, burst)
    return {"epoch_ms": shown(durations.seconds[warm_up[0] :]), "result_ms": shown(results), "timer_ms": shown(timers)}


def check(sink: Arrivals, given: list[tuple[int, Any]]) -> None:
    """Every row once, in the order of its key, with its number in it."""
    table = pa.concat_tables([table for _, table in sink.found])
    counted = [row for row in table.to_pylist() if row["n"] >= 0]
    for key in range(KEYS):
        mine = [row for row in counted if row["k"] == key]
        assert [row["n"] for row in mine] == [row[1] for _, row in given if row[0] == key], f"rows of key {key}"
        assert [row["number"] for row in mine] == list(range(1, len(mine) + 1)), f"numbers of key {key}"
    assert len(table) - len(counted) == KEYS * (given[-1][0] // 1000 + 1), "timers"


def delays(sink: Arrivals, burst: range) -> tuple[list[float], list[float]]:
    """How much later than the promptest result those of the fast subtask were: rows and timers of the burst's time."""
    subtasks = subtasks_of(key_groups(pa.array(range(KEYS)), DEFAULT_KEY_GROUPS), DEFAULT_KEY_GROUPS, 2)
    fast = np.flatnonzero(subtasks != subtasks[SLOW_KEY])
    found: tuple[list[float], list[float]] = ([], [])
    promptest = min(at - table["made_ms"][-1].as_py() / 1000 for at, table in sink.found)
    for at, table in sink.found:
        for row in table.to_pylist():
            if row["k"] in fast and row["made_ms"] // 1000 in burst:
                found[row["n"] < 0].append(at - row["made_ms"] / 1000 - promptest)
    return found


def shown(seconds: list[float]) -> dict[str, int]:
    """Median and maximum, in milliseconds."""
    return {"median": round(statistics.median(seconds) * 1000), "max": round(max(seconds) * 1000)}


def main() -> None:
    """Measure both sides and print them."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=int, default=40, help="how long rows come")
    options.add_argument("--rate", type=int, default=2_000, help="rows a second")
    options.add_argument("--burst", type=int, default=3, help="seconds in which the slow key is slow")
    args = options.parse_args()
    burst = range(args.seconds // 2, args.seconds // 2 + args.burst)
    given = rows(args.seconds, args.rate, burst)
    folder = Path(tempfile.mkdtemp(prefix="bench-unaligned-"))
    try:
        aligned = measured(given, folder / "aligned", burst)
        unaligned = measured(given, folder / "unaligned", burst, unaligned=True)
        ratio = round(aligned["epoch_ms"]["max"] / unaligned["epoch_ms"]["max"], 2)
        print(json.dumps({"bench": "unaligned", "aligned": aligned, "unaligned": unaligned, "ratio_of_max": ratio}))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
