"""Lists, maps and windows of few keys are written in parts by how much they hold, not by how many keys there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from tests.unit.task.test_compaction_in_parts import ROWS, epoch

import headwater as hw
from headwater.plan.plan import JobPlan, plan_job
from headwater.state import changelog, slices
from headwater.state.changelog import MemoryRecordStore, catch_up
from headwater.state.records import dumped_in, unpack
from headwater.task.host import LevelHost

KEYS, EPOCHS = 100, 40


class Keeps(hw.KeyedProcessFunction):
    seen = hw.ListState("int")
    times = hw.MapState("int", "int", ttl=hw.ttl("1 h"))

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.seen.add(event.v)
        self.times.put(event.v, event.v)
        return iter(())


class Counts(hw.ProcessWindowFunction):
    def process(self, elements: Any, ctx: Any) -> Iterator[Any]:
        yield (len(elements),)


BUILDS: dict[str, Callable[[Any], Any]] = {
    "lists and maps": lambda keyed: keyed.process(Keeps(), "k bigint"),
    "windows of rows": lambda keyed: keyed.window(hw.session("1 h")).process(Counts(), "n bigint"),
    "windows of a number of rows": lambda keyed: keyed.window(hw.count(10_000)).process(Counts(), "n bigint"),
    "windows of pieces": lambda keyed: keyed.window(hw.count(10_000, 1)).agg(total=hw.sum("v")),
}


def plan_of(kind: str, backend: str) -> JobPlan:
    env = hw.Environment("parts", engine="local", parallelism=1)
    BUILDS[kind](env.from_rows([], ROWS).key_by("k")).sink(hw.connectors.memory())
    return plan_job(env.graph, 1, 128, backend, state_memory_bytes=50_000)


@pytest.mark.parametrize("backend", ["memory", "disk"])
@pytest.mark.parametrize("kind", BUILDS)
def test_no_epoch_writes_all_that_few_keys_hold(kind: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog, "COMPACT_FROM_BYTES", 1 << 10)
    monkeypatch.setattr(changelog, "COMPACT_FACTOR", 4)
    monkeypatch.setattr(slices, "_PART_ENTRIES", 2 * KEYS)
    plan, store = plan_of(kind, backend), MemoryRecordStore()
    dumped, changed, bases = [], [], set()
    with closing(LevelHost(plan, 1, 0)) as host:
        for number in range(EPOCHS):
            head = epoch(host, plan, store, number, [(key, number * 2 + n) for key in range(KEYS) for n in range(2)])
            record = store.read(head.sequence)
            assert record is not None
            dumped.append(sum(len(rows) for _, _, rows in dumped_in(record)))
            changed.append(sum(len(rows) for _, _, rows in unpack(record)[1]))
            bases.add(head.base)
        for one in (kind, backend), (kind, "memory"):
            with closing(LevelHost(plan_of(*one), 1, 0)) as rebuilt:
                catch_up(rebuilt, store, "here")
                assert rebuilt.base() == host.base()
    assert len(bases) > 1, "a base was finished"
    assert max(changed) < 2 * changed[1]
    assert max(dumped) < 4 * changed[1]
