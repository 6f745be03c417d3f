"""Stateless steps and what is told when user code fails or gives rows that do not fit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.streams.stream import Stream


@pytest.fixture
def stream() -> Stream:
    env = hw.Environment("operators", engine="local")
    return env.from_rows([("a", 1), ("b", 2), (None, 3)], "k string, n long", hw.Watermarks.monotonous("n"))


def test_map_flat_map_and_filter(stream: Stream) -> None:
    assert stream.map(lambda r: {"n": r.n, "k": "x"}).collect() == [("x", 1), ("x", 2), ("x", 3)]
    assert stream.flat_map(lambda r: [r] * (r.n - 1)).collect() == [("b", 2), (None, 3), (None, 3)]
    assert stream.flat_map(lambda r: None).collect() == []  # type: ignore[arg-type,return-value]
    assert stream.filter(lambda r: r.k).collect() == [("a", 1), ("b", 2)]


def test_functions_over_tables(stream: Stream) -> None:
    doubled = stream.map_batches(lambda t: t.set_column(1, "n", pa.compute.multiply(t["n"], 2)))
    assert [row.n for row in doubled.collect()] == [2, 4, 6]
    fewer = stream.map_batches(lambda t: t.filter(pa.compute.greater(t["n"], 2)), timestamp="n")
    assert [row.n for row in fewer.collect()] == [3]


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda t: t.slice(0, 1), r"got 3 rows and returned 1, so their event times are unknown"),
        (lambda t: t.drop_columns(["n"]), r"must return a table with k, n; got \['k'\]"),
        (lambda t: None, "got NoneType"),
        (lambda t: t.set_column(1, "n", pa.array(["x"] * 3)), "must return a table that fits 'k string, n bigint'"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(stream: Stream, function: Any, problem: str) -> None:
    with pytest.raises(hw.RowError, match=f"step 'map_batches'.*{problem}"):
        stream.map_batches(function).collect()


def boom(row: Any) -> Any:
    raise ZeroDivisionError("boom")


@pytest.mark.parametrize("method", ["map", "flat_map", "filter"])
def test_a_function_that_raises_is_told_with_step_and_time(stream: Stream, method: str) -> None:
    with pytest.raises(
        hw.UserCodeError,
        match=rf"step '{method}' failed at timestamp 1, .*: ZeroDivisionError: boom",
    ) as failed:
        getattr(stream, method)(boom).collect()
    assert "in boom" in failed.value.traceback
    assert "headwater/operators" not in failed.value.traceback


def test_a_row_that_does_not_fit_is_told_with_its_step(stream: Stream) -> None:
    with pytest.raises(
        hw.RowError, match=r"step 'mine', field 'n': value 1.5 does not fit int64: expected int, got float"
    ):
        stream.map(lambda r: (r.k, 1.5)).with_uid("mine").collect()
    with pytest.raises(hw.RowError, match="yield rows, not bare values"):
        stream.map(lambda r: r.n).collect()


class Sides(hw.ProcessFunction):
    tag = hw.OutputTag("odd", "n long")

    def process(self, event: Any, ctx: hw.Context) -> Any:
        if event.n % 2:
            ctx.output(self.tag, (event.n,))


def test_a_side_output_has_a_schema_too(stream: Stream) -> None:
    step = stream.process(Sides(), "k string")
    assert step.side_output(Sides.tag).collect() == [(1,), (3,)]
    assert step.collect() == []
    other = stream.process(Sides(), "k string")
    with pytest.raises(hw.RowError, match="side output 'odd' is written as 'n bigint' and read as 'n string'"):
        other.side_output(hw.OutputTag("odd", "n string")).collect()


class Timely(hw.KeyedProcessFunction):
    def process(self, event: Any, ctx: hw.Context) -> None:
        ctx.timers.event_time(event.at)


@pytest.mark.parametrize("bad", [1.5, "5", True, None, 1 << 63])
def test_a_timer_is_set_for_an_integer_of_milliseconds(stream: Stream, bad: Any) -> None:
    class Wrong(hw.KeyedProcessFunction):
        def process(self, event: Any, ctx: hw.Context) -> None:
            ctx.timers.event_time(bad)

    with pytest.raises(hw.UserCodeError, match="a timer"):
        stream.key_by("k").process(Wrong(), "k string").collect()


def test_event_time_must_not_be_null() -> None:
    env = hw.Environment("times", engine="local")
    with pytest.raises(hw.SourceError, match="the event-time column 'at' is null in"):
        env.from_rows([(1,), (None,)], "at long", hw.Watermarks.monotonous("at")).collect()
