from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.streams.stream import Stream
from headwater.testing import Harness

INPUTS = {"left": "k string, n long", "right": "k string, n long"}
TENS = hw.tumbling("10 ms")


@pytest.fixture
def env() -> hw.Environment:
    return hw.Environment("test", engine="local")


@pytest.fixture
def left(env: hw.Environment) -> Stream:
    return env.from_rows([], "k string, n long, x double", name="left")


@pytest.fixture
def right(env: hw.Environment) -> Stream:
    return env.from_rows([], "k string, n long, y int", name="right")


def test_what_is_missing_is_told(left: Stream, right: Stream) -> None:
    with pytest.raises(hw.GraphError, match=r"'join' needs a key of each stream; got 'no where'; write \.where"):
        left.join(right).equal_to("k").window(TENS)
    with pytest.raises(hw.GraphError, match=r"'cogroup' needs a key of each stream; got 'no equal_to'"):
        left.cogroup(right).where("k").window(TENS)
    with pytest.raises(hw.GraphError, match=r"'join' needs windows; .*write \.window"):
        left.join(right).where("k").equal_to("k").apply()
    with pytest.raises(hw.GraphError, match="'window' needs windows"):
        left.join(right).where("k").equal_to("k").window("10 s")  # type: ignore[arg-type]
    with pytest.raises(hw.GraphError, match="'window_join' needs a trigger: these windows have no end"):
        left.join(right).where("k").equal_to("k").window(hw.global_window()).apply()
    with pytest.raises(hw.GraphError, match="'window_join' needs the schema of what the function gives"):
        left.join(right).where("k").equal_to("k").window(TENS).apply(lambda a, b: a)
    with pytest.raises(hw.GraphError, match="'window_join' takes a schema together with a function only"):
        left.join(right).where("k").equal_to("k").window(TENS).apply(schema="k string")
    with pytest.raises(hw.GraphError, match="'window_cogroup' needs a function of lefts, rights, ctx"):
        left.cogroup(right).where("k").equal_to("k").window(TENS).apply("k", "k string")  # type: ignore[arg-type]


def test_keys_must_fit(left: Stream, right: Stream) -> None:
    with pytest.raises(hw.GraphError, match="'join' needs keys of one type on both sides; got 'n: bigint and y: int'"):
        left.join(right).where("n").equal_to("y").window(TENS)
    with pytest.raises(hw.GraphError, match="'join' needs keys of one type on both sides"):
        left.join(right).where("n").equal_to(lambda row: (row.n,), type="struct<n:bigint>").window(TENS)
    with pytest.raises(hw.GraphError, match="'join' needs keys of one type on both sides"):
        left.join(right).where("n").equal_to(lambda row: (row.n,), type="struct<n:bigint>").window(TENS)
    with pytest.raises(hw.SchemaError, match="no field 'z'; the fields are k, n, x"):
        left.join(right).where("z")
    with pytest.raises(hw.GraphError, match=r"'equal_to' needs column names or one function.*write equal_to\('user'\)"):
        left.join(right).equal_to()
    with pytest.raises(hw.GraphError, match="'where' needs the type of a function's result"):
        left.join(right).where(lambda row: row.k)
    with pytest.raises(hw.StateError, match="where"):
        left.join(right).where("x")
    with pytest.raises(hw.GraphError, match="two environments"):
        left.join(hw.Environment("other", engine="local").from_rows([], "k string"))
    with pytest.raises(hw.GraphError, match="'cogroup' needs another stream"):
        left.cogroup("right")  # type: ignore[arg-type]


def test_columns_of_both_are_there_under_their_own_names(left: Stream, right: Stream) -> None:
    windows = left.join(right).where("k").equal_to("k").window(TENS)
    assert windows.apply().schema.names == ["k", "n", "x", "n_right", "y", "window_start", "window_end"]
    assert windows.apply(suffix="2").schema.names == ["k", "n", "x", "n2", "y", "window_start", "window_end"]
    crossed = left.join(right).where("k", "n").equal_to("k", "n").window(hw.count(3))
    assert crossed.apply().schema.names == ["k", "n", "x", "y"]
    with pytest.raises(hw.GraphError, match=r"'window_join' gives the columns of both sides, .*; got 'n'"):
        windows.apply(suffix="")
    taken = left.select("k", "n", "x as n_right")
    with pytest.raises(hw.GraphError, match=r"'window_join' gives the columns of both sides, .*; got 'n_right'"):
        taken.join(right).where("k").equal_to("k").window(TENS).apply()
    with pytest.raises(hw.GraphError, match="needs other names than those of the window; got 'window_end'; rename"):
        left.join(right.select("k", "n as window_end")).where("k").equal_to("k").window(TENS).apply()


def test_a_side_that_may_be_missing_can_be_null() -> None:
    env = hw.Environment("test", engine="local")
    left = env.from_rows([], "k string not null, n long not null", name="left")
    right = env.from_rows([], "k string not null, m long not null", name="right")

    def shown(how: str, windows: hw.WindowAssigner = TENS) -> dict[str, bool]:
        pair = left.join(right, how=how).where("k").equal_to("k").window(windows)
        return {field.name: field.nullable for field in pair.apply().schema.arrow}

    for windows in (TENS, hw.session("10 ms")):
        assert shown("inner", windows) == {**dict.fromkeys("knm", False), "window_start": True, "window_end": True}
        assert [shown("left", windows)[name] for name in "knm"] == [False, False, True]
        assert [shown("right", windows)[name] for name in "knm"] == [True, True, False]
        assert [shown("full", windows)[name] for name in "knm"] == [True, True, True]
        assert list(shown("semi", windows)) == list(shown("anti", windows)) == ["k", "n", "window_start", "window_end"]


def test_a_join_is_of_a_known_kind_and_shows_left_rows_without_a_function(left: Stream, right: Stream) -> None:
    with pytest.raises(hw.GraphError, match=r"'join' joins by how='inner' or .*'anti'; got 'outer'; choose one"):
        left.join(right, how="outer").where("k").equal_to("k").window(TENS)
    for how in ("semi", "anti"):
        windows = left.join(right, how=how).where("k").equal_to("k").window(TENS)
        with pytest.raises(hw.GraphError, match=rf"'window_join' shows left rows as they are by how='{how}'.*\.map"):
            windows.apply(lambda a, b: a, "k string")


def test_a_changelog_is_refused(env: hw.Environment, left: Stream) -> None:
    changes = env.from_rows([], "k string, n long, row_kind string", name="changes").as_changelog()
    for how in ("inner", "left", "anti"):
        with pytest.raises(hw.GraphError, match=r"'window_join'.*retract"):
            left.join(changes, how=how).where("k").equal_to("k").window(TENS).apply()


def test_settings_of_windows_are_checked(left: Stream, right: Stream) -> None:
    windows = left.join(right).where("k").equal_to("k").window(TENS)
    with pytest.raises(
        hw.GraphError, match=r"'late_right' needs a tag whose fields are the row's.*choose from k, n, y"
    ):
        windows.late_right(hw.OutputTag("late", "x double"))
    by_clock = left.join(right).where("k").equal_to("k").window(hw.processing_time(TENS))
    with pytest.raises(hw.GraphError, match="'late_left' needs windows in event time"):
        by_clock.late_left(hw.OutputTag("late", "x double"))
    with pytest.raises(hw.GraphError, match="'allow_lateness' needs windows in event time"):
        by_clock.allow_lateness("1 s")
    sessions = left.join(right).where("k").equal_to("k").window(hw.session("10 ms"))
    with pytest.raises(hw.GraphError, match="needs a trigger that can merge"):
        sessions.trigger(hw.triggers.delta(1, lambda a, b: 1))


def test_live_input_in_event_time_needs_watermarks(env: hw.Environment, left: Stream, tmp_path: Path) -> None:
    live = env.source(hw.connectors.log(tmp_path, "topic"), "k string", name="live")
    pair = left.join(live).where("k").equal_to("k")
    for apply in (
        lambda: pair.window(TENS).apply(),
        lambda: pair.window(hw.session("1 s")).apply(),
        lambda: left.cogroup(live).where("k").equal_to("k").window(TENS).apply(lambda a, b, ctx: [], "k string"),
    ):
        with pytest.raises(hw.GraphError, match="source 'live' without watermarks on the right side"):
            apply()
    pair.window(hw.processing_time(TENS)).apply()
    pair.window(hw.count(2)).apply()


def test_both_ways_of_joining_move_rows_once(env: hw.Environment, left: Stream, right: Stream) -> None:
    windows = left.key_by("n").join(right).where("k").equal_to("k").window(TENS)
    windows.apply().with_uid("columns").sink(hw.connectors.memory(), name="one")
    windows.evict(hw.evictors.count(3)).apply().with_uid("elements").sink(hw.connectors.memory(), name="two")
    assert "level 1" in env.explain()
    assert "level 2" not in env.explain()
    assert "map_batches window_join_left <- left :" in env.describe()


def test_an_error_of_a_function_names_step_key_and_time() -> None:
    def build(a: Stream, b: Stream) -> Stream:
        return a.join(b).where("k").equal_to("k").window(TENS).apply(lambda left, right: left.n // right.n, "n long")

    harness = Harness(build, INPUTS)
    harness.push(("a", 1), at=1, to="left")
    harness.push(("a", 0), at=2, to="right")
    with pytest.raises(hw.UserCodeError, match=r"(?s)'window_join'.*'a'.*9.*ZeroDivisionError"):
        harness.watermark(9)


def test_an_error_of_a_key_function_names_the_step() -> None:
    def build(by_element: bool) -> Any:
        def program(a: Stream, b: Stream) -> Stream:
            windows = a.join(b).where(lambda row: row.nothing, type="string").equal_to("k").window(TENS)
            return (windows.evict(hw.evictors.count(1)) if by_element else windows).apply()

        return program

    for by_element in (False, True):
        with pytest.raises(hw.UserCodeError, match=r"'window_join.*nothing"):
            Harness(build(by_element), INPUTS).push(("a", 1), at=1, to="left")
