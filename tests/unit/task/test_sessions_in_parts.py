"""Which sessions there are is cut into the parts of a base as state by key is: no record has them all."""

from __future__ import annotations

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
from headwater.state.records import dumped_in
from headwater.task.host import LevelHost

ROWS = Schema.of("k string, v int")
Row = tuple[str | None, int]


def plan_of(backend: str) -> JobPlan:
    """Lateness, so that sessions are kept one by one."""
    env = hw.Environment("sessions", engine="local", parallelism=1)
    windows = env.from_rows([], ROWS).key_by("k").window(hw.session("3 ms")).allow_lateness("4 ms")
    windows.agg(total=hw.sum("v")).sink(hw.connectors.memory())
    return plan_job(env.graph, 1, 128, backend, state_memory_bytes=0)


PLANS = {backend: plan_of(backend) for backend in ("memory", "disk")}


def epoch(host: LevelHost, store: MemoryRecordStore, rows: list[Row], watermark_ms: int) -> list[Any]:
    """What the windows give, in order. The value of a row is its time too."""
    head, given_rows = store.head(), batch_of(rows, ROWS, [value for _, value in rows])
    number = 0 if head is None else head.sequence
    return sunk(run_epoch(host, PLANS["memory"], store, number, given_rows, watermark_ms=watermark_ms))


ROW = st.tuples(st.sampled_from([None, *"abcdefgh"]), st.integers(0, 30))
TURNS = st.lists(st.tuples(st.lists(ROW, max_size=8), st.sampled_from([0, 0, 0, 12, 20])), min_size=2, max_size=8)


@pytest.mark.parametrize("backend", PLANS)
@examples(40)
@given(turns=TURNS, forms=st.lists(st.sampled_from([3, 4]), min_size=8, max_size=8))
def test_every_version_is_rebuilt_with_the_same_sessions(
    backend: str, turns: list[Turn[Row]], forms: list[int]
) -> None:
    """Also where an older version cut the base, or began to, whose first part has all sessions."""
    check_versions(PLANS, backend, epoch, turns, forms, last_rows=[("a", 15), ("b", 29)])


@pytest.mark.parametrize("backend", PLANS)
def test_no_record_has_more_than_its_share_of_the_sessions(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog, "COMPACT_FROM_BYTES", 0)
    monkeypatch.setattr(slices, "_PART_ENTRIES", 160)
    store, sessions, dumped = MemoryRecordStore(), 2_000, []
    with closing(LevelHost(PLANS[backend], 1, 0)) as host:
        epoch(host, store, [(f"key {n}", 1_000 + n % 7) for n in range(sessions)], 0)
        monkeypatch.setattr(changelog, "is_compaction_due", lambda head: True)
        parts = 0
        while head_of(store).base == 1:
            epoch(host, store, [("key 0", 1_000)], 0)
            head = head_of(store)
            parts = max(parts, head.next_count, len(head.parts))
            record = store.read(head.sequence)
            assert record is not None
            dumped.append(sum(len(rows) for _, state, rows in dumped_in(record) if state == "@sessions"))
    assert parts >= 32
    assert max(dumped) < 2 * sessions / parts
    assert sum(dumped) == sessions
