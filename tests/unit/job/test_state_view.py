"""State of a running job, looked at from outside."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest
from tests.parts.halves import run_epochs

import headwater as hw

ROWS = [("a", 1, 10), ("b", 2, 20), ("a", 3, 1500), (None, 4, 1600)]
SCHEMA = "k string, n bigint, at bigint"


class Kept(hw.KeyedProcessFunction):
    total = hw.ValueState("bigint", default=0)
    seen = hw.ListState("bigint")
    last = hw.MapState("bigint", "struct<n: bigint>")

    def process(self, event: Any, ctx: hw.Context) -> Any:
        self.total.set(self.total.get() + event.n)
        self.seen.add(event.n)
        self.last.put(event.n % 2, (event.n,))
        yield event


class Held(hw.ProcessFunction):
    held = hw.OperatorListState("bigint")

    def process(self, event: Any, ctx: hw.Context) -> Any:
        self.held.add(event.n)
        yield event


@pytest.fixture
def job() -> Any:
    env = hw.Environment("looked-at", engine="local", max_rows_per_epoch=4)
    rows = env.from_rows([*ROWS, ("a", 0, 1700)], SCHEMA, hw.Watermarks.monotonous("at"))
    sink = hw.connectors.memory
    rows.key_by("k").process(Kept(), SCHEMA).with_uid("kept").sink(sink(), name="s1")
    rows.key_by("k", "n").process(Kept(), SCHEMA).with_uid("by-two").sink(sink(), name="s2")
    sums = rows.key_by("k").window(hw.tumbling("1 s")).agg(n=hw.sum("n"))
    sums.with_uid("sliced").sink(sink(), name="s3")
    fired = rows.key_by("k", "n").window(hw.tumbling("1 s")).trigger(hw.triggers.count(1)).agg(total=hw.sum("n"))
    fired.with_uid("windows").sink(sink(), name="s4")
    rows.process(Held(), SCHEMA).with_uid("held").sink(sink(), name="s5")
    return run_epochs(env, 1)


def test_a_value_a_list_and_a_map_are_got_by_key(job: hw.Job) -> None:
    assert job.state("kept", "total").get("a") == 4
    assert job.state("kept", "total").get(None) == 4
    assert job.state("kept", "total").get("z") is None
    assert job.state("kept", "total").get("z", 0) == 0
    assert job.state("kept", "seen").get("a") == [1, 3]
    assert job.state("kept", "last").get("a") == {1: (3,)}


def test_a_key_of_several_columns_is_a_tuple_or_a_dict(job: hw.Job) -> None:
    view = job.state("by-two", "total")
    assert view.get(("a", 3)) == view.get({"k": "a", "n": 3}) == 3
    assert view.get((None, 4)) == 4
    assert view.get(("b", 3)) is None


def test_a_window_is_got_by_key_start_and_end(job: hw.Job) -> None:
    view = job.state("windows", "kept")
    assert view.get((("a", 3), 1000, 2000)) == (3,)
    assert view.get((("a", 3), 0, 1000)) is None


def test_a_state_is_a_table(job: hw.Job) -> None:
    view = job.state("kept", "total")
    assert isinstance(view, hw.StateView)
    assert (view.step, view.name, view.epoch, len(view)) == ("kept", "total", 0, 3)
    assert view.table().schema == pa.schema([("key", pa.string()), ("value", pa.int64())])
    assert repr(view) == "<state kept/total at epoch 0: 3 entries>"


def test_state_that_belongs_to_no_key_is_a_table_only(job: hw.Job) -> None:
    held = job.state("held", "held")
    assert sorted(held.table()["value"].to_pylist()) == [1, 2, 3, 4]
    with pytest.raises(hw.StateError, match=r"state 'held' holds rows, not a value by key; use .table"):
        held.get("a")
    assert sorted(job.state("sliced", "slices").table()["n.sum"].to_pylist()) == [3, 4]


def test_a_view_stays_as_it_is() -> None:
    env = hw.Environment("views", engine="local", max_rows_per_epoch=1)
    env.from_rows([("a", 1, 0), ("a", 2, 0)], SCHEMA).key_by("k").process(Kept(), SCHEMA).sink(hw.connectors.memory())
    jobs: list[Any] = []
    views: list[hw.StateView] = []
    begun = threading.Event()

    def look(step: hw.EpochStep, epoch: int) -> None:
        begun.wait()
        if step is hw.EpochStep.PLANNED and epoch:
            views.append(jobs[0].state("kept", "total"))

    jobs.append(env.start(on_step=look))
    begun.set()
    jobs[0].wait()
    assert [(view.epoch, view.get("a")) for view in views] == [(0, 1)]
    assert jobs[0].state("kept", "total").get("a") == 3


def test_what_is_not_there_is_told(job: hw.Job) -> None:
    with pytest.raises(
        hw.SavepointError, match=r"job 'looked-at' has no state 'sum' of a step 'kept'; it has .*kept/total"
    ):
        job.state("kept", "sum")
    with pytest.raises(hw.SavepointError, match="no state 'total' of a step 'keept'"):
        job.state("keept", "total")
    with pytest.raises(hw.JobError, match="does not have epoch 7 any more or yet; it has epochs 0 to 0"):
        job.state("kept", "total", epoch=7)
    assert job.state("kept", "total", epoch=0).get("a") == 4
    with pytest.raises(hw.RowError, match="does not fit"):
        job.state("kept", "total").get(5)
