"""Windows, joins and ranks with their state on disk do and store what they do in memory, whatever becomes of the disk."""

from __future__ import annotations

import errno
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
from headwater.state import changelog, slices
from headwater.state.changelog import MemoryRecordStore, catch_up
from headwater.state.disk import files as disk_files
from headwater.state.disk import timers as disk_timers
from headwater.task.host import LevelHost
from headwater.task.outcome import Outcome

ROWS = Schema.of("k long, v double, name string, t long")
EPOCHS = 9


def windows(left: hw.Stream, right: hw.Stream) -> hw.Stream:
    windowed = left.key_by("k").window(hw.sliding("4 s", "1 s")).allow_lateness("20 s")
    return windowed.agg(total=hw.sum("v"), n=hw.count(), last=hw.max("name"))


def long_windows(left: hw.Stream, right: hw.Stream) -> hw.Stream:
    return left.key_by("k").window(hw.sliding("64 s", "1 s")).agg(total=hw.sum("v"))


def sessions(left: hw.Stream, right: hw.Stream) -> hw.Stream:
    return left.key_by("k").window(hw.session("100 ms")).agg(total=hw.sum("v"), last=hw.max("name"))


def evicting(left: hw.Stream, right: hw.Stream) -> hw.Stream:
    return left.key_by("k").window(hw.count(3)).agg(total=hw.sum("v"))


def window_join(left: hw.Stream, right: hw.Stream) -> hw.Stream:
    pairs = left.join(right, how="full").where("k").equal_to("k").window(hw.tumbling("3 s"))
    return pairs.apply()


def interval_join(left: hw.Stream, right: hw.Stream) -> hw.Stream:
    return left.key_by("k").interval_join(right.key_by("k"), between=("-3 s", "2 s"))


def regular_join(left: hw.Stream, right: hw.Stream) -> hw.Stream:
    return left.key_by("k").join_regular(right.key_by("k"), how="full", ttl="5 ms")


def temporal_join(left: hw.Stream, right: hw.Stream) -> hw.Stream:
    return left.key_by("k").temporal_join(right.key_by("k"), how="left", ttl="3 ms")


def top_n(left: hw.Stream, right: hw.Stream) -> hw.Stream:
    return left.key_by("k").top_n(2, by="v")


def running(left: hw.Stream, right: hw.Stream) -> hw.Stream:
    return left.key_by("k").agg(total=hw.sum("v"), last=hw.max("name"))


PROGRAMS = [
    windows,
    long_windows,
    sessions,
    evicting,
    window_join,
    interval_join,
    regular_join,
    temporal_join,
    top_n,
    running,
]
Build = Callable[[hw.Stream, hw.Stream], hw.Stream]


@pytest.fixture(autouse=True)
def nothing_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_timers.DiskTimers, "SHARE", 0)


def plan_of(build: Build, backend: str) -> JobPlan:
    env = hw.Environment("columns", engine="local", parallelism=1)
    times = hw.Watermarks.monotonous("t")
    left, right = (env.from_rows([], ROWS, times, name=name) for name in ("left", "right"))
    build(left, right).sink(hw.connectors.memory())
    right.sink(hw.connectors.memory(), name="also")
    return plan_job(env.graph, 1, 128, backend, state_memory_bytes=0)


def rows_of(number: int, side: int) -> list[tuple[Any, ...]]:
    """Rows of an epoch: some early, some late, keys that come back."""
    found = []
    for place in range(40):
        mixed = (number * 40 + place) * (7 + side) % 101
        time = max(0, number * 1000 + mixed * 40 - 2000)
        found.append((mixed % 13, mixed / 8, f"{side}-{mixed % 5}", time))
    return found


def epoch(host: LevelHost, plan: JobPlan, store: MemoryRecordStore, number: int) -> Outcome:
    sides = [rows_of(number, side) for side in range(len(plan.sources()))]
    batches = [batch_of(rows, ROWS, [row[-1] for row in rows]) for rows in sides]
    return run_epoch(host, plan, store, number, *batches, now_ms=number, watermark_ms=number * 1000 - 1500)


def shown(outcome: Outcome) -> Iterator[Any]:
    for name, batches in outcome.sink_batches.items():
        for batch in batches:
            yield name, batch.table.to_pylist(), batch.timestamps.tolist()


@pytest.mark.parametrize("build", PROGRAMS)
def test_results_and_records_are_those_of_memory_also_after_rebuilds(build: Build, tmp_path: Path) -> None:
    plan, plain = plan_of(build, "disk"), plan_of(build, "memory")
    store, twin = MemoryRecordStore(), MemoryRecordStore()
    with closing(LevelHost(plain, 1, 0)) as other:
        host = LevelHost(plan, 1, 0, local_dir=tmp_path)
        given = 0
        for number in range(EPOCHS):
            if number == EPOCHS // 2:
                host.close()
                host = LevelHost(plan, 1, 0, local_dir=tmp_path)
            outcome, expected = (
                list(shown(epoch(*one, number))) for one in ((host, plan, store), (other, plain, twin))
            )
            assert outcome == expected
            assert store._records == twin._records
            given += len(outcome)
        assert host.base() == other.base()
        assert given > 0
        host.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("build", [windows, regular_join, running])
def test_a_disk_that_is_full_is_told_with_the_step_and_what_to_do_and_the_next_attempt_is_exact(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, plain = plan_of(build, "disk"), plan_of(build, "memory")
    store, twin = MemoryRecordStore(), MemoryRecordStore()
    with closing(LevelHost(plan, 1, 0, local_dir=tmp_path)) as host, closing(LevelHost(plain, 1, 0)) as other:
        for number in range(4):
            epoch(host, plan, store, number)
            epoch(other, plain, twin, number)
        with monkeypatch.context() as full:
            full.setattr(disk_files, "_written", no_space)
            with pytest.raises(
                StateError, match=r"step '\w+' cannot keep its state in .*No space left.*make room there"
            ):
                epoch(host, plan, store, 4)
        for number in range(4, EPOCHS):
            epoch(host, plan, store, number)
            epoch(other, plain, twin, number)
        assert store._records == twin._records


def no_space(*_: Any) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("build", [windows, regular_join])
def test_a_folder_that_is_gone_is_told_and_a_new_attempt_elsewhere_is_exact(build: Build, tmp_path: Path) -> None:
    plan, plain = plan_of(build, "disk"), plan_of(build, "memory")
    store, twin = MemoryRecordStore(), MemoryRecordStore()
    local = tmp_path / "local"
    local.mkdir()
    with closing(LevelHost(plain, 1, 0)) as other:
        host = LevelHost(plan, 1, 0, local_dir=local)
        for number in range(EPOCHS):
            if number == 4:
                local.rmdir()
                with pytest.raises(StateError, match=f"cannot keep its state in {local}"):
                    epoch(host, plan, store, number)
                host.close()
                host = LevelHost(plan, 1, 0, local_dir=tmp_path)
            epoch(host, plan, store, number)
            epoch(other, plain, twin, number)
        assert store._records == twin._records
        host.close()


def test_a_copy_that_lost_to_another_attempt_is_not_used(tmp_path: Path) -> None:
    plan, store = plan_of(regular_join, "disk"), MemoryRecordStore()
    with closing(LevelHost(plan, 1, 0, local_dir=tmp_path)) as one, closing(LevelHost(plan, 1, 0)) as other:
        for number in range(3):
            epoch(one, plan, store, number)
        lost = store.copy()
        epoch(one, plan, lost, 3)
        epoch(other, plan, store, 5)
        catch_up(one, store, "here")
        assert one.base() == other.base()


@pytest.mark.parametrize("backend", ["memory", "disk"])
@pytest.mark.parametrize("build", [windows, sessions, window_join, interval_join, regular_join, top_n])
def test_a_base_is_written_in_parts_and_every_version_can_be_rebuilt(
    build: Build, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changelog, "COMPACT_FROM_BYTES", 1 << 9)
    monkeypatch.setattr(changelog, "COMPACT_FACTOR", 0)
    monkeypatch.setattr(slices, "_PART_ENTRIES", 16)
    plan, store, heads = plan_of(build, backend), MemoryRecordStore(), []
    with closing(LevelHost(plan, 1, 0)) as host:
        for number in range(5 * EPOCHS):
            # As of a job that older versions began, which put all rows and slices, or all timers, into the first part.
            monkeypatch.setattr(changelog, "FORM", 1 + number * 3 // (5 * EPOCHS))
            epoch(host, plan, store, number)
            with closing(LevelHost(plan, 1, 0)) as fresh:
                head = catch_up(fresh, store, "here")
                assert head is not None
                heads.append(head)
                assert fresh.base() == host.base()
    assert {head.form for head in heads if len(head.parts) > 1} == {1, 2, 3}
