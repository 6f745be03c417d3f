"""One subtask of two is a hundred times slower than the other: aligned beside unaligned epochs, on Spark.

A job numbers the rows of each key and closes each second of event time with a timer. Rows of one key take long.

- backlog: many rows wait to be read. Aligned epochs take as long as the slow subtask needs for its share of them,
  unaligned ones about the checkpoint interval of a second.
- wave: rows come at a rate that is easy for both, and for two seconds at ten times the rate, which is four seconds of
  work for the slow subtask. What is measured is how late the other subtask's results are, of rows and of timers, from
  the wave on, beside the promptest result of the run.

Both sides are checked: no row is missing, doubled or out of its key's order. The first epoch, in which Python workers
start, does not count.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

import headwater as hw
from headwater.connectors.contract import Staged, read_staged
from headwater.state.keys import DEFAULT_KEY_GROUPS, key_groups, subtasks_of

KEYS, SLOW_KEY, SLOW_MS = 20, 0, 20
RATE, WAVE_RATE, WAVE_S = 200, 2_000, 2
SCHEMA = "k long, n long, made_ms long"
OUT = "k long, n long, number long, made_ms long"

Given = list[tuple[int, tuple[int, int, int]]]
"""Rows, each with the millisecond from which it can be read."""


class NumberSlowly(hw.KeyedProcessFunction):
    """The number of each row in its key; and a row without a number when a second is over."""

    seen = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        if event.k == SLOW_KEY:
            time.sleep(SLOW_MS / 1000)
        self.seen.set(self.seen.get() + 1)
        ctx.timers.event_time(event.made_ms // 1000 * 1000 + 999)
        yield event.k, event.n, self.seen.get(), event.made_ms

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield ctx.key, -1, 0, timer.timestamp


class Arrivals(hw.connectors.Sink):
    """Every table of rows with the time at which it was published, in seconds."""

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
    """How long each epoch took until all of its output was staged; pass it as `on_step`."""

    def __init__(self) -> None:
        self._planned, self.seconds = 0.0, list[float]()

    def __call__(self, step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.PLANNED:
            self._planned = time.perf_counter()
        elif step is hw.EpochStep.STAGED:
            self.seconds.append(time.perf_counter() - self._planned)


def run(given: Given, **settings: Any) -> tuple[list[float], Arrivals]:
    """The durations of the epochs after the first, and what was published when."""
    env = hw.Environment("bench", **settings)
    arrivals, durations = Arrivals(), EpochDurations()
    source = env.source(hw.testing.TimedRows([given], SCHEMA), SCHEMA, hw.Watermarks.monotonous("made_ms"))
    source.key_by("k").process(NumberSlowly(), OUT).sink(arrivals)
    env.run(bounded=False, on_step=durations)
    check(arrivals, given)
    return durations.seconds[1:], arrivals


def check(arrivals: Arrivals, given: Given) -> None:
    """Every row once, in the order of its key, with its number in it; and every timer."""
    found = [row for _, table in arrivals.found for row in table.to_pylist()]
    for key in range(KEYS):
        mine = [row for row in found if row["k"] == key and row["n"] >= 0]
        assert [row["n"] for row in mine] == [n for _, (k, n, _) in given if k == key], f"rows of key {key}"
        assert [row["number"] for row in mine] == list(range(1, len(mine) + 1)), f"numbers of key {key}"
    assert len(found) - len(given) == len({(k, made_ms // 1000) for _, (k, _, made_ms) in given}), "timers"


def backlog(rows: int) -> Given:
    """All there from the start."""
    return [(0, (n % KEYS, n, n)) for n in range(rows)]


def wave(seconds: int, at_s: int) -> Given:
    """Few rows a second, and then, for a while, many."""
    rates = [WAVE_RATE if at_s <= second < at_s + WAVE_S else RATE for second in range(seconds)]
    times = [1000 * second + i * 1000 // rate for second, rate in enumerate(rates) for i in range(rate)]
    return [(at, (n % KEYS, n, at)) for n, at in enumerate(times)]


def delays(arrivals: Arrivals, from_ms: int) -> tuple[list[float], list[float]]:
    """How much later than the promptest of all the results of the fast subtask were, for rows and for timers."""
    owners = subtasks_of(key_groups(pa.array(range(KEYS)), DEFAULT_KEY_GROUPS), DEFAULT_KEY_GROUPS, 2)
    late: tuple[list[float], list[float]] = ([], [])
    promptest = min(at - max(table["made_ms"].to_pylist()) / 1000 for at, table in arrivals.found)
    for at, table in arrivals.found:
        for row in table.to_pylist():
            if owners[row["k"]] != owners[SLOW_KEY] and row["made_ms"] >= from_ms:
                late[row["n"] < 0].append(at - row["made_ms"] / 1000 - promptest)
    return late


def shown(seconds: list[float]) -> dict[str, int]:
    """Median and maximum, in milliseconds."""
    return {"median": round(statistics.median(seconds) * 1000), "max": round(max(seconds) * 1000)}


def main() -> None:
    """Measure both sides of both and print them."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--backlog", type=int, default=20_000, help="rows of the backlog")
    options.add_argument("--seconds", type=int, default=60, help="how long rows come, with the wave after two thirds")
    args = options.parse_args()
    wave_s = args.seconds * 2 // 3
    modes: dict[str, dict[str, Any]] = {"aligned": {}, "unaligned": {"unaligned": True}}
    result: dict[str, Any] = {"bench": "unaligned", "backlog_epoch_ms": {}, "wave_row_ms": {}, "wave_timer_ms": {}}
    for mode, settings in modes.items():
        most = args.backlog // 4
        durations, _ = run(backlog(args.backlog), max_rows_per_epoch=most, **settings)
        result["backlog_epoch_ms"][mode] = shown(durations)
        _, arrivals = run(wave(args.seconds, wave_s), **settings)
        for name, late in zip(("wave_row_ms", "wave_timer_ms"), delays(arrivals, wave_s * 1000), strict=True):
            result[name][mode] = shown(late)
    medians = [result["backlog_epoch_ms"][mode]["median"] for mode in modes]
    print(json.dumps({**result, "ratio": round(medians[0] / medians[1], 2)}))


if __name__ == "__main__":
    main()
