from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

import headwater as hw
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.testing import Harness

INPUTS = {"left": "k string, v long", "right": "k string, w long"}
LATE_LEFT, LATE_RIGHT = hw.OutputTag("late_left", INPUTS["left"]), hw.OutputTag("late_right", INPUTS["right"])
ALONE_LEFT, ALONE_RIGHT = hw.OutputTag("alone_left", INPUTS["left"]), hw.OutputTag("alone_right", INPUTS["right"])
TAGS = (LATE_LEFT, LATE_RIGHT, ALONE_LEFT, ALONE_RIGHT)


def joined(lower: int, upper: int, *, by_function: bool = False, **settings: Any) -> Any:
    def build(left: hw.Stream, right: hw.Stream) -> hw.Stream:
        key: Any = (lambda row: row.k) if by_function else "k"
        dtype = "string" if by_function else None
        return left.key_by(key, type=dtype).interval_join(
            right.key_by(key, type=dtype),
            between=(f"{lower} ms", f"{upper} ms"),
            late_left=LATE_LEFT,
            late_right=LATE_RIGHT,
            unmatched_left=ALONE_LEFT,
            unmatched_right=ALONE_RIGHT,
            **settings,
        )

    return build


class Naive:
    """The same, row by row, over lists."""

    def __init__(self, lower: int, upper: int) -> None:
        self.bounds = {"left": (lower, upper), "right": (-upper, -lower)}
        self.kept: dict[str, list[list[Any]]] = {"left": [], "right": []}
        self.watermarks = {"left": MIN_TIMESTAMP, "right": MIN_TIMESTAMP}
        self.watermark_ms = MIN_TIMESTAMP

    def push(self, side: str, key: str | None, value: int, at: int) -> tuple[list[Any], list[Any]]:
        if at < self.watermark_ms:
            return [], [(key, value, at)]
        if key is None:
            return [], []
        low, high = self.bounds[side]
        row = [key, value, at, False]
        pairs = []
        for other in self.kept["right" if side == "left" else "left"]:
            if other[0] == key and at + low <= other[2] <= at + high:
                row[3] = other[3] = True
                left, right = (row, other) if side == "left" else (other, row)
                pairs.append((key, left[1], right[1], max(at, other[2])))
        self.kept[side].append(row)
        return pairs, []

    def watermark(self, side: str, to: int) -> dict[str, list[Any]]:
        self.watermarks[side] = max(self.watermarks[side], to)
        if min(self.watermarks.values()) <= self.watermark_ms:
            return {"left": [], "right": []}
        self.watermark_ms = min(self.watermarks.values())
        alone = {}
        for name, rows in self.kept.items():
            stays = max(self.bounds[name][1], 0)
            dead = [row for row in rows if row[2] + stays <= self.watermark_ms]
            self.kept[name] = [row for row in rows if row[2] + stays > self.watermark_ms]
            alone[name] = [(k, v, at + stays) for k, v, at, met in sorted(dead, key=lambda r: r[2]) if not met]
        return alone


class NaiveByClock:
    """The same in processing time, where a row has the time at which it comes."""

    def __init__(self, lower: int, upper: int) -> None:
        self.bounds = {"left": (lower, upper), "right": (-upper, -lower)}
        self.kept: dict[str, list[list[Any]]] = {"left": [], "right": []}
        self.now_ms = 0

    def push(self, side: str, key: str | None, value: int, at: int) -> list[Any]:
        if key is None:
            return []
        low, high = self.bounds[side]
        row = [key, value, self.now_ms, False]
        pairs = []
        for other in self.kept["right" if side == "left" else "left"]:
            if other[0] == key and low <= other[2] - self.now_ms <= high:
                row[3] = other[3] = True
                left, right = (row, other) if side == "left" else (other, row)
                pairs.append((key, left[1], right[1], at))
        self.kept[side].append(row)
        return pairs

    def clock(self, to: int) -> dict[str, list[Any]]:
        self.now_ms = max(self.now_ms, to)
        alone = {}
        for name, rows in self.kept.items():
            stays = max(self.bounds[name][1], 0)
            dead = [row for row in rows if row[2] + stays < self.now_ms]
            self.kept[name] = [row for row in rows if row[2] + stays >= self.now_ms]
            alone[name] = [(key, value, None) for key, value, _, met in dead if not met]
        return alone


sides = st.sampled_from(["left", "right"])
actions = st.lists(
    st.one_of(
        st.tuples(
            st.just("row"), sides, st.sampled_from(["a", "b", "c", None]), st.integers(0, 9), st.integers(-20, 60)
        ),
        st.tuples(st.just("watermark"), sides, st.integers(-20, 60)),
    ),
    max_size=30,
)
bounds = st.tuples(st.integers(-15, 15), st.integers(0, 20)).map(lambda b: (b[0], b[0] + b[1]))


def shown(rows: list[Any]) -> list[Any]:
    return [(*row, row.timestamp) for row in rows]


def joined_by_clock(lower: int, upper: int) -> Any:
    def build(left: hw.Stream, right: hw.Stream) -> hw.Stream:
        between = (f"{lower} ms", f"{upper} ms")
        tags = {"unmatched_left": ALONE_LEFT, "unmatched_right": ALONE_RIGHT}
        return left.interval_join(right, between, on="k", time="processing", **tags)

    return build


@examples(100)
@given(script=actions, bounds=bounds, restore=st.integers(0, 30), parallelism=st.sampled_from([1, 2, 3]))
def test_in_processing_time_too(script: list[Any], bounds: tuple[int, int], restore: int, parallelism: int) -> None:
    build = joined_by_clock(*bounds)
    harness, naive = Harness(build, INPUTS, parallelism=2), NaiveByClock(*bounds)
    for number, action in enumerate([*script, ("clock", None, 10**6)]):
        if number == restore:
            harness = Harness.restore(build, INPUTS, harness.snapshot(), parallelism=parallelism)
        if action[0] == "row":
            _, side, key, value, at = action
            harness.push((key, value), at=at, to=side)
            expected = sorted(naive.push(side, key, value, at))
            assert sorted((row.k, row.v, row.w, row.timestamp) for row in harness.take()) == expected
        else:
            harness.advance_to(action[2])
            alone = naive.clock(action[2])
            for name, tag in (("left", ALONE_LEFT), ("right", ALONE_RIGHT)):
                assert sorted(shown(harness.take(tag))) == sorted(alone[name])
    assert harness.state_sizes() == {}


def test_in_processing_time_the_cut_into_epochs_is_the_clock() -> None:
    """Rows of one epoch have one time, whichever side comes first."""
    for first, second in (("left", "right"), ("right", "left")):
        harness = Harness(joined_by_clock(0, 0), INPUTS)
        harness.push(("a", 1), to=first)
        harness.push(("a", 2), to=second)
        assert len(harness.take()) == 1


def test_what_makes_no_sense_in_processing_time_is_refused(tmp_path: Path) -> None:
    env = hw.Environment("test", engine="local")
    left = env.source(hw.connectors.log(tmp_path, "topic"), "k string", name="live")
    right = env.from_rows([], "k string", name="right")
    left.interval_join(right, ("0 s", "1 s"), on="k", time="processing")  # needs no watermarks
    late = hw.OutputTag("late", "k string")
    with pytest.raises(hw.GraphError, match=r"knows no late rows by time='processing'.*leave them out"):
        left.interval_join(right, ("0 s", "1 s"), on="k", time="processing", late_left=late)
    with pytest.raises(hw.GraphError, match="joins by time='event' or 'processing'; got 'wall'"):
        left.interval_join(right, ("0 s", "1 s"), on="k", time="wall")  # type: ignore[arg-type]


@examples(150)
@given(script=actions, bounds=bounds, by_function=st.booleans(), restore=st.integers(0, 30))
def test_row_by_row_it_gives_what_lists_give(
    script: list[Any], bounds: tuple[int, int], by_function: bool, restore: int
) -> None:
    build = joined(*bounds, by_function=by_function)
    harness, naive = Harness(build, INPUTS), Naive(*bounds)
    ends = [("watermark", side, MAX_TIMESTAMP) for side in ("left", "right")]
    for number, action in enumerate([*script, *ends]):
        if number == restore:
            harness = Harness.restore(build, INPUTS, harness.snapshot())
        if action[0] == "row":
            _, side, key, value, at = action
            pairs, late = naive.push(side, key, value, at)
            harness.push((key, value), at=at, to=side)
            found = [(row.k, row.v, row.w, row.timestamp) for row in harness.take()]
            assert sorted(found) == sorted(pairs)
            assert shown(harness.take(LATE_LEFT if side == "left" else LATE_RIGHT)) == late
        else:
            _, side, to = action
            alone = naive.watermark(side, to)
            harness.watermark(to, of=side)
            assert shown(harness.take(ALONE_LEFT)) == alone["left"]
            assert shown(harness.take(ALONE_RIGHT)) == alone["right"]
        kept = {name: len(rows) for name, rows in naive.kept.items() if rows}
        assert harness.state_sizes() == ({"interval_join": kept} if kept else {})
    assert harness.state_sizes() == {}


@examples(80)
@given(script=actions, bounds=bounds)
def test_results_do_not_depend_on_epochs_or_copies_of_state(script: list[Any], bounds: tuple[int, int]) -> None:
    build = joined(*bounds)
    one_by_one, together = Harness(build, INPUTS), Harness(build, INPUTS, parallelism=2)
    found: dict[Any, list[Any]] = {tag: [] for tag in (None, *TAGS)}
    ends = [("watermark", "left", 100), ("watermark", "right", 100)]
    for kind, group in itertools.groupby([*script, *ends], lambda action: action[0]):
        acts = list(group)
        for action in acts:
            if kind == "row":
                one_by_one.push(action[2:4], at=action[4], to=action[1])
            else:
                one_by_one.watermark(action[2], of=action[1])
                together.watermark(action[2], of=action[1])
        for side in ("left", "right"):
            rows = [action for action in acts if kind == "row" and action[1] == side]
            if rows:
                together.push_all([row[2:4] for row in rows], [row[4] for row in rows], to=side)
        for tag, rows in found.items():
            rows.extend(shown(together.take(tag)))
        together = Harness.restore(build, INPUTS, together.snapshot(), parallelism=2)
    for tag, rows in found.items():
        assert sorted(rows, key=repr) == sorted(shown(one_by_one.take(tag)), key=repr)


def test_bounds_can_be_exclusive() -> None:
    for inclusive, expected in ((True, [5, 6, 10]), (False, [6])):
        harness = Harness(joined(-5, 0, lower_inclusive=inclusive, upper_inclusive=inclusive), INPUTS)
        harness.push(("a", 0), at=10, to="left")
        for at in (4, 5, 6, 10, 11):
            harness.push(("a", at), at=at, to="right")
        assert [row.w for row in harness.take()] == expected


def test_one_key_with_half_the_rows_comes_out_whole() -> None:
    harness = Harness(joined(0, 0), INPUTS, parallelism=2)
    keys = ["hot" if i % 2 else f"cold{i}" for i in range(2_000)]
    for side in ("left", "right"):
        harness.push_all([(key, i) for i, key in enumerate(keys)], [0] * len(keys), to=side)
    assert len(harness.take()) == 1_000 * 1_000 + 1_000
    harness.end()
    assert harness.state_sizes() == {}


@pytest.mark.parametrize("quiet", ["left", "right"])
def test_a_side_that_is_empty_idle_or_ended_holds_nothing_up(quiet: str) -> None:
    busy = "right" if quiet == "left" else "left"
    for act in ("idle", "end"):
        harness = Harness(joined(-5, 5), INPUTS)
        getattr(harness, act)(of=quiet)
        harness.push(("a", 1), at=10, to=busy)
        harness.watermark(20, of=busy)
        assert harness.state_sizes() == {}
        assert [row.k for row in harness.take(ALONE_LEFT if busy == "left" else ALONE_RIGHT)] == ["a"]


def test_columns_of_both_sides_are_shown() -> None:
    env = hw.Environment("test", engine="local")
    left = env.from_rows([], "k string, v long, t long", name="l").key_by("k")
    right = env.from_rows([], "k string, id string, v long, t long", name="r")
    same = left.interval_join(right.key_by("k"), between=("0 s", "1 s"))
    other = left.interval_join(right.key_by("id"), between=("0 s", "1 s"), suffix="_2")
    assert same.schema.names == ["k", "v", "t", "id", "v_right", "t_right"]
    assert other.schema.names == ["k", "v", "t", "k_2", "id", "v_2", "t_2"]


def test_wrong_use_is_refused_when_the_graph_is_built() -> None:
    env = hw.Environment("test", engine="local")
    left = env.from_rows([], "k string, v long, v_right long", name="l")
    right = env.from_rows([], "k string, v long", name="r")
    a, b = left.key_by("k"), right.key_by("k")
    cases: list[tuple[str, Any]] = [
        ("needs both streams keyed", lambda: a.interval_join(right, ("0 s", "1 s"))),  # type: ignore[arg-type]
        ("keys of one type", lambda: a.interval_join(right.key_by("v"), ("0 s", "1 s"))),
        ("not above the upper", lambda: a.interval_join(b, ("2 s", "1 s"))),
        ("not above the upper", lambda: a.interval_join(b, ("1 s", "1 s"), lower_inclusive=False)),
        ("needs two bounds", lambda: a.interval_join(b, "1 s")),  # type: ignore[arg-type]
        ("names of their own.*v_right", lambda: a.interval_join(b, ("0 s", "1 s"))),
        (
            "needs for late_right an hw.OutputTag",
            lambda: a.interval_join(b, ("0 s", "1 s"), suffix="_2", late_right=LATE_RIGHT),
        ),
    ]
    for message, call in cases:
        with pytest.raises(hw.GraphError, match=message):
            call()


def test_a_row_without_event_time_is_an_error() -> None:
    harness = Harness(joined(0, 5), INPUTS)
    with pytest.raises(hw.RowError, match="event time"):
        harness.push(("a", 1), to="left")


def test_columns_may_have_any_name() -> None:
    inputs = {"left": "id long, op string", "right": "id long, time long, marked string"}

    def build(left: hw.Stream, right: hw.Stream) -> hw.Stream:
        return left.key_by("id").interval_join(right.key_by("id"), between=("-5 ms", "5 ms"))

    harness = Harness(build, inputs)
    harness.push((1, "x"), at=1, to="left")
    harness.push((2, 3, "y"), at=2, to="right")
    harness = Harness.restore(build, inputs, harness.snapshot())
    harness.push((1, 4, "z"), at=3, to="right")
    assert harness.take() == [(1, "x", 4, "z")]


def test_a_key_of_several_columns_meets_a_function_that_gives_them_together() -> None:
    inputs = {"left": "a string, b long", "right": "c string, d long"}

    def build(left: hw.Stream, right: hw.Stream) -> hw.Stream:
        keyed = left.key_by(lambda row: (row.a, row.b), type="struct<x:string,y:bigint>")
        return keyed.interval_join(right.key_by("c", "d"), between=("-5 ms", "5 ms"))

    harness = Harness(build, inputs, parallelism=2)
    for row in (("a", 1), ("a", 2), ("a", None), (None, None)):
        harness.push(row, at=1, to="left")
        harness.push(row, at=2, to="right")
    assert sorted(harness.take()) == [("a", 1, "a", 1), ("a", 2, "a", 2)]
