"""OVER: each row beside a plain recomputation over the rows of its partition up to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples
from tests.transcripts.over_programs import NUMBERS, over

import headwater as hw
from headwater.graph.nodes.over import Frame, Lag
from headwater.testing import Harness
from headwater.words import StateBackendName

ROWS = "k string, v long, f double, id long"
SOME = {
    "n": hw.count(),
    "some": hw.count("v"),
    "total": hw.sum("v"),
    "mean": hw.avg("v"),
    "low": hw.min("v"),
    "top": hw.max("f"),
    "first": hw.first("v"),
    "last": hw.last("f"),
    "different": hw.count_distinct("v"),
    "all": hw.collect_list("id"),
}


@dataclass(frozen=True)
class Timed:
    """A row, and its time."""

    k: str
    v: int | None
    id: int
    at: int

    @property
    def values(self) -> tuple[Any, ...]:
        return self.k, self.v, None if self.v is None else self.v / 2, self.id


def recomputed(rows: list[Timed]) -> list[Any]:
    """What SOME gives for the rows of a frame."""
    values = [row.v for row in rows if row.v is not None]
    halves = [value / 2 for value in values]
    total = sum(values) if values else None
    return [
        len(rows),
        len(values),
        total,
        sum(values) / len(values) if values else None,
        min(values, default=None),
        max(halves, default=None),
        rows[0].v,
        rows[-1].values[2],
        len(set(values)),
        [row.id for row in rows],
    ]


def framed(rows: list[Timed], at: int, frame: Frame) -> list[Timed]:
    """The frame of a row among those of its partition, which are in order."""
    row = rows[at]
    until = rows[: at + 1] if frame.kind == "rows" else [other for other in rows if other.at <= row.at]
    if frame.preceding is None:
        return until
    if frame.kind == "rows":
        return until[-frame.preceding - 1 :]
    return [other for other in until if other.at >= row.at - frame.preceding]


def numbers(rows: list[Timed], at: int) -> list[int]:
    before = [row for row in rows if row.at < rows[at].at]
    return [at + 1, len(before) + 1, len({row.at for row in before}) + 1]


EPOCHS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.integers(-3, 3), st.integers(-2, 9)), max_size=7),
        st.integers(0, 4),
    ),
    max_size=6,
)
FRAMES = st.builds(Frame, st.sampled_from(["rows", "range"]), st.none() | st.integers(0, 5))


@examples(150)
@given(EPOCHS, FRAMES, st.sampled_from([[], ["k"]]), st.sampled_from(["memory", "disk"]))
def test_results_are_those_of_a_plain_recomputation(
    epochs: list[tuple[list[Any], int]], frame: Frame, partition_by: list[str], backend: StateBackendName
) -> None:
    """Rows out of order, some of them late, with a restart in the middle; times begin anew from the watermark."""
    functions = {**SOME, **NUMBERS, "before": Lag("id", 2), "or_own": Lag("v", 1, "v")}

    def build(rows: hw.Stream) -> hw.Stream:
        return over(rows, "over", functions=functions, partition_by=partition_by, frame=frame)

    harness = Harness(build, ROWS, state_backend=backend)
    timely: list[Timed] = []
    watermark, late = -100, 0
    found = []
    for number, (given_rows, ahead) in enumerate(epochs):
        rows = [Timed(k, v, 100 * number + i, max(watermark, 0) + at) for i, (k, v, at) in enumerate(given_rows)]
        timely += [row for row in rows if row.at > watermark]
        late += sum(row.at <= watermark for row in rows)
        harness.push_all([row.values for row in rows], [row.at for row in rows])
        watermark = max(watermark, 0) + ahead
        harness.watermark(watermark)
        found += harness.take()
        assert late == harness.status("over")["late_dropped"]
        if number == 2:
            harness, late = Harness.restore(build, ROWS, harness.snapshot(), state_backend=backend), 0
    harness.end()
    found += harness.take()
    timely.sort(key=lambda row: row.at)
    expected = []
    for row in timely:
        own = [other for other in timely if not partition_by or other.k == row.k]
        at = own.index(row)
        lags = [own[at - 2].id if at >= 2 else None, own[at - 1].v if at else row.v]
        expected.append((*row.values, *recomputed(framed(own, at, frame)), *numbers(own, at), *lags))
    assert [tuple(row) for row in found] == expected


@pytest.mark.parametrize(
    ("frame", "kept"),
    [
        (Frame("rows"), {"kept": 2}),
        (Frame("range"), {"kept": 2}),
        (Frame("rows", 3), {"last": 6}),
        (Frame("rows", 0), {}),
        (Frame("range", 10), {"range": 20}),
    ],
)
def test_no_more_is_kept_than_frames_reach(frame: Frame, kept: dict[str, int]) -> None:
    harness = Harness(lambda s: over(s, "over", functions=SOME, partition_by=["k"], frame=frame), ROWS)
    for at in range(100):
        harness.push_all([(k, at, 0.5, at) for k in "ab"], [at] * 2)
        harness.watermark(at)
    assert harness.state_sizes() == ({"over": kept} if kept else {})
    assert len(harness.take()) == 200


def test_a_row_without_a_time_is_an_error() -> None:
    harness = Harness(lambda s: over(s, "over", functions=SOME), ROWS)
    with pytest.raises(hw.RowError, match="step 'over' works in event time, and a row has none"):
        harness.push(("a", 1, 1.0, 1))


def test_a_sum_over_one_partition_does_not_overflow_for_another() -> None:
    functions = {"total": hw.sum("v")}
    harness = Harness(lambda s: over(s, "over", functions=functions, partition_by=["k"], frame=Frame("rows", 4)), ROWS)
    harness.push_all([(k, (1 << 62) if n == 0 else 1, 0.0, n) for k in "abc" for n in range(3)], [1] * 9)
    harness.end()
    assert max(row.total for row in harness.take()) == (1 << 62) + 2
