"""Branches that meet again: a step is built and run once, however many paths lead to it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.data.batch import Batch
from headwater.data.schema import Schema
from headwater.operators.stateless.functions import FilterOperator
from headwater.plan.plan import plan_job
from headwater.task.outlet import Outlet
from headwater.task.payload import EpochFacts, decode_payload

SCHEMA = Schema.of("n long")


def outlet_behind(build: Any) -> Outlet:
    env = hw.Environment("paths", engine="local", parallelism=1)
    build(env.from_rows([], SCHEMA)).sink(hw.connectors.memory(), name="out")
    plan = plan_job(env.graph, 1, 128)
    outlet = Outlet.behind(plan, plan.sources()[0])
    outlet.begin(EpochFacts(0, 0), "split")
    return outlet


def rows(count: int) -> Batch:
    return Batch(pa.table({"n": range(count)}, schema=SCHEMA.arrow), pa.array(range(count)).to_numpy())


def found(outlet: Outlet) -> Counter[tuple[int, int]]:
    return Counter(
        (row["n"], at)
        for batch in outlet.sink_batches.get("out", ())
        for row, at in zip(batch.table.to_pylist(), batch.timestamps.tolist(), strict=True)
    )


@pytest.mark.parametrize("count", [1, 5, 40])
def test_steps_between_branches_that_meet_run_once_for_a_batch(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(stream: Any) -> Any:
        for number in range(2, 2 + count):
            even = stream.filter(lambda row, number=number: row.n % number == 0)
            stream = even.union(stream.filter(lambda row, number=number: row.n % number != 0))
        return stream

    runs = 0
    known = FilterOperator.apply

    def apply(operator: FilterOperator, batch: Batch) -> Any:
        nonlocal runs
        runs += 1
        return known(operator, batch)

    monkeypatch.setattr(FilterOperator, "apply", apply)
    outlet = outlet_behind(build)
    for _ in range(3):
        outlet.emit(None, rows(100))
    assert runs <= 3 * 2 * count
    assert found(outlet) == {(n, n): 3 for n in range(100)}
    counters = outlet.fused() if outlet.finish(0) is not None else {}
    assert [counters["filter"].rows_in, counters["filter-2"].rows_in] == [300, 300]


def test_a_row_comes_once_for_each_path() -> None:
    def build(stream: Any) -> Any:
        for _ in range(3):
            stream = stream.map(lambda row: row).union(stream.map(lambda row: row))
        return stream.union(stream)

    outlet = outlet_behind(build)
    outlet.emit(None, rows(10))
    assert found(outlet) == {(n, n): 16 for n in range(10)}


def test_paths_of_different_lengths_meet() -> None:
    def build(stream: Any) -> Any:
        long = stream.map(lambda row: (row.n + 100,), SCHEMA).filter(lambda row: row.n % 2 == 0)
        return long.union(stream).map(lambda row: (row.n,), SCHEMA).union(stream.filter(lambda row: row.n == 3))

    outlet = outlet_behind(build)
    outlet.emit(None, rows(4))
    assert found(outlet) == {(0, 0): 1, (1, 1): 1, (2, 2): 1, (3, 3): 2, (100, 0): 1, (102, 2): 1}


def test_event_time_that_is_set_behind_a_union_follows_from_the_rows_of_all_ways() -> None:
    def build(stream: Any) -> Any:
        both = stream.filter(lambda row: row.n >= 7).union(stream.filter(lambda row: row.n < 7))
        timed = both.assign_watermarks(hw.Watermarks.monotonous("n"))
        return timed.key_by("n").window(hw.tumbling("1 s")).agg(rows=hw.count())

    outlet = outlet_behind(build)
    outlet.emit(None, rows(10))
    payloads = [decode_payload(data) for _, data in outlet.finish(0)]
    assert [one.watermark_ms for one in payloads if one.watermark_ms is not None] == [8]
    assert sum(len(one.batch) for one in payloads if one.batch is not None) == 10


def test_a_long_chain_of_steps_runs() -> None:
    def build(stream: Any) -> Any:
        for _ in range(1_200):
            stream = stream.map(lambda row: (row.n + 1,), SCHEMA)
        return stream

    outlet = outlet_behind(build)
    outlet.emit(None, rows(2))
    assert found(outlet) == {(1_200, 0): 1, (1_201, 1): 1}
