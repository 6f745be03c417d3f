"""Dealing rows out in turn: even in each epoch, even over many, and the same on replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.data.batch import Batch, no_timestamps
from headwater.data.schema import Schema
from headwater.plan.plan import JobPlan, plan_job
from headwater.task.host import LevelHost
from headwater.task.outlet import Outlet, Routed
from headwater.task.payload import EpochFacts, decode_payload
from headwater.task.split import SplitHost

SCHEMA = Schema.of("n long")


def plan_of(parallelism: int, rows: int = 0, **branches: Any) -> JobPlan:
    """One source split with so many rows, and each branch of it into a sink."""
    env = hw.Environment("outlet", engine="local", parallelism=parallelism)
    stream = env.from_rows([(n,) for n in range(rows)], SCHEMA)
    for name, branch in branches.items():
        branch(stream).sink(hw.connectors.memory(), name=name)
    return plan_job(env.graph, parallelism, 128)


def rebalanced(stream: hw.Stream) -> hw.Stream:
    return stream.rebalance().map(lambda row: row)


def batch(count: int) -> Batch:
    return Batch(pa.table({"n": range(count)}, schema=SCHEMA.arrow), no_timestamps(count))


def counted(payloads: Iterable[Routed], port: int | None = None) -> Counter[int]:
    """Rows by subtask."""
    found: Counter[int] = Counter()
    for subtask, data in payloads:
        payload = decode_payload(data)
        if payload.batch is not None and port in (None, payload.port):
            found[subtask] += len(payload.batch)
    return found


def spread_of(found: Counter[int], parallelism: int) -> int:
    """How many rows lie between the subtask with most and the one with fewest."""
    counts = [found[subtask] for subtask in range(parallelism)]
    return max(counts) - min(counts)


@given(st.integers(2, 5), st.lists(st.integers(0, 7), min_size=1, max_size=40))
def test_one_split_with_everything_is_dealt_out_evenly_in_each_epoch_and_over_all(p: int, sizes: list[int]) -> None:
    plan = plan_of(p, sum(sizes), out=rebalanced)
    host = SplitHost(plan, plan.sources()[0], "0")
    start, together = 0, Counter[int]()
    for epoch, size in enumerate(sizes):
        outcomes = host.run(start, start + size, EpochFacts(epoch, 0), ended=False)
        here = counted(routed for outcome in outcomes for routed in outcome.payloads)
        assert here.total() == size
        assert spread_of(here, p) <= 1
        start, together = start + size, together + here
    assert spread_of(together, p) <= 1


@pytest.mark.parametrize("period", [1, 2, 4, 10])
def test_a_trickle_out_of_a_step_does_not_end_up_in_one_place(period: int) -> None:
    """One row every few epochs, as windows give them."""
    plan = plan_of(4, out=rebalanced)
    outlet, found = Outlet.behind(plan, plan.sources()[0]), Counter[int]()
    for epoch in range(0, 400 * period, period):
        outlet.begin(EpochFacts(epoch, 0), "windows/0")
        outlet.emit(None, batch(1))
        found += counted(outlet.finish(0))
    assert found.total() == 400
    assert all(70 < found[subtask] < 130 for subtask in range(4)), found


def test_batches_of_an_epoch_go_on_where_the_last_one_stopped() -> None:
    plan = plan_of(3, out=rebalanced)
    outlet = Outlet.behind(plan, plan.sources()[0])
    outlet.begin(EpochFacts(0, 0), "step/1")
    for size in (1, 2, 4, 1, 1):
        outlet.emit(None, batch(size))
    assert counted(outlet.finish(0)) == {0: 3, 1: 3, 2: 3}


def test_two_ports_do_not_disturb_each_other() -> None:
    """One takes all rows and one every second: a shared turn would give each of them every other subtask only."""
    plan = plan_of(2, all=rebalanced, even=lambda s: rebalanced(s.where("n % 2 = 0")))
    ports = [node.id for node in plan.entries(1)]
    outlet = Outlet.behind(plan, plan.sources()[0])
    outlet.begin(EpochFacts(0, 0), "rows/0", 0)
    for _ in range(10):
        outlet.emit(None, batch(1))
    payloads = outlet.finish(0)
    assert [counted(payloads, port) for port in ports] == [{0: 5, 1: 5}, {0: 5, 1: 5}]


def test_an_epoch_again_goes_the_same_way() -> None:
    plan = plan_of(3, out=lambda s: rebalanced(rebalanced(s)))
    outlet = Outlet.behind(plan, plan.sources()[0])
    results = []
    for _ in range(2):
        outlet.begin(EpochFacts(7, 0), "rows/0", 5)
        outlet.emit(None, batch(8))
        payloads = outlet.finish(0)
        outcomes = [LevelHost(plan, 1, s).run([d for to, d in payloads if to == s]) for s in range(3)]
        results.append((payloads, [outcome.payloads for outcome in outcomes]))
    assert results[0] == results[1]
