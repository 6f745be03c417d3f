"""The first base of large state, as a savepoint gives it, is written and read a record at a time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.task.test_compaction_in_parts import EPOCHS, KEYS, epoch, plan_of, rows_of

from headwater.epoch.reports import level_report
from headwater.errors import ChangelogError
from headwater.plan.plan import JobPlan
from headwater.state import changelog, slices
from headwater.state.changelog import Head, MemoryRecordStore, append, catch_up
from headwater.state.records import dumped_in, sizes, unpack
from headwater.state.table import rows_of as rows_of_table
from headwater.task.host import LevelHost
from headwater.task.outcome import Outcome

PIECE = 16_000


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "_PART_ENTRIES", 32)
    monkeypatch.setattr(changelog, "FIRST_RECORD_BYTES", PIECE)


@pytest.fixture(params=["memory", "disk"])
def plan(request: pytest.FixtureRequest) -> JobPlan:
    return plan_of(request.param)


@pytest.fixture
def host(plan: JobPlan) -> Iterator[LevelHost]:
    """One that nothing is stored of yet, with much state."""
    before = MemoryRecordStore()
    with closing(LevelHost(plan, 1, 0)) as one, closing(LevelHost(plan, 1, 0)) as found:
        epoch(one, plan, before, 0, rows_of(0))
        found.apply(one.base())
        yield found


def begun(host: LevelHost) -> tuple[MemoryRecordStore, Head]:
    store = MemoryRecordStore()
    append(host, store, None, "first")
    head = store.head()
    assert head is not None
    return store, head


def records_of(store: MemoryRecordStore) -> list[bytes]:
    return [record for _, (_, record) in sorted(store._records.items())]


def test_it_is_several_records_of_about_a_piece_that_have_each_row_once(plan: JobPlan, host: LevelHost) -> None:
    store, head = begun(host)
    records = records_of(store)
    assert (head.base, head.sequence, head.delta_bytes) == (1, len(records), 0)
    assert sorted(set(head.parts)) == list(range(1, len(records) + 1))
    assert head.base_bytes == sum(map(len, records))
    assert len(records) > 2
    assert max(map(len, records)) < 3 * PIECE
    assert len(records) < len(head.parts), "parts are together where they are small"
    assert all(not list(unpack(record)[1]) for record in records)
    rows = [len(table) for record in records for _, state, table in dumped_in(record) if state == "seen"]
    assert sum(rows) == len(host.tables()["keeper", "seen"].dump())


def test_parts_with_next_to_nothing_do_not_lead_to_a_record_with_all_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "_PART_ENTRIES", 1)
    keys = np.arange(4_000)
    firsts = slices.first_bytes(pa.array(keys))
    keys = keys[firsts >= 20].tolist()
    plan, store, dice = plan_of("memory"), MemoryRecordStore(), random.Random(3)
    with closing(LevelHost(plan, 1, 0)) as host:
        head = epoch(host, plan, store, 0, [(key, dice.randrange(1, 1 << 30)) for key in keys])
    assert len(head.parts) == slices.MAX_PARTS
    assert max(map(len, records_of(store))) < 2 * PIECE
    assert len(records_of(store)) < head.base_bytes / PIECE + 10, "parts are together where they are small"


def test_state_of_one_part_is_one_record(monkeypatch: pytest.MonkeyPatch, host: LevelHost) -> None:
    monkeypatch.setattr(slices, "_PART_ENTRIES", 1 << 16)
    whole = host.base()
    store, head = begun(host)
    assert head == Head(1, "first", 1, len(whole), 0)
    assert records_of(store) == [whole]


def test_what_a_first_epoch_wrote_itself_is_cut_too(plan: JobPlan) -> None:
    store = MemoryRecordStore()
    with closing(LevelHost(plan, 1, 0)) as host:
        head = epoch(host, plan, store, 0, rows_of(0))
    assert len(head.parts) == slices.parts_for(sum(head_entries(plan, store)))
    assert len(records_of(store)) > 1


def head_entries(plan: JobPlan, store: MemoryRecordStore) -> list[int]:
    with closing(LevelHost(plan, 1, 0)) as host:
        catch_up(host, store, "here")
        return [rows_of_table(table) for table in host.tables().values() if isinstance(table, slices.SlicedTable)]


def test_copies_are_rebuilt_from_it_and_catch_up_behind_it(plan: JobPlan, host: LevelHost) -> None:
    store, head = begun(host)
    with closing(LevelHost(plan, 1, 0)) as behind:
        assert catch_up(behind, store, "here") == head
        assert behind.base() == host.base()
        for number in range(1, EPOCHS):
            epoch(host, plan, store, number, rows_of(number))
            if number % 9 == 4:
                with closing(LevelHost(plan, 1, 0)) as rebuilt:
                    catch_up(rebuilt, store, "here")
                    catch_up(behind, store, "here")
                    assert rebuilt.sizes() == behind.sizes() == host.sizes()
                    assert rebuilt.base() == behind.base()
        catch_up(behind, store, "here")
        assert behind.base() == host.base()


def test_a_base_follows_it_and_its_records_go(monkeypatch: pytest.MonkeyPatch, plan: JobPlan, host: LevelHost) -> None:
    store, first = begun(host)
    monkeypatch.setattr(changelog, "COMPACT_FROM_BYTES", 1 << 10)
    monkeypatch.setattr(changelog, "COMPACT_FACTOR", 1)
    head = first
    for number in range(1, 6 * EPOCHS):
        head = epoch(host, plan, store, number, rows_of(number, 60))
    assert head.base > first.sequence
    assert min(store._records) > first.sequence
    with closing(LevelHost(plan, 1, 0)) as rebuilt:
        catch_up(rebuilt, store, "here")
        assert rebuilt.base() == host.base()


def test_an_attempt_that_was_lost_leaves_nothing(plan: JobPlan, host: LevelHost) -> None:
    """Its copy has written all records, under a token that was never committed."""
    begun(host)
    store = MemoryRecordStore()
    with closing(LevelHost(plan, 1, 0)) as other:
        epoch(other, plan, store, 0, rows_of(5))
        catch_up(host, store, "here")
        assert host.base() == other.base()


def test_a_record_that_is_missing_is_told(plan: JobPlan, host: LevelHost) -> None:
    store, _ = begun(host)
    store.remove(2)
    with closing(LevelHost(plan, 1, 0)) as other:
        with pytest.raises(ChangelogError, match="lacks sequence 2"):
            catch_up(other, store, "here")
        assert other.token is None


def test_bytes_are_told_by_state_over_all_records(host: LevelHost) -> None:
    store = MemoryRecordStore()
    written = append(host, store, None, "first")
    told: dict[str, dict[str, int]] = {}
    for record in records_of(store):
        for uid, states in sizes(record).items():
            for state, size in states.items():
                told.setdefault(uid, {})[state] = told.get(uid, {}).get(state, 0) + size
    assert written.added_bytes == told
    assert level_report(Outcome(), (), written).changelog_bytes == told
    assert written.stored_bytes == sum(map(len, records_of(store)))


def test_weights_of_state_are_known_after_it(plan: JobPlan) -> None:
    def told(host: LevelHost) -> Any:
        return {uid: states["total"] for uid, states in sizes_told(host).items() if "total" in states}

    def sizes_told(host: LevelHost) -> dict[str, dict[str, int]]:
        return {entry.uid: entry.state_bytes() for entry in host._entries}

    with closing(LevelHost(plan, 1, 0)) as host:
        epoch(host, plan, MemoryRecordStore(), 0, rows_of(0))
        assert told(host)
        assert all(size > KEYS for size in told(host).values())
