"""A large base is written over several epochs: no record has all of it, and every version can be rebuilt meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from tests.parts.places import batch_of, head_of, run_epoch

import headwater as hw
from headwater.data.schema import Schema
from headwater.plan.plan import JobPlan, plan_job
from headwater.state import changelog, slices
from headwater.state.changelog import Head, MemoryRecordStore, catch_up
from headwater.state.records import dumped_in, unpack
from headwater.task.host import LevelHost

ROWS = Schema.of("k bigint, v int")
KEYS, EPOCHS = 300, 40


class Keeper(hw.KeyedProcessFunction):
    total = hw.ValueState("bigint", default=0)
    text = hw.ValueState("string", ttl=hw.ttl("20 ms"))
    seen = hw.ListState("int")
    by = hw.MapState("int", "string")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        if event.v % 5 == 0:
            for state in (self.total, self.text, self.seen, self.by):
                state.clear()
        else:
            self.total.set(self.total.get() + event.v)
            self.text.set(str(event.v))
            self.seen.add(event.v)
            self.by.remove(event.v % 3)
            self.by.put(event.v % 3, str(event.v))
        ctx.timers.event_time(1_000 + event.v)
        return iter(())


def plan_of(backend: str) -> JobPlan:
    env = hw.Environment("parts", engine="local", parallelism=1)
    keyed = env.from_rows([], ROWS).key_by("k")
    keyed.process(Keeper(), "k bigint").sink(hw.connectors.memory(), name="a")
    keyed.agg(total=hw.sum("v")).sink(hw.connectors.memory(), name="b")
    return plan_job(env.graph, 1, 128, backend, state_memory_bytes=100_000)


def epoch(host: LevelHost, plan: JobPlan, store: MemoryRecordStore, number: int, rows: list[Any]) -> Head:
    run_epoch(host, plan, store, number, batch_of(rows, ROWS, range(len(rows))), now_ms=50 + number)
    return head_of(store)


def rows_of(number: int, count: int = 20) -> list[Any]:
    dice = random.Random(number)
    keys = range(KEYS) if number == 0 else [dice.randrange(KEYS) for _ in range(count)]
    return [(key, dice.randrange(1, 50)) for key in keys]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog, "COMPACT_FROM_BYTES", 1 << 10)
    monkeypatch.setattr(changelog, "COMPACT_FACTOR", 1)
    monkeypatch.setattr(slices, "_PART_ENTRIES", 64)


@pytest.mark.parametrize("backend", ["memory", "disk"])
def test_every_version_is_rebuilt_the_same_while_bases_are_written_in_parts(backend: str) -> None:
    plan, plain = plan_of(backend), plan_of("memory")
    store, twin, heads = MemoryRecordStore(), MemoryRecordStore(), []
    with closing(LevelHost(plan, 1, 0)) as host, closing(LevelHost(plain, 1, 0)) as other:
        behind = LevelHost(plan, 1, 0)
        for number in range(EPOCHS):
            heads.append(epoch(host, plan, store, number, rows_of(number)))
            epoch(other, plain, twin, number, rows_of(number))
            assert store._records == twin._records
            if number % 7 == 3:
                catch_up(behind, store, "here")
                with closing(LevelHost(plan, 1, 0)) as rebuilt:
                    catch_up(rebuilt, store, "here")
                    with closing(LevelHost(plan, 1, 0)) as current:
                        catch_up(current, store, "here")
                        whole = current.base()
                    assert rebuilt.sizes() == behind.sizes() == host.sizes()
                    assert rebuilt.base() == whole
        catch_up(behind, store, "here")
        assert behind.base() == host.base()
        behind.close()
    bases = {head.base for head in heads}
    assert len(bases) > 2, "there was more than one cycle"
    assert any(len(set(head.parts)) > 2 for head in heads), "a base is spread over several records"


def test_no_epoch_writes_all_of_a_base_and_old_records_go_few_at_a_time() -> None:
    plan, store = plan_of("memory"), MemoryRecordStore()
    with closing(LevelHost(plan, 1, 0)) as host:
        held, dumped = [], []
        epoch(host, plan, store, 0, rows_of(0))
        for number in range(1, 3 * EPOCHS):
            before = set(store._records)
            head = epoch(host, plan, store, number, rows_of(number, 2))
            held.append(len(before - set(store._records)))
            record = store.read(head.sequence)
            assert record is not None
            dumped.append(sum(len(table) for _, state, table in dumped_in(record) if state == "seen"))
    assert max(held) <= changelog._REMOVED_AT_ONCE
    assert sum(held) > 2 * changelog._REMOVED_AT_ONCE
    assert 0 < max(dumped) < len(host.tables()["keeper", "seen"]) / 2
    assert sum(map(bool, dumped)) > 2 * 3


def test_a_head_of_before_parts_is_gone_on_from() -> None:
    plan, store = plan_of("memory"), MemoryRecordStore()
    with closing(LevelHost(plan, 1, 0)) as host:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(slices, "_PART_ENTRIES", 1 << 16)
            for number in range(3):
                epoch(host, plan, store, number, rows_of(number))
        head = store.head()
        assert head is not None
        facts = {"sequence": head.sequence, "token": head.token, "base": 1, "base_bytes": 5, "delta_bytes": 7}
        old = Head.from_json(facts, "here")
        assert (old.parts, old.next_count) == ((), 0)
        store.set_head(replace(old, base=head.base))
        with closing(LevelHost(plan, 1, 0)) as rebuilt:
            catch_up(rebuilt, store, "here")
            assert rebuilt.base() == host.base()


def test_an_epoch_that_changes_little_writes_one_part_after_epochs_that_changed_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slices, "_PART_ENTRIES", 1 << 10)
    env = hw.Environment("parts", engine="local", parallelism=1)
    env.from_rows([], ROWS).key_by("k").agg(total=hw.sum("v")).sink(hw.connectors.memory())
    plan, store = plan_job(env.graph, 1, 128), MemoryRecordStore()
    all_keys = [(key, random.Random(key).randrange(1 << 20)) for key in range(20_000)]
    with closing(LevelHost(plan, 1, 0)) as host:
        numbers = iter(range(100))
        head = epoch(host, plan, store, next(numbers), all_keys)
        while not changelog.is_compaction_due(head):
            head = epoch(host, plan, store, next(numbers), all_keys)
        few = [len(epoch(host, plan, store, next(numbers), all_keys[:5]).next_parts) for _ in range(3)]
        more = len(epoch(host, plan, store, next(numbers), all_keys[:5_000]).next_parts)
    assert few == [1, 2, 3]
    assert more > few[-1] + 2


@pytest.mark.parametrize("backend", ["memory", "disk"])
def test_an_epoch_writes_as_much_of_a_base_as_it_changes_also_where_state_has_outgrown_the_last_base(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changelog, "COMPACT_FACTOR", 4)
    plan, store, new = plan_of(backend), MemoryRecordStore(), 200
    most, bases = 0.0, set()
    with closing(LevelHost(plan, 1, 0)) as host:
        epoch(host, plan, store, 0, [(key, 1) for key in range(new)])
        for number in range(1, 40):
            head = epoch(host, plan, store, number, [(number * new + key, 1) for key in range(new)])
            record = store.read(head.sequence)
            assert record is not None
            dumped = sum(len(table) for _, _, table in dumped_in(record))
            changed = sum(len(table) for _, _, table in unpack(record)[1])
            most = max(most, dumped / changed)
            bases.add(head.base)
        with closing(LevelHost(plan, 1, 0)) as rebuilt:
            catch_up(rebuilt, store, "here")
            assert rebuilt.base() == host.base()
    assert len(bases) > 1
    assert 0.5 < most < 2
