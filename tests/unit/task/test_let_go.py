"""A host that is closed leaves nothing behind, though in a worker what was set aside is not looked at."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import headwater as hw
from headwater.data.batch import Batch, timestamp_array
from headwater.data.rows import encode_rows
from headwater.data.schema import Schema
from headwater.plan.plan import plan_job
from headwater.task import garbage_collection
from headwater.task.host import LevelHost
from headwater.task.outlet import Outlet
from headwater.task.payload import EpochFacts

ROWS = Schema.of("k bigint, v bigint, ts timestamp")
WATERMARKS = hw.Watermarks.bounded("ts", "1 s")
TEN = hw.tumbling("10 s")


class Keeps(hw.KeyedProcessFunction):
    n = hw.ValueState("bigint", default=0)
    seen = hw.ListState("string")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.n.set(self.n.get() + 1)
        self.seen.add("x")
        ctx.timers.event_time(10**12)
        return iter(())


PROGRAMS: dict[str, Callable[[hw.Stream], hw.Stream]] = {
    "process": lambda rows: rows.key_by("k").process(Keeps(), "k bigint"),
    "running": lambda rows: rows.key_by("k").agg(n=hw.count()),
    "windows": lambda rows: rows.key_by("k").window(TEN).agg(n=hw.count()),
    "sessions": lambda rows: rows.key_by("k").window(hw.session("5 s")).agg(n=hw.count()),
    "elements": lambda rows: rows.key_by("k").window(TEN).trigger(hw.triggers.count(3)).agg(n=hw.count()),
    "join": lambda rows: rows.key_by("k").join_regular(rows.key_by("k")),
    "top": lambda rows: rows.key_by("k").top_n(2, by="v"),
}


REFER_TO_THEMSELVES = ("windows", "sessions", "elements")
"""Steps that the collector alone removes."""


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.parametrize("backend", ["memory", "disk"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_state_of_a_host_that_is_closed_goes(program: str, backend: str) -> None:
    env = hw.Environment("closed", engine="local", parallelism=1)
    rows = env.from_rows([], ROWS, WATERMARKS)
    PROGRAMS[program](rows).sink(hw.connectors.memory())
    plan = plan_job(env.graph, 1, 128, backend, state_memory_bytes=10_000)
    host, outlet = LevelHost(plan, 1, 0), Outlet.behind(plan, plan.sources()[0])
    outlet.begin(EpochFacts(0, 50), "rows/0")
    some = encode_rows([(n % 40, n, None) for n in range(200)], ROWS.arrow, "rows")
    outlet.emit(None, Batch(some, timestamp_array(range(200))))
    with garbage_collection.worker_task():
        host.run([data for _, data in outlet.finish(0)])
        host.delta()
    kept = {name: weakref.ref(table) for (_, name), table in host.tables().items()}
    assert any(len(table) for table in host.tables().values())
    with garbage_collection.paused():
        host.close()
        del host
        if program in REFER_TO_THEMSELVES:
            garbage_collection.look_at_everything()
        assert [name for name, table in kept.items() if table() is not None] == []
