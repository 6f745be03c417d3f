"""How cost grows with size: what a step does at three sizes each, by CPU time, and the exponent of its growth.

An exponent of 1 is linear: four times as much costs four times as much. The last line has the largest one as `ratio`.
Steps run by hand, without an engine, in this process; the best of some rounds counts.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from parts.growing_windows import ROWS, SCHEMA, Run, Step, late_in_large, late_sessions, sessions, windows

import headwater as hw
from headwater.clock.timers import TimerQueue
from headwater.connectors.files.lookout import Lookout
from headwater.data.batch import MIN_TIMESTAMP, Batch
from headwater.functions import EVENT
from headwater.operators.contract import StepTime, TwoInputs
from headwater.plan.plan import plan_job
from headwater.state import changelog
from headwater.state.changelog import MemoryRecordStore
from headwater.state.disk.backend import DiskBackend
from headwater.state.disk.bound import Bound
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor
from headwater.state.memory_backend import MEMORY
from headwater.state.spread import BY_KEY
from headwater.task.host import LevelHost
from headwater.task.outlet import Outlet
from headwater.task.payload import EpochFacts
from headwater.testing import Harness

ROUNDS = 2
DISK_BYTES = 16 << 20
"""The bound of state on disk in memory: the largest does not fit."""


@dataclass(frozen=True)
class Case:
    """Work of a size."""

    name: str
    sizes: tuple[int, int, int]
    prepare: Callable[[int], Run]
    """Gives what is measured at a size; what this does itself is not."""


def moved_timers(*, on_disk: bool) -> Callable[[int], Run]:
    """2,000 timers that are moved, so many times."""

    def prepare(epochs: int) -> Run:
        def run() -> None:
            with backend(on_disk=on_disk) as opened:
                queue = TimerQueue("step", EVENT, pa.int64(), BY_KEY, opened.timers(pa.int64()))
                for epoch in range(epochs):
                    for key in range(2_000):
                        queue.delete(1 << 40 | epoch, key)
                        queue.register(1 << 40 | (epoch + 1), key)

        return run

    return prepare


def keys_on_disk(count: int) -> Run:
    """So many keys, written 10,000 an epoch; then some that are there are read and written. Steps fetch a batch's keys."""

    def run() -> None:
        with backend(on_disk=True) as opened:
            cursor = Cursor()
            entries, tables = open_states([hw.ValueState("it", "long")], "step", pa.int64(), cursor, backend=opened)
            state: Any = tables["it"]
            for start in range(0, count, 10_000):
                for key in entries.fetch(range(start, start + 10_000)):
                    cursor.entry = entries.entry(key)
                    state.set(key)
                state.changes()
            for key in entries.fetch(range(0, count, 97)):
                cursor.entry = entries.entry(key)
                state.set(state.get() + 1)
            state.changes()

    return run


@contextmanager
def backend(*, on_disk: bool) -> Any:
    """A backend in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        opened: Any = DiskBackend("step", Path(folder), Bound(DISK_BYTES)) if on_disk else MEMORY
        try:
            yield opened
        finally:
            opened.close()


def fused(build: Callable[[Any, int], Any]) -> Callable[[int], Run]:
    """Rows through so many fused steps behind a source."""

    def prepare(count: int) -> Run:
        env = hw.Environment("growth", engine="local", parallelism=1)
        build(env.from_rows([], SCHEMA), count).sink(hw.connectors.memory(), name="out")
        plan = plan_job(env.graph, 1, 128)
        outlet = Outlet.behind(plan, plan.sources()[0])
        keys = np.arange(ROWS)
        batch = Batch(pa.table({"k": keys, "v": keys}).cast(SCHEMA.arrow), keys)

        def run() -> None:
            outlet.begin(EpochFacts(0, 0), "split")
            outlet.emit(None, batch)
            outlet.finish(0)

        return run

    return prepare


def diamonds(stream: Any, count: int) -> Any:
    """Two branches that meet, again and again."""
    for number in range(2, 2 + count):
        stream = stream.where(f"k % {number} = 0").union(stream.where(f"k % {number} <> 0"))
    return stream


def maps(stream: Any, count: int) -> Any:
    """Steps one behind the other."""
    for _ in range(count):
        stream = stream.map(lambda row: row)
    return stream


class _Count(hw.ProcessWindowFunction):
    """Tells how many rows a window has."""

    def process(self, elements: Any, ctx: Any) -> Any:
        yield (len(elements),)


def count_windows(size: int) -> Run:
    """1,000 rows into a sliding count window of so many, with a function."""
    step = Step(lambda s: s.key_by("k").window(hw.count(size, 1)).process(_Count(), "n long"))
    step.process(np.zeros(size), np.zeros(size))
    return lambda: step.process(np.zeros(1_000), np.zeros(1_000))


def ends_of_state(size: int) -> Run:
    """The first key of a map and the last element of a list of so many, 10,000 times."""
    cursor = Cursor()
    declared = [hw.MapState("map", "long", "long"), hw.ListState("list", "long")]
    entries, tables = open_states(declared, "step", pa.int64(), cursor)
    cursor.entry = entries.entry(1)
    in_map: Any = tables["map"]
    in_list: Any = tables["list"]
    in_map.put_all({key: key for key in range(size)})
    in_list.add_all(range(size))

    def run() -> None:
        for _ in range(10_000):
            next(iter(in_map))
            in_list.last()

    return run


def idle_looks(files: int) -> Run:
    """Looks at a folder of so many files in which nothing is new."""
    place = tempfile.TemporaryDirectory(prefix="headwater-bench-")
    folder, clock = Path(place.name, "in"), Path(place.name, "clock")
    folder.mkdir()
    for number in range(files):
        (folder / f"{number}.csv").touch()
    os.utime(folder, (1_000, 1_000))
    lookout = Lookout(folder, "*.csv", "modified", 0)
    known = {file.path for file in lookout.look((), clock).settled}

    def run() -> None:
        for _ in range(10_000):
            lookout.look(known, clock)
        place.cleanup()

    return run


def hot_key(rows: int) -> Run:
    """So many rows of one key on one side of a regular join, and 50 on the other that meet them all."""
    env = hw.Environment("growth", engine="local", parallelism=1)
    left, right = (env.from_rows([], SCHEMA, name=name).key_by("k") for name in ("left", "right"))
    left.join_regular(right).sink(hw.connectors.memory(), name="out")
    (entry,) = LevelHost(plan_job(env.graph, 1, 128), 1, 0)._entries
    operator: Any = entry.operator
    step_time = StepTime(MIN_TIMESTAMP, 0)

    def batch(count: int) -> Batch:
        keys = np.zeros(count, np.int64)
        return Batch(pa.table({"k": keys, "v": keys}).cast(SCHEMA.arrow), keys)

    operator.process_two(TwoInputs(batch(rows), None), step_time, lambda *_: None)
    return lambda: operator.process_two(TwoInputs(None, batch(50)), step_time, lambda *_: None)


class _Total(hw.KeyedProcessFunction):
    """A sum for each key."""

    total = hw.ValueState("long", default=0)

    def process(self, row: Any, ctx: hw.Context) -> Any:
        self.total.set(self.total.get() + row.v)
        yield row


def records_and_bases(records: int) -> Run:
    """So many epochs of 20 rows over 20,000 keys, with a base due after every 100 of their records."""
    env = hw.Environment("growth", engine="local", parallelism=1)
    env.from_rows([], SCHEMA, name="rows").key_by("k").process(_Total(), SCHEMA).sink(
        hw.connectors.memory(), name="out"
    )
    plan = plan_job(env.graph, 1, 128)
    outlet = Outlet.behind(plan, plan.sources()[0])
    store = MemoryRecordStore()
    host = LevelHost(plan, 1, 0)

    def epoch(number: int, keys: Any) -> None:
        head = changelog.catch_up(host, store, "here")
        outlet.begin(EpochFacts(number, number), "rows/0")
        table = pa.table({"k": keys, "v": keys}).cast(SCHEMA.arrow)
        outlet.emit(None, Batch(table, np.full(len(keys), number)))
        host.run([data for _, data in outlet.finish(number)])
        changelog.append(host, store, head, str(number))

    epoch(0, np.arange(20_000))

    def run() -> None:
        usual, changelog.COMPACT_AFTER_RECORDS = changelog.COMPACT_AFTER_RECORDS, 100
        try:
            for number in range(1, records):
                epoch(number, np.arange(number, number + 20))
        finally:
            changelog.COMPACT_AFTER_RECORDS = usual

    return run


def levels(count: int) -> Run:
    """Rows through so many keyed steps, one behind the other."""

    def build(stream: Any) -> Any:
        for number in range(count):
            stream = stream.key_by("k").process(_Total(), SCHEMA, name=f"total {number}")
        return stream

    harness = Harness(build, SCHEMA)

    def run() -> None:
        for number in range(20):
            harness.push((number, number))

    return run


CASES = [
    Case("slices of sliding windows", (128, 512, 2048), windows(lambda n: hw.sliding(f"{n} s", "1 s"), late=False)),
    Case("slices of cumulating windows", (128, 512, 2048), windows(lambda n: hw.cumulate("1 s", f"{n} s"), late=False)),
    Case("slices, 100 late rows", (128, 512, 2048), windows(lambda n: hw.sliding(f"{n} s", "1 s"), late=True)),
    Case("keys of a window with late rows", (20_000, 80_000, 320_000), late_in_large),
    Case("sessions of a key", (2_000, 8_000, 32_000), sessions),
    Case("sessions kept, 100 late rows", (2_000, 8_000, 32_000), late_sessions),
    Case("timers moved, times", (20, 80, 320), moved_timers(on_disk=False)),
    Case("timers moved on disk, times", (20, 80, 320), moved_timers(on_disk=True)),
    Case("keys on disk", (40_000, 160_000, 640_000), keys_on_disk),
    Case("rows of a sliding count window", (100, 400, 1_600), count_windows),
    Case("map and list, their ends", (1_000, 4_000, 16_000), ends_of_state),
    Case("files in an idle folder", (500, 2_000, 8_000), idle_looks),
    Case("rows of a hot key, joined", (4_000, 16_000, 64_000), hot_key),
    Case("records, a base for every 100", (500, 2_000, 8_000), records_and_bases),
    Case("keyed steps one behind the other", (4, 16, 64), levels),
    Case("diamonds of branches", (8, 32, 128), fused(diamonds)),
    Case("maps one behind the other", (50, 200, 800), fused(maps)),
]


def seconds(run: Run) -> float:
    """The CPU time that it takes."""
    gc.collect()
    gc.disable()
    try:
        begin = time.process_time()
        run()
        return time.process_time() - begin
    finally:
        gc.enable()


def main() -> None:
    """Measure every case, or those whose names have a given word, and print the table, the last line as JSON."""
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    exponents = {}
    print(f"{'':34}{'sizes':>26}{'CPU seconds':>30}{'exponent':>10}")
    for case in CASES:
        if word not in case.name:
            continue
        costs = [min(seconds(case.prepare(size)) for _ in range(ROUNDS)) for size in case.sizes]
        exponents[case.name] = float(np.polyfit(np.log(case.sizes), np.log(np.maximum(costs, 1e-4)), 1)[0])
        sizes = " ".join(f"{size:>8,}" for size in case.sizes)
        times = " ".join(f"{cost:>9.3f}" for cost in costs)
        print(f"{case.name:34}{sizes:>26}{times:>30}{exponents[case.name]:>10.2f}", flush=True)
    largest = max(exponents, key=lambda name: exponents[name])
    print(json.dumps({"bench": "growth", "of": largest, "ratio": round(exponents[largest], 3)}))


if __name__ == "__main__":
    main()
