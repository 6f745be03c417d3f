"""What a worker keeps on its disk is a cache: whatever happens to the folder, state is exact or the attempt fails."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.parts.places import batch_of, run_epoch

import headwater as hw
from headwater.data.schema import Schema
from headwater.errors import StateError
from headwater.plan.plan import JobPlan, plan_job
from headwater.state.changelog import MemoryRecordStore, catch_up
from headwater.task.host import LevelHost

ROWS = Schema.of("k bigint, v bigint")


class Keeper(hw.KeyedProcessFunction):
    total = hw.ValueState("bigint", default=0)
    by = hw.MapState("bigint", "bigint")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.total.set(self.total.get() + event.v)
        self.by.put(event.v, self.by.get(event.v, 0) + 1)
        return iter(())


def plan_of(backend: str) -> JobPlan:
    env = hw.Environment("folder", engine="local", parallelism=1)
    env.from_rows([], ROWS).key_by("k").process(Keeper(), "k bigint").sink(hw.connectors.memory())
    return plan_job(env.graph, 1, 128, backend, state_memory_bytes=0)


def epoch(host: LevelHost, plan: JobPlan, store: MemoryRecordStore, number: int) -> None:
    rows = [((number * 37 + place * 11) % 200, place % 5) for place in range(80)]
    run_epoch(host, plan, store, number, batch_of(rows, ROWS, range(len(rows))), now_ms=number)


def truncate(folder: Path) -> None:
    for file in folder.rglob("*"):
        if file.is_file() and file.suffix in {".sst", ".log"}:
            with file.open("r+b") as opened:
                opened.truncate(file.stat().st_size // 2)


def fill(folder: Path) -> None:
    for file in folder.rglob("*.sst"):
        file.write_bytes(b"\0" * file.stat().st_size)


@pytest.mark.parametrize("damage", [shutil.rmtree, truncate, fill], ids=["deleted", "truncated", "overwritten"])
def test_a_folder_that_is_damaged_between_epochs_gives_exact_state_or_an_error_and_then_exact_state(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    plan, plain = plan_of("disk"), plan_of("memory")
    store, twin = MemoryRecordStore(), MemoryRecordStore()
    with closing(LevelHost(plain, 1, 0)) as other:
        host = LevelHost(plan, 1, 0, local_dir=tmp_path)
        told: list[str] = []
        for number in range(12):
            if number == 6:
                for folder in tmp_path.iterdir():
                    damage(folder)
            try:
                epoch(host, plan, store, number)
            except StateError as error:
                told.append(str(error))
                host.close()
                host = LevelHost(plan, 1, 0, local_dir=tmp_path)  # as the next attempt, in a new worker
                epoch(host, plan, store, number)
            epoch(other, plain, twin, number)
            assert store._records == twin._records
        assert host.base() == other.base()
        host.close()
    assert all(str(tmp_path) in text for text in told)


def test_a_copy_that_is_stale_reads_what_it_lacks(tmp_path: Path) -> None:
    plan, store = plan_of("disk"), MemoryRecordStore()
    with closing(LevelHost(plan, 1, 0, local_dir=tmp_path)) as one, closing(LevelHost(plan, 1, 0)) as other:
        epoch(one, plan, store, 0)
        for number in range(1, 6):
            epoch(other, plan, store, number)
        epoch(one, plan, store, 6)
        catch_up(other, store, "here")
        assert one.base() == other.base()
