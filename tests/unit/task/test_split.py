"""What a split sends for a range depends on the range alone, not on the batches in which its source happens to give it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater.connectors.contract import Positions, Source
from headwater.task.payload import EpochFacts
from headwater.task.split import SplitHost

ROWS = 300_000


class Cut(Source):
    """The same rows in batches of a given size, as a broker gives them now in larger and now in smaller ones."""

    bounded = True

    def __init__(self, batch_rows: int) -> None:
        self._batch_rows = batch_rows

    def describe(self) -> str:
        return "cut"

    def check(self, schema: hw.Schema) -> None:
        """Nothing can be wrong."""

    def earliest(self) -> Positions:
        return {"0": 0}

    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        return {"0": ROWS}

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        n = np.arange(start, end)
        table = pa.table({"k": n % 3, "ts": n, "x": 0.1 * n})
        yield from table.to_batches(max_chunksize=self._batch_rows)


def payloads(batch_rows: int) -> list[tuple[int, bytes]]:
    env = hw.Environment("cut", engine="local", parallelism=2)
    rows = env.source(Cut(batch_rows), "k bigint, ts bigint, x double", hw.Watermarks.bounded("ts", "1 s"), name="cut")
    rows.key_by("k").window(hw.tumbling("1 h")).agg(total=hw.sum("x")).sink(hw.connectors.memory())
    plan = env.plan()
    host = SplitHost(plan, plan.sources()[0], "0")
    return [sent for outcome in host.run(0, ROWS, EpochFacts(0, 0), ended=True) for sent in outcome.payloads]


@pytest.mark.parametrize("batch_rows", [1_000, 16_384, 131_072, ROWS])
def test_the_batches_of_a_source_leave_no_trace(batch_rows: int) -> None:
    assert payloads(batch_rows) == payloads(99_999)
