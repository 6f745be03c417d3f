"""Timers are cut into the parts of a base as state by key is: no record has them all, and they fire in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples
from tests.parts.places import Turn, batch_of, check_versions, head_of, run_epoch, sunk

import headwater as hw
from headwater.data.schema import Schema
from headwater.plan.plan import JobPlan, plan_job
from headwater.state import changelog, slices
from headwater.state.changelog import MemoryRecordStore
from headwater.state.disk.timers import DiskTimers
from headwater.state.records import dumped_in
from headwater.task.host import LevelHost

ROWS = Schema.of("k string, at bigint, what string")
TIMERS = "@timers.event"
Row = tuple[str | None, int, str]


class Alarm(hw.KeyedProcessFunction):
    """Sets and deletes timers as it is told, and shows the order in which they fire."""

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        if event.what == "set":
            ctx.timers.event_time(event.at)
        else:
            ctx.timers.delete_event_time(event.at)
        if event.what == "again":
            ctx.timers.event_time(event.at)
        return iter(())

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield ctx.key, timer.timestamp


def plan_of(backend: str) -> JobPlan:
    env = hw.Environment("alarms", engine="local", parallelism=1)
    env.from_rows([], ROWS).key_by("k").process(Alarm(), "k string, at bigint").sink(hw.connectors.memory())
    return plan_job(env.graph, 1, 128, backend, state_memory_bytes=0)


PLANS = {backend: plan_of(backend) for backend in ("memory", "disk")}


def epoch(host: LevelHost, store: MemoryRecordStore, rows: list[Row], watermark_ms: int) -> list[Any]:
    """What fired, in order."""
    head, given_rows = store.head(), batch_of(rows, ROWS, [0] * len(rows))
    number = 0 if head is None else head.sequence
    return sunk(run_epoch(host, PLANS["memory"], store, number, given_rows, watermark_ms=watermark_ms))


ROW = st.tuples(
    st.sampled_from([None, *"abcdefgh"]), st.integers(100, 110), st.sampled_from(["set", "set", "delete", "again"])
)
TURNS = st.lists(st.tuples(st.lists(ROW, max_size=8), st.sampled_from([0, 0, 0, 102, 105])), min_size=2, max_size=8)


@pytest.mark.parametrize("backend", PLANS)
@examples(40)
@given(turns=TURNS, forms=st.lists(st.sampled_from([2, 3]), min_size=8, max_size=8))
def test_every_version_is_rebuilt_with_the_same_timers_in_the_same_order(
    backend: str, turns: list[Turn[Row]], forms: list[int]
) -> None:
    """Also where an older version cut the base, or began to, whose first part has all timers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DiskTimers, "SHARE", 0)
        check_versions(PLANS, backend, epoch, turns, forms, last_rows=[])


@pytest.mark.parametrize("backend", PLANS)
def test_no_record_has_more_than_its_share_of_the_timers(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog, "COMPACT_FROM_BYTES", 0)
    monkeypatch.setattr(slices, "_PART_ENTRIES", 320)
    monkeypatch.setattr(DiskTimers, "SHARE", 0)
    store, timers, dumped = MemoryRecordStore(), 10_000, []
    with closing(LevelHost(PLANS[backend], 1, 0)) as host:
        epoch(host, store, [(f"key {n}", 1_000 + n % 7, "set") for n in range(timers)], 0)
        monkeypatch.setattr(changelog, "is_compaction_due", lambda head: True)
        for number in range(40):
            epoch(host, store, [(f"key {number}", 2_000, "set")], 0)
            record = store.read(head_of(store).sequence)
            assert record is not None
            dumped.append(sum(len(rows) for _, state, rows in dumped_in(record) if state == TIMERS))
    assert head_of(store).parts, "a base was finished"
    assert max(dumped) < 2 * timers / 32
    assert sum(dumped[:32]) in range(timers, timers + 40)
