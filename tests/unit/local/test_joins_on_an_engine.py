"""Joins of whole jobs on the local engine: skewed keys, and sides that are empty, idle, end early or run ahead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import headwater as hw
from headwater.connectors.memory import MemorySink
from headwater.testing import TimedRows

LEFT, RIGHT = "k string, l long, ts long", "k string, r long, ts long"
Rows = list[tuple[int, Any]]
Build = Callable[[hw.Stream, hw.Stream], hw.Step]

JOINS: dict[str, Build] = {
    "interval": lambda a, b: a.key_by("k").interval_join(b.key_by("k"), between=("0 ms", "0 ms"), name="join"),
    "window": lambda a, b: a.join(b).where("k").equal_to("k").window(hw.tumbling("10 ms")).apply().with_uid("join"),
    "regular": lambda a, b: a.key_by("k").join_regular(b.key_by("k"), name="join"),
    "temporal": lambda a, b: a.key_by("k").temporal_join(b.key_by("k"), name="join"),
}
"""Of rows with times in steps of ten, the first three join those of one key and time."""


def run(
    join: str, left: Rows, right: Rows, *, strategy: hw.Watermarks | None = None, max_rows: int = 1_000_000
) -> tuple[list[Any], list[dict[str, int]]]:
    """The rows that come out with the time at which they do, and what the join keeps after each epoch."""
    strategy = strategy or hw.Watermarks.monotonous("ts")
    env = hw.Environment("join", engine="local", checkpoint_interval="1 ms", max_rows_per_epoch=max_rows)
    a = env.source(TimedRows([left], LEFT), LEFT, strategy, name="a")
    b = env.source(TimedRows([right], RIGHT), RIGHT, strategy, name="b")
    sink, kept, jobs = MemorySink(), [{}], []
    JOINS[join](a, b).process(Stamp(), "k string, l long, r long, now long").sink(sink)

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.CLEANED and jobs:
            kept.append(jobs[0].status().steps.get("join", {}).get("state", {}))

    jobs.append(env.start(on_step=on_step, clock=lambda epoch: 10 * (epoch + 1)))
    jobs[0].wait()
    return sink.rows, kept


class Stamp(hw.ProcessFunction):
    """Keeps what all joins give."""

    def process(self, event: Any, ctx: hw.Context) -> Any:
        yield event.k, event.l, event.r, ctx.timestamp


def at_once(rows: list[Any]) -> Rows:
    return [(0, row) for row in rows]


@pytest.mark.parametrize("max_rows", [7, 1_000_000])
@pytest.mark.parametrize("join", ["interval", "window", "regular"])
def test_one_key_with_half_of_the_rows_comes_out_whole(join: str, max_rows: int) -> None:
    keys = ["hot" if i % 2 else f"cold{i}" for i in range(40)]
    rows = at_once([(key, i, 0) for i, key in enumerate(keys)])
    found, _ = run(join, rows, rows, max_rows=max_rows)
    expected = Counter((key, i, j) for i, key in enumerate(keys) for j, other in enumerate(keys) if key == other)
    assert Counter((row.k, row.l, row.r) for row in found) == expected
    assert len(found) == 20 * 20 + 20


def test_a_hot_key_finds_its_version() -> None:
    rows = at_once([("hot" if i % 2 else f"cold{i}", i, 10 * i) for i in range(40)])
    versions = at_once([("hot", i, 10 * i) for i in range(0, 40, 4)])
    found, _ = run("temporal", rows, versions, max_rows=3)
    assert [(row.l, row.r) for row in found] == [(i, i - i % 4) for i in range(1, 40, 2)]


@pytest.mark.parametrize("join", JOINS)
@pytest.mark.parametrize("empty", ["left", "right", "both"])
def test_an_empty_side_gives_nothing_and_ends(join: str, empty: str) -> None:
    rows = at_once([("a", i, 10 * i) for i in range(5)])
    found, _ = run(join, [] if empty != "right" else rows, [] if empty != "left" else rows)
    assert found == []


@pytest.mark.parametrize("join", JOINS)
def test_a_side_that_ends_early_does_not_hold_up_the_other(join: str) -> None:
    early = at_once([("a", 1, 0)])
    late = [(10 * i, ("a", i, 10 * i)) for i in range(20)]
    found, kept = run(join, late, early)
    assert {(row.l, row.r) for row in found} >= {(0, 1)}
    if join in ("interval", "window"):
        assert max(sum(sizes.values()) for sizes in kept) <= 4


@pytest.mark.parametrize("join", ["interval", "window", "temporal"])
@pytest.mark.parametrize("quiet", ["left", "right"])
def test_nobody_waits_for_an_idle_side(join: str, quiet: str) -> None:
    busy = [(10 * i, ("a", i, 10 * i)) for i in range(100)]
    rare = [(0, ("a", 0, 0)), (900, ("a", 90, 900))]
    strategy = hw.Watermarks.monotonous("ts").with_idleness("50 ms")
    left, right = (rare, busy) if quiet == "left" else (busy, rare)
    found, kept = run(join, left, right, strategy=strategy)
    assert max(sum(sizes.values()) for sizes in kept) <= 20  # a side that waited would keep a hundred
    assert {(row.l, row.r) for row in found} >= {(0, 0), (90, 90)}


@pytest.mark.parametrize("join", ["interval", "window"])
def test_a_side_that_runs_ahead_is_held_back_so_that_little_is_kept(join: str) -> None:
    fast = at_once([("a", i, 10 * i) for i in range(200)])
    slow = [(10 * i, ("a", i, 10 * i)) for i in range(200)]
    plain = hw.Watermarks.monotonous("ts")
    found, kept = run(join, fast, slow, strategy=plain.aligned("both", "50 ms"), max_rows=5)
    free, kept_by_free = run(join, fast, slow, strategy=plain, max_rows=5)
    assert sorted(found) == sorted(free)
    assert [(row.l, row.r) for row in sorted(found)] == [(i, i) for i in range(200)]
    assert max(sum(sizes.values()) for sizes in kept) <= 30
    assert max(sum(sizes.values()) for sizes in kept_by_free) >= 80
