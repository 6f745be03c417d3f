"""Joins by columns against joins by element and against a few lines of Python, and what is left of windows that are over."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples
from tests.unit.operators.test_window_operators import Player, entries, operators

import headwater as hw
from headwater.graph.windowed import JOINS
from headwater.operators.join import run
from headwater.operators.join import window as window_join
from headwater.operators.join.matching import NONE, pairs
from headwater.operators.join.window import WindowJoinOperator
from headwater.operators.window.operator import WindowOperator
from headwater.streams.stream import Stream
from headwater.testing import Harness
from headwater.windows.triggers import EventTimeTrigger

INPUTS = {"left": "k string, n long", "right": "k string, n long"}
LATE_LEFT = hw.OutputTag("late_left", "k string, n long")
LATE_RIGHT = hw.OutputTag("late_right", "k string, n long")
WINDOWS = {
    "tumbling": hw.tumbling("10 ms", "-3 ms"),
    "sliding": hw.sliding("10 ms", "5 ms", "2 ms"),
    "sliding with gaps": hw.sliding("4 ms", "10 ms"),
    "sliding, undivided": hw.sliding("10 ms", "4 ms"),
    "cumulating": hw.cumulate("5 ms", "15 ms", "1 ms"),
}


class ByElement(EventTimeTrigger):
    """The default trigger under another name, which the join by columns does not know."""


def joined(windows: hw.WindowAssigner, lateness: int = 0, *, by_element: bool = False, how: str = "inner") -> Any:
    def build(left: Stream, right: Stream) -> Stream:
        handle = left.join(right, how=how).where("k").equal_to("k").window(windows).allow_lateness(f"{lateness} ms")
        handle = handle.late_left(LATE_LEFT).late_right(LATE_RIGHT)
        return (handle.trigger(ByElement()) if by_element else handle).apply()

    return build


class Naive:
    """The same join, written to be read."""

    def __init__(self, windows: hw.WindowAssigner, lateness: int, how: str = "inner") -> None:
        self._windows, self._lateness, self._how = windows, lateness, how
        self._watermarks = {"left": -(10**6), "right": -(10**6)}
        self._rows: dict[tuple[str | None, hw.Window], dict[str, list[int]]] = {}

    def push(self, side: str, key: str | None, n: int, at: int) -> list[Counter[Any]]:
        now, out = min(self._watermarks.values()), Counter[Any]()
        open_windows = [w for w in self._windows.assign(None, at) if w.last + self._lateness > now]
        late = Counter([(key, n, at)]) if not open_windows and at + self._lateness <= now else Counter[Any]()
        for window in open_windows:
            rows = self._rows.setdefault((key, window), {"left": [], "right": []})
            rows[side].append(n)
            if window.last <= now:
                out += self._shown(key, window)
        return [out, late if side == "left" else Counter(), late if side == "right" else Counter()]

    def watermark(self, side: str, at: int) -> list[Counter[Any]]:
        before = min(self._watermarks.values())
        self._watermarks[side] = max(self._watermarks[side], at)
        now, out = min(self._watermarks.values()), Counter[Any]()
        for key, window in list(self._rows):
            if before < window.last <= now:
                out += self._shown(key, window)
            if window.last + self._lateness <= now:
                del self._rows[key, window]
        return [out, Counter(), Counter()]

    def _shown(self, key: str | None, window: hw.Window) -> Counter[Any]:
        lefts, rights = self._rows[key, window].values()
        meets = key is not None and lefts and rights
        shown: list[tuple[int | None, ...]] = []
        if self._how in ("semi", "anti"):
            shown += [(n,) for n in lefts if bool(meets) == (self._how == "semi")]
        elif meets:
            shown += product(lefts, rights)
        else:
            shown += [(n, None) for n in lefts if self._how in ("left", "full")]
            shown += [(None, m) for m in rights if self._how in ("right", "full")]
        return Counter((key, *values, *window, window.last) for values in shown)


def play(harness: Harness, action: tuple[Any, ...]) -> list[Counter[Any]]:
    """One action as an epoch; the pairs and the late rows that came out of it."""
    if action[0] == "watermark":
        harness.watermark(action[2], of=action[1])
    else:
        harness.push(action[2:4], at=action[4], to=action[1])
    found = Counter(
        (*row[:-2], millis(row.window_start), millis(row.window_end), row.timestamp) for row in harness.take()
    )
    return [found, *(Counter((*row, row.timestamp) for row in harness.take(tag)) for tag in (LATE_LEFT, LATE_RIGHT))]


def millis(moment: Any) -> int:
    return round(moment.timestamp() * 1000)


sides = st.sampled_from(["left", "right"])
keys = st.sampled_from(["a", "a", "a", "b", "c", None])
actions = st.lists(
    st.one_of(
        st.tuples(st.just("row"), sides, keys, st.integers(-9, 9), st.integers(-30, 60)),
        st.tuples(st.just("row"), sides, keys, st.integers(-9, 9), st.sampled_from([-3, 0, 6, 7, 10, 12, 16, 17])),
        st.tuples(st.just("watermark"), sides, st.integers(-30, 60)),
    ),
    max_size=30,
)
END = [("watermark", "left", 200), ("watermark", "right", 200)]


def check_both_ways(windows: hw.WindowAssigner, script: list[Any], lateness: int, how: str) -> None:
    naive = Naive(windows, lateness, how)
    by_columns = Harness(joined(windows, lateness, how=how), INPUTS)
    by_element = Harness(joined(windows, lateness, by_element=True, how=how), INPUTS)
    assert [type(o) for o in operators(by_columns) + operators(by_element)] == [WindowJoinOperator, WindowOperator]
    for action in [*script, *END]:
        kind, *arguments = action
        expected = naive.push(*arguments) if kind == "row" else naive.watermark(*arguments)
        assert play(by_columns, action) == expected
        assert play(by_element, action) == expected
    assert entries(by_columns) == entries(by_element) == {}


@pytest.mark.parametrize("windows", WINDOWS)
@examples(60)
@given(script=actions, lateness=st.sampled_from([0, 3, 10, 25]), how=st.sampled_from(["inner", *JOINS]))
def test_joins_by_columns_and_by_element_give_the_rows_there_are(
    windows: str, script: list[Any], lateness: int, how: str
) -> None:
    check_both_ways(WINDOWS[windows], script, lateness, how)


@pytest.mark.parametrize("how", ["inner", *JOINS])
@pytest.mark.parametrize(("first", "second"), [("left", "right"), ("right", "left")])
def test_late_row_that_can_meet_none_lets_the_window_of_its_key_fire_again(first: str, second: str, how: str) -> None:
    fired = [("watermark", "left", 9), ("watermark", "right", 9)]
    script = [("row", first, None, 0, 3), *fired, ("row", second, None, 1, 4)]
    check_both_ways(WINDOWS["sliding"], script, 10, how)


@examples(60)
@given(
    rows=st.lists(st.tuples(sides, keys, st.integers(-9, 9), st.integers(0, 60)), max_size=40),
    size=st.integers(1, 40),
    how=st.sampled_from(["inner", *JOINS]),
)
def test_results_do_not_depend_on_epochs(rows: list[Any], size: int, how: str) -> None:
    found = []
    for by in (1, size):
        harness = Harness(joined(WINDOWS["sliding"], how=how), INPUTS, parallelism=2)
        for at in range(0, len(rows), by):
            for side in INPUTS:
                part = [row for row in rows[at : at + by] if row[0] == side]
                harness.push_all([row[1:3] for row in part], [row[3] for row in part], to=side)
        harness.end()
        found.append(Counter(map(tuple, harness.take())))
    assert found[0] == found[1]


@examples(40)
@given(rows=st.lists(st.tuples(sides, st.sampled_from("aab"), st.integers(0, 60)), max_size=20))
def test_sessions_are_of_both_sides_together(rows: list[Any]) -> None:
    def build(left: Stream, right: Stream) -> Stream:
        groups = left.cogroup(right).where("k").equal_to("k").window(hw.session("5 ms"))
        return groups.apply(
            lambda ls, rs, ctx: [(ctx.key, ctx.window.end, sorted(l.n for l in ls), sorted(r.n for r in rs))],  # noqa: E741
            "k string, end long, ls array<long>, rs array<long>",
        )

    expected: dict[tuple[str, int], dict[str, list[int]]] = {}
    for key in "ab":
        burst: list[Any] = []
        for side, _, at in [*sorted((r for r in rows if r[1] == key), key=lambda r: r[2]), ("end", key, 1000)]:
            if burst and at > burst[-1][1] + 5:
                group = {name: [t for s, t in burst if s == name] for name in INPUTS}
                expected[key, burst[-1][1] + 5] = group
                burst = []
            burst.append((side, at))
    harness = Harness(build, INPUTS)
    for side, key, at in rows:
        harness.push((key, at), at=at, to=side)
    harness.end()
    assert {(row.k, row.end): {"left": row.ls, "right": row.rs} for row in harness.take()} == expected
    assert entries(harness) == {}


@examples(40)
@given(
    rows=st.lists(st.tuples(sides, keys, st.integers(-9, 9), st.integers(0, 60)), max_size=30),
    cut=st.integers(0, 30),
    how=st.sampled_from(JOINS),
    to=st.sampled_from([1, 3]),
)
def test_results_are_the_same_after_the_number_of_subtasks_changed(
    rows: list[Any], cut: int, how: str, to: int
) -> None:
    build = joined(WINDOWS["sliding"], 10, how=how)
    found = []
    for parallelism in (2, to):
        harness = Harness(build, INPUTS, parallelism=2)
        for number, (side, key, n, at) in enumerate(rows):
            if number == cut:
                harness.watermark(20)
                harness = Harness.restore(build, INPUTS, harness.snapshot(), parallelism=parallelism)
            harness.push((key, n), at=at, to=side)
        harness.end()
        found.append(Counter(map(tuple, harness.take())))
    assert found[0] == found[1]


# -- parts ----------------------------------------------------------------------------------------------------------


@examples(100)
@given(left=st.lists(st.integers(0, 4), max_size=12), right=st.lists(st.integers(0, 4), max_size=12))
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_pairs_are_left_rows_first_in_order(size: int, left: list[int], right: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "CHUNK_PAIRS", size)
        parts = list(pairs(np.array(left, np.int64), np.array(right, np.int64), 5))
    assert all(len(lefts) <= max(size, len(right)) for lefts, _ in parts)
    found = [pair for lefts, rights in parts for pair in zip(lefts.tolist(), rights.tolist(), strict=True)]
    assert found == [(a, b) for a, b in product(range(len(left)), range(len(right))) if left[a] == right[b]]


@examples(100)
@given(left=st.lists(st.integers(0, 4), max_size=12), right=st.lists(st.integers(0, 4), max_size=12))
def test_left_rows_without_a_match_stand_where_their_matches_would(left: list[int], right: list[int]) -> None:
    found = [
        pair
        for lefts, rights in pairs(np.array(left, np.int64), np.array(right, np.int64), 5, shows_alone=True)
        for pair in zip(lefts.tolist(), rights.tolist(), strict=True)
    ]
    expected = []
    for a, code in enumerate(left):
        expected += [(a, b) for b, other in enumerate(right) if other == code] or [(a, NONE)]
    assert found == expected


def test_a_key_with_half_of_all_rows_comes_out_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "CHUNK_PAIRS", 100)
    monkeypatch.setattr(window_join, "_MATCHED_ROWS", 100)
    harness = Harness(joined(hw.tumbling("10 ms")), INPUTS)
    for side in INPUTS:
        rows = [("hot" if n % 2 else f"k{n}", n) for n in range(200)]
        harness.push_all(rows, [n % 40 for n in range(200)], to=side)
    harness.end()
    found = harness.take()
    hot = Counter(row.window_end for row in found if row.k == "hot")
    assert list(hot.values()) == [25 * 25] * 4
    assert len(found) == 4 * 25 * 25 + 100


# -- state ----------------------------------------------------------------------------------------------------------


@examples(40)
@given(
    script=actions,
    again=st.lists(st.booleans(), min_size=32, max_size=32),
    place=st.integers(1, 31),
    how=st.sampled_from(["inner", *JOINS]),
)
def test_state_that_was_rebuilt_or_restored_goes_on_with_the_same_bytes(
    script: list[Any], again: list[bool], place: int, how: str
) -> None:
    build = joined(WINDOWS["cumulating"], 10, how=how)
    live, rebuilt, restored = (Player(build, INPUTS) for _ in range(3))
    for number, (action, is_rebuilt) in enumerate(zip([*script, *END], again, strict=False)):
        if is_rebuilt:
            rebuilt.rebuild()
        if number == place:
            restored = Player.restore(build, INPUTS, live.snapshot())
        assert play(live, action) == play(rebuilt, action) == play(restored, action)
        assert live.last_records() == rebuilt.last_records() == restored.last_records()


def test_columns_may_have_any_name_and_type() -> None:
    schema = "op int not null, slice struct<a:string>, run array<double>, key map<string,int>, left decimal(5,2)"
    row = (1, ("x",), [1.5, None], {"a": 1}, None)

    def build(by_element: bool) -> Any:
        def program(left: Stream, right: Stream) -> Stream:
            windows = left.join(right).where("slice").equal_to("slice").window(hw.tumbling("10 ms"))
            return (windows.trigger(ByElement()) if by_element else windows).apply()

        return program

    for by_element in (False, True):
        inputs = {"left": schema, "right": schema}
        harness = Player(build(by_element), inputs)
        harness.push(row, at=1, to="left")
        harness.push(row, at=2, to="right")
        harness.rebuild()
        harness.end()
        ((*values, start, end),) = harness.take()
        assert values == [*row, 1, [1.5, None], {"a": 1}, None]
        assert (millis(start), millis(end)) == (0, 10)


def test_nothing_is_left_after_end_and_lateness() -> None:
    for by_element in (False, True):
        harness = Harness(joined(hw.sliding("10 ms", "5 ms"), 13, by_element=by_element), INPUTS)
        for side in INPUTS:
            harness.push_all([("a", 1), (None, 2), ("b", 3)], [1, 3, 8], to=side)
        harness.watermark(9)
        harness.push(("a", 1), at=2, to="left")
        harness.watermark(26)
        assert entries(harness) != {}
        harness.watermark(27)
        assert entries(harness) == {}


def test_a_delta_holds_the_rows_of_its_epoch_and_no_others() -> None:
    sizes = {}
    for others in (10, 1000):
        harness = Player(joined(hw.tumbling("10 ms")), INPUTS)
        harness.push_all([(f"k{n}", n) for n in range(others)], [10 * n for n in range(others)], to="left")
        harness.push(("a", 1), at=5, to="right")
        sizes[others] = sum(map(len, harness.last_records()))
    assert abs(sizes[10] - sizes[1000]) < 64  # numbers of more digits


# -- the two inputs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_element", [False, True])
def test_a_side_that_is_empty_idle_or_ended_does_not_hold_the_other(by_element: bool) -> None:
    harness = Harness(joined(hw.tumbling("10 ms"), by_element=by_element), INPUTS)
    harness.push(("a", 1), at=1, to="left")
    harness.watermark(50, of="left")
    assert (harness.take(), entries(harness) != {}) == ([], True)
    harness.idle(of="right")
    assert (harness.take(), entries(harness)) == ([], {})
    harness.push(("a", 2), at=60, to="left")
    harness.push(("a", 3), at=61, to="right")
    harness.end(of="right")
    assert harness.take() == []
    harness.watermark(69, of="left")
    assert [(row.n, row.n_right) for row in harness.take()] == [(2, 3)]
    harness.end(of="left")
    assert (harness.take(), entries(harness)) == ([], {})


@pytest.mark.parametrize("by_element", [False, True])
def test_late_rows_that_go_nowhere_are_counted(by_element: bool) -> None:
    env = hw.Environment("late", engine="local", max_rows_per_epoch=1)
    rows = [("a", 5), ("a", 30), ("a", 7), (None, 29), ("a", 1)]
    left, right = (
        env.from_rows(rows, "k string, at long", hw.Watermarks.monotonous("at"), name=name) for name in ("l", "r")
    )
    windows = left.join(right).where("k").equal_to("k").window(hw.tumbling("10 ms"))
    step = (windows.trigger(ByElement()) if by_element else windows).apply().with_uid("tens")
    sink = hw.connectors.memory()
    step.sink(sink)
    status = env.run().status()
    assert status.steps["tens"]["late_dropped"] == 6
    assert [(row.at, row.at_right) for row in sink.rows] == [(5, 5), (30, 30)]


@pytest.mark.parametrize("by_element", [False, True])
def test_a_row_without_event_time_is_told(by_element: bool) -> None:
    harness = Harness(joined(hw.tumbling("10 ms"), by_element=by_element), INPUTS)
    with pytest.raises(hw.RowError, match="event time"):
        harness.push(("a", 1), to="right")
