"""OVER: each row beside a plain recomputation over the rows of its partition up to it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples
from tests.transcripts.over_programs import NUMBERS, over

import headwater as hw
from headwater.data.batch import MAX_TIMESTAMP
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


class Model:
    """What OVER gives, row by row, and which rows it drops."""

    def __init__(self, frame: Frame, *, is_partitioned: bool) -> None:
        self.frame, self._is_partitioned = frame, is_partitioned
        self.watermark, self.late = -100, 0
        self._waiting: list[Timed] = []
        self._given: dict[str, list[Timed]] = {}
        self._kept: dict[str, list[Timed]] = {}
        """Of those given, the ones that frames still reach."""

    def push(self, row: Timed) -> None:
        key = row.k if self._is_partitioned else ""
        kept = self._kept.setdefault(key, [])
        if row.at > self.watermark or (self.frame.preceding is not None and all(row.at > other.at for other in kept)):
            self._waiting.append(row)
        else:
            self.late += 1

    def advance(self, watermark: int) -> list[tuple[Any, ...]]:
        if watermark <= self.watermark:
            return []
        self.watermark = watermark
        due = sorted((row for row in self._waiting if row.at <= watermark), key=lambda row: row.at)
        self._waiting = [row for row in self._waiting if row.at > watermark]
        partitions = [row.k if self._is_partitioned else "" for row in due]
        for key in dict.fromkeys(partitions):
            self._kept.setdefault(key, []).extend(row for row, own in zip(due, partitions, strict=True) if own == key)
        found = []
        for key, row in zip(partitions, due, strict=True):
            given_rows = self._given.setdefault(key, [])
            given_rows.append(row)
            frame = self._framed(self._kept[key], row)
            before = [given_rows[-3].id if len(given_rows) > 2 else None, *(other.v for other in given_rows[-2:-1])]
            lags = before if len(before) == 2 else [*before, row.v]
            found.append((*row.values, *recomputed(frame), *numbers(given_rows), *lags))
        if self.frame.kind == "range" and self.frame.preceding is not None:
            until = watermark - self.frame.preceding * 3 // 2
            self._kept = {key: [row for row in rows if row.at > until] for key, rows in self._kept.items()}
        return found

    def _framed(self, rows: list[Timed], row: Timed) -> list[Timed]:
        """The frame of a row among those of its partition, which are in order."""
        preceding = self.frame.preceding
        if self.frame.kind == "rows":
            until = rows[: rows.index(row) + 1]
            return until if preceding is None else until[-preceding - 1 :]
        return [other for other in rows if other.at <= row.at and (preceding is None or other.at >= row.at - preceding)]


def numbers(rows: list[Timed]) -> list[int]:
    """Those of the last row."""
    first_of_times = [n for n, row in enumerate(rows) if not n or rows[n - 1].at != row.at]
    return [len(rows), first_of_times[-1] + 1, len(first_of_times)]


EPOCHS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.integers(-3, 3), st.integers(-8, 9)), max_size=7),
        st.integers(0, 4),
    ),
    max_size=6,
)
FRAMES = st.builds(Frame, st.sampled_from(["rows", "range"]), st.none() | st.integers(0, 5))


@examples(80)
@given(EPOCHS, FRAMES, st.sampled_from([[], ["k"]]), st.sampled_from(["memory", "disk"]))
def test_results_are_those_of_a_plain_recomputation(
    epochs: list[tuple[list[Any], int]], frame: Frame, partition_by: list[str], backend: StateBackendName
) -> None:
    """Rows out of order, some of them late, with a restart in the middle; times begin anew from the watermark."""
    functions = {**SOME, **NUMBERS, "before": Lag("id", 2), "or_own": Lag("v", 1, "v")}

    def build(rows: hw.Stream) -> hw.Stream:
        return over(rows, "over", functions=functions, partition_by=partition_by, frame=frame)

    with ExitStack() as opened:
        harness = opened.enter_context(Harness(build, ROWS, state_backend=backend))
        model = Model(frame, is_partitioned=bool(partition_by))
        for number, (given_rows, ahead) in enumerate(epochs):
            base = max(model.watermark, 0)
            rows = [Timed(k, v, 100 * number + i, base + at) for i, (k, v, at) in enumerate(given_rows)]
            for row in rows:
                model.push(row)
            harness.push_all([row.values for row in rows], [row.at for row in rows])
            harness.watermark(base + ahead)
            assert [tuple(row) for row in harness.take()] == model.advance(base + ahead)
            assert harness.status("over")["late_dropped"] == model.late
            if number == 2:
                restored = Harness.restore(build, ROWS, harness.snapshot(), state_backend=backend)
                harness, model.late = opened.enter_context(restored), 0
        harness.end()
        assert [tuple(row) for row in harness.take()] == model.advance(MAX_TIMESTAMP)


def test_lag_goes_by_the_order_in_which_rows_are_given() -> None:
    """A frame by time takes a row whose time has passed, after one of a later time."""
    functions = {"total": hw.sum("v"), "before": Lag("id", 2)}
    harness = Harness(
        lambda rows: over(rows, "over", functions=functions, partition_by=[], frame=Frame("range", 0)), ROWS
    )
    for number, at in enumerate([0, -1, 2]):
        harness.push_all([("a", 1, 0.5, number)], [at])
        harness.watermark(number)
    assert [row[-1] for row in harness.take()] == [None, None, 0]


@pytest.mark.parametrize(
    ("frame", "kept"),
    [
        (Frame("rows"), {"kept": 2, "distinct": 2}),
        (Frame("range"), {"kept": 2, "distinct": 2}),
        (Frame("rows", 3), {"last": 6}),
        (Frame("rows", 0), {"last": 2}),
        (Frame("range", 10), {"range": 30}),
    ],
)
def test_no_more_is_kept_than_frames_reach(frame: Frame, kept: dict[str, int]) -> None:
    harness = Harness(lambda s: over(s, "over", functions=SOME, partition_by=["k"], frame=frame), ROWS)
    for at in range(100):
        harness.push_all([(k, at, 0.5, at) for k in "ab"], [at] * 2)
        harness.watermark(at)
    assert harness.state_sizes() == {"over": kept}
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
