"""What states are said to take is what their rows take, on the copy that wrote them and on one that was rebuilt."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from tests.parts.places import batch_of, run_epoch

import headwater as hw
from headwater.data.schema import Schema
from headwater.plan.plan import JobPlan, plan_job
from headwater.state import changelog, slices
from headwater.state.changelog import MemoryRecordStore, catch_up
from headwater.state.sampled_weight import sizes_of
from headwater.task.host import LevelHost
from headwater.task.outcome import Outcome

ROWS = Schema.of("k bigint, v int")
KEYS, EPOCHS = 150, 30


class Texts(hw.KeyedProcessFunction):
    last = hw.ValueState("string")
    recent = hw.ListState("string", ttl=hw.ttl("5 ms"))
    shares = hw.MapState("double", "string")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        if event.v % 7 == 0:
            self.last.clear()
            self.shares.clear()
        else:
            self.last.set("x" * event.v)
            self.recent.add_all(["y", "y" * event.v])
            self.shares.remove(event.v % 4 / 4)
            self.shares.put(event.v % 3 / 3, "z" * event.v)
        return iter(())


def plan_of(backend: str) -> JobPlan:
    env = hw.Environment("bytes", engine="local", parallelism=1)
    env.from_rows([], ROWS).key_by("k").process(Texts(), "k bigint").sink(hw.connectors.memory())
    return plan_job(env.graph, 1, 128, backend, state_memory_bytes=50_000)


def epoch(host: LevelHost, plan: JobPlan, store: MemoryRecordStore, number: int) -> Outcome:
    """Some keys are written, a few of them more often than the others."""
    dice = random.Random(number)
    keys = range(KEYS) if number == 0 else [min(dice.randrange(KEYS), dice.randrange(KEYS)) for _ in range(20)]
    rows = [(key, dice.randrange(1, 50)) for key in keys]
    given_rows = batch_of(rows, ROWS, range(len(rows)))
    return host.weighed(run_epoch(host, plan, store, number, given_rows, now_ms=50 + number))


def true_bytes(host: LevelHost) -> dict[str, int]:
    dumps = {name: table.dump() for (_, name), table in host.tables().items() if name in ("last", "recent", "shares")}
    return {
        name: sum(int(sizes_of(dump[column].combine_chunks()).sum()) for column in dump.column_names[1:])
        for name, dump in dumps.items()
    }


@pytest.mark.parametrize("part_entries", [32, 65_536])
@pytest.mark.parametrize("backend", ["memory", "disk"])
def test_what_state_is_said_to_take_is_what_is_there(
    backend: str, part_entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changelog, "COMPACT_FROM_BYTES", 1 << 10)
    monkeypatch.setattr(changelog, "COMPACT_FACTOR", 1)
    monkeypatch.setattr(slices, "_PART_ENTRIES", part_entries)
    plan, store, bases = plan_of(backend), MemoryRecordStore(), set()
    with closing(LevelHost(plan, 1, 0)) as host, closing(LevelHost(plan, 1, 0)) as behind:
        for number in range(EPOCHS):
            outcome = epoch(host, plan, store, number)
            true = true_bytes(host)
            assert outcome.steps["texts"].state_bytes.items() >= true.items()
            head = store.head()
            assert head is not None
            bases.add(head.base)
            if number % 4 == 3:
                with closing(LevelHost(plan, 1, 0)) as rebuilt:
                    for copy in (rebuilt, behind):
                        catch_up(copy, store, "here")
                        assert copy.weighed(outcome).steps["texts"].state_bytes.items() >= true.items()
    assert len(bases) > 2
