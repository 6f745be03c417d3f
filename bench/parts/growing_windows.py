"""Windows of the growth bench: steps that are given rows and watermarks by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import headwater as hw
from headwater.data.batch import MIN_TIMESTAMP, Batch
from headwater.data.schema import Schema
from headwater.operators.contract import StepTime
from headwater.testing import Harness

SCHEMA = Schema.of("k long, v long")
KEYS, ROWS = 1_000, 2_000

Run = Callable[[], Any]
"""What is measured."""


class Step:
    """A stateful step of a stream, given rows and watermarks by hand."""

    def __init__(self, build: Callable[[Any], Any]) -> None:
        entries = [entry for host in Harness(build, SCHEMA)._cluster.hosts.values() for entry in host._entries]
        self._operator: Any = entries[0].operator
        self.rows_out = 0

    def process(self, keys: Any, times: Any, watermark_ms: int = MIN_TIMESTAMP) -> None:
        """Rows with these keys and times."""
        table = pa.table({"k": np.asarray(keys, np.int64), "v": np.ones(len(keys), np.int64)})
        batch = Batch(table.cast(SCHEMA.arrow), np.asarray(times, np.int64))
        self._operator.process(batch, StepTime(watermark_ms, 0), self._emit)

    def watermark(self, to_ms: int) -> None:
        """Event time moves."""
        self._operator.advance_watermark(StepTime(to_ms, 0), self._emit)

    def _emit(self, _: str | None, batch: Batch) -> None:
        self.rows_out += len(batch)


def random_rows(rows: int, keys: int, until_ms: int, seed: int = 7) -> tuple[Any, Any]:
    """Keys and times."""
    chance = np.random.default_rng(seed)
    return chance.integers(0, keys, rows), np.sort(chance.integers(0, until_ms, rows))


def windows(assigner: Callable[[int], Any], *, late: bool) -> Callable[[int], Run]:
    """So many slices: rows come and all windows fire, or 100 late rows come into windows that have."""

    def prepare(slices: int) -> Run:
        def build(stream: Any) -> Any:
            return stream.key_by("k").window(assigner(slices)).allow_lateness("1 day").agg(n=hw.count(), t=hw.sum("v"))

        step = Step(build)
        until_ms = slices * 1_000

        def fire() -> None:
            step.process(*random_rows(ROWS, KEYS, until_ms))
            step.watermark(2 * until_ms)

        if not late:
            return fire
        fire()
        return lambda: step.process(*random_rows(100, KEYS, until_ms), 2 * until_ms)

    return prepare


def late_in_large(keys: int) -> Run:
    """A tumbling window of so many keys, into which some late rows come, epoch by epoch."""
    step = Step(lambda s: s.key_by("k").window(hw.tumbling("10 s")).allow_lateness("1 day").agg(n=hw.count()))
    step.process(np.arange(keys), np.zeros(keys))
    step.watermark(10_000)

    def run() -> None:
        for number in range(20):
            step.process(np.arange(100) * 7 + number, np.zeros(100), 10_000)

    return run


def sessions(count: int) -> Run:
    """So many sessions of one key in one epoch; they fire."""
    step = Step(lambda s: s.key_by("k").window(hw.session("10 ms")).agg(n=hw.count()))
    times = np.random.default_rng(7).permutation(count) * 100

    def run() -> None:
        step.process(np.zeros(count), times)
        step.watermark(count * 100)

    return run


def late_sessions(count: int) -> Run:
    """So many sessions of one key that are kept; rows come for some, epoch by epoch."""
    step = Step(lambda s: s.key_by("k").window(hw.session("10 ms")).allow_lateness("100 days").agg(n=hw.count()))
    step.process(np.zeros(count), np.arange(count) * 100)
    step.watermark(count * 100)

    def run() -> None:
        for number in range(100):
            step.process([0], [number * 700 % (count * 100)], count * 100)

    return run
