from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater as hw
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.epoch import offsets
from headwater.epoch.alignment import Marks, MarksFile, Stand, held_back
from headwater.plan.plan import JobPlan, plan_job
from headwater.task.split import SplitHost
from headwater.testing import TimedRows

SCHEMA = "ts long"
PLAIN = hw.Watermarks.monotonous("ts")
MUCH_LATER = 1 << 30
ENOUGH = 200
"""Epochs; every run here that ends does so before."""


def stand(split: str, at: int, *, counts: bool = True, drift: int = 10, group: str = "g") -> Stand:
    return Stand("s", split, group, at, drift, counts)


@pytest.mark.parametrize(
    ("stands", "held"),
    [
        ([], ""),
        ([stand("a", 0), stand("b", 10)], ""),
        ([stand("a", 0), stand("b", 11)], "b"),
        ([stand("a", MIN_TIMESTAMP), stand("b", 0), stand("c", MIN_TIMESTAMP)], "b"),
        ([stand("a", 0, counts=False), stand("b", 50), stand("c", 70)], "c"),
        ([stand("a", 0, counts=False), stand("b", 50, counts=False)], ""),
        ([stand("a", 0), stand("b", 50, drift=50), stand("c", 51, drift=50)], "c"),
        ([stand("a", 0), stand("b", 50, group="other"), stand("c", 55, group="other")], ""),
        ([stand("a", MAX_TIMESTAMP), stand("b", 50), stand("c", 55)], "a"),
        ([stand("a", MAX_TIMESTAMP), stand("b", MAX_TIMESTAMP)], ""),
    ],
)
def test_who_is_too_far_ahead_of_the_slowest_waits(stands: list[Stand], held: str) -> None:
    assert held_back(stands) == {("s", split) for split in held}


def plan_of(*sources: list[list[tuple[int, Any]]], strategy: hw.Watermarks) -> JobPlan:
    env = hw.Environment("aligned", engine="local")
    for number, splits in enumerate(sources):
        stream = env.source(TimedRows(splits, SCHEMA), SCHEMA, strategy, name=f"s{number}")
        stream.rebalance().sink(hw.connectors.memory(), name=f"out{number}")
    return plan_job(env.graph, 1, 128)


def epochs(plan: JobPlan, max_rows: int) -> Iterator[Marks]:
    """Plan and read epoch after epoch, as an engine does; the highest watermark of each split after each epoch."""
    targets = offsets.end_positions(plan)
    offset, marks, reached = offsets.first_offset(plan, lambda _: 0), {}, {}
    for _ in range(ENOUGH):
        after = offsets.next_offset(plan, offset, lambda e: 100 * (e + 1), max_rows, targets, marks=marks)
        if after is offset:
            return
        marks = {}
        for part in offsets.ranges(plan, offset, after):
            host = SplitHost(plan, plan.source(part.node), part.split)
            *_, last = host.run(part.start, part.end, offsets.facts_of(after), ended=part.ended, idle=part.idle)
            said = last.steps[host.uid].watermark_ms
            marks.setdefault(host.uid, {})[part.split] = said
            splits = reached.setdefault(host.uid, {})
            splits[part.split] = max(splits.get(part.split, MIN_TIMESTAMP), said)
        offset = after
        yield {uid: dict(splits) for uid, splits in reached.items()}


def rows(first: int, last: int, step: int) -> list[tuple[int, Any]]:
    """A backlog: all there from the start."""
    return [(0, (ts,)) for ts in range(first, last, step)]


def drifts(plan: JobPlan, max_rows: int) -> list[int]:
    found = []
    for reached in epochs(plan, max_rows):
        live = [at for splits in reached.values() for at in splits.values() if at != MAX_TIMESTAMP]
        if len(live) > 1:
            found.append(max(live) - min(live))
    return found


def test_alignment_bounds_how_far_splits_drift_apart() -> None:
    dense, sparse = rows(0, 2_000, 10), rows(0, 20_000, 100)
    free = plan_of([dense, sparse], strategy=PLAIN)
    assert max(drifts(free, 4)) > 10_000
    aligned = plan_of([dense, sparse], strategy=PLAIN.aligned("g", "300 ms"))
    assert max(drifts(aligned, 4)) <= 300 + 2 * 100, "the drift, and what one epoch reads beyond it"


def test_sources_of_one_group_wait_for_each_other() -> None:
    aligned = plan_of([rows(0, 2_000, 10)], [rows(0, 20_000, 100)], strategy=PLAIN.aligned("g", "300 ms"))
    assert max(drifts(aligned, 2)) <= 300 + 2 * 100


def test_nobody_waits_for_an_idle_split() -> None:
    splits = [rows(0, 20_000, 100), [(0, (0,)), (MUCH_LATER, (1,))]]
    strategy = PLAIN.aligned("g", "300 ms")
    *_, last = epochs(plan_of(splits, strategy=strategy), 4)
    assert last["s0"]["0"] <= 300 + 4 * 100
    *_, last = epochs(plan_of(splits, strategy=strategy.with_idleness("1 s")), 4)
    assert last["s0"]["0"] == MAX_TIMESTAMP


def test_a_split_that_waits_is_not_idle() -> None:
    """It has rows; only, they are not read yet."""
    slow = [(at, (at // 10,)) for at in range(0, 5_000, 100)]
    strategy = PLAIN.aligned("g", "100 ms").with_idleness("300 ms")
    plan = plan_of([rows(0, 5_000, 100), slow], strategy=strategy)
    offset, marks, waited = offsets.first_offset(plan, lambda _: 0), {"s0": {"0": 900, "1": 50}}, 0
    for epoch in range(10):
        after = offsets.next_offset(plan, offset, lambda e: 100 * (e + 1), 4, None, marks=marks)
        waiting = next(part for part in offsets.ranges(plan, offset, after) if part.split == "0")
        assert not waiting.idle
        waited += waiting.start == waiting.end
        offset, marks = after, {"s0": {"1": 60 + epoch}}
    assert waited == 10


def test_a_bounded_run_does_not_wait_for_a_split_that_has_been_read() -> None:
    strategy = PLAIN.aligned("g", "10 ms")
    env = hw.Environment("aligned", engine="local", max_rows_per_epoch=2)
    source = TimedRows([rows(0, 50, 10), rows(0, 5_000, 10)], SCHEMA)
    sink = hw.connectors.memory()
    env.source(source, SCHEMA, strategy).sink(sink)
    assert env.run().status().state == "finished"
    assert len(sink.rows) == 505


def test_an_endless_source_read_to_where_it_stands_comes_to_its_end(tmp_path: Path) -> None:
    log = hw.EventLog(tmp_path)
    topic = log.create_topic("t", SCHEMA, partitions=2)
    for partition, count in ((0, 5), (1, 300)):
        topic.append([{"ts": ts} for ts in range(0, count * 10, 10)], partition)
    env = hw.Environment("aligned", engine="local", max_rows_per_epoch=4)
    sink = hw.connectors.memory()
    env.source(hw.connectors.log(tmp_path, "t"), SCHEMA, PLAIN.aligned("g", "10 ms")).sink(sink)
    env.run(bounded=True)
    assert len(sink.rows) == 305


SPLITS = st.lists(
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 500)), max_size=8).map(
        lambda found: [(at, (ts,)) for at, ts in sorted(found)]
    ),
    min_size=1,
    max_size=3,
)


@given(splits=SPLITS, drift=st.sampled_from(["0 ms", "100 ms"]), max_rows=st.integers(1, 6))
def test_whatever_the_rows_an_aligned_run_with_idleness_reads_them_all(splits: Any, drift: str, max_rows: int) -> None:
    plan = plan_of(splits, strategy=PLAIN.aligned("g", drift).with_idleness("200 ms"))
    last: Marks = {}
    for reached in epochs(plan, max_rows):
        for uid, marks in last.items():
            assert all(reached[uid][split] >= at for split, at in marks.items())
        last = reached
    assert set(last["s0"].values()) == {MAX_TIMESTAMP}


def test_the_planner_reads_what_the_driver_wrote(tmp_path: Path) -> None:
    plan = plan_of([rows(0, 10, 1)], strategy=PLAIN.aligned("g", "1 s"))
    file = MarksFile(tmp_path, plan)
    assert file.read(0, {}) == {}
    file.write(3, {"s0": {"0": 7}})
    assert MarksFile(tmp_path, plan).read(4, {}) == {"s0": {"0": 7}}
    assert file.read(3, {}) == {}, "of an epoch that this history has not come to"
    (tmp_path / "marks.json").write_text("{")
    with pytest.raises(hw.JobError, match=r"marks\.json cannot be read"):
        file.read(4, {})


def test_a_job_without_alignment_writes_no_file(tmp_path: Path) -> None:
    file = MarksFile(tmp_path, plan_of([rows(0, 10, 1)], strategy=PLAIN))
    file.write(3, {"s0": {"0": 7}})
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_goes_on_later_reads_all_that_is_there() -> None:
    env = hw.Environment("aligned", engine="local")
    made = hw.connectors.generator(lambda i: (i,), rate=10.0, splits=2)
    env.source(made, SCHEMA, PLAIN.aligned("g", "300 ms"), name="s").sink(hw.connectors.memory())
    plan = plan_job(env.graph, 1, 128)
    marks = {"s": {"0": 0, "1": 5_000}}
    start = replace(offsets.first_offset(plan, lambda _: 0), positions={"s": {"0": 10, "1": 3}})
    live = offsets.next_offset(plan, start, lambda _: 2_000, 100, None, marks=marks)
    assert live.positions == {"s": {"0": 10, "1": 3}}, "the one ahead waits for the other, which has nothing"
    targets = offsets.positions_now(plan, start, lambda _: 2_000)
    run = offsets.next_offset(plan, start, lambda _: 2_000, 100, targets, marks=marks, goes_on=True)
    assert run.positions == targets == {"s": {"0": 10, "1": 10}}, "nobody waits for what is for the next run"
