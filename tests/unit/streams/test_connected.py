from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import headwater as hw
from headwater.testing import Harness

INPUTS = {"left": "k string, n long", "right": "k string, n long"}


class Both(hw.CoProcessFunction):
    total = hw.ValueState("bigint", default=0)

    def process_left(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.total.set(self.total.get() + event.n)
        yield ctx.key, self.total.get()

    def process_right(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.total.set(self.total.get() - event.n)
        yield ctx.key, self.total.get()


class Stateless(hw.CoProcessFunction):
    def process_left(self, event: Any, ctx: hw.Context) -> None:
        ctx.timers.event_time(5)

    def process_right(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        yield event


def streams() -> tuple[hw.Stream, hw.Stream]:
    env = hw.Environment("test", engine="local")
    return env.from_rows([], "k string, n long", name="a"), env.from_rows([], "k string, n long", name="b")


def test_both_sides_share_the_state_of_a_key() -> None:
    harness = Harness(
        lambda a, b: a.key_by("k").connect(b.key_by("k")).process(Both(), "k string, total long"), INPUTS, parallelism=2
    )
    harness.push(("a", 5), to="left")
    harness.push(("a", 2), to="right")
    harness.push(("b", 2), to="right")
    assert harness.take() == [("a", 5), ("a", 3), ("b", -2)]
    assert harness.state_sizes() == {"both": {"total": 2}}


def test_event_time_is_the_lesser_of_both_inputs_and_does_not_wait_for_an_idle_one() -> None:
    class Timed(hw.CoProcessFunction):
        def process_left(self, event: Any, ctx: hw.Context) -> None:
            ctx.timers.event_time(event.n)

        process_right = process_left

        def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
            yield (timer.timestamp,)

    harness = Harness(lambda a, b: a.key_by("k").connect(b.key_by("k")).process(Timed(), "t long"), INPUTS)
    harness.push(("a", 10), to="left")
    harness.push(("a", 20), to="right")
    harness.push(("a", 30), to="right")
    harness.watermark(100, of="left")
    assert harness.take() == []
    harness.watermark(15, of="right")
    assert harness.take() == [(10,)]
    harness.idle(of="right")
    assert harness.take() == [(20,), (30,)]


def test_a_side_that_ends_early_does_not_hold_the_other() -> None:
    harness = Harness(lambda a, b: a.key_by("k").connect(b.key_by("k")).process(Both(), "k string, t long"), INPUTS)
    harness.push(("a", 1), to="left")
    harness.end(of="right")
    harness.push(("a", 1), to="left")
    harness.end(of="left")
    assert harness.take() == [("a", 1), ("a", 2)]


def test_one_stream_can_be_both_sides() -> None:
    harness = Harness(
        lambda s: s.key_by("k").connect(s.key_by("k")).process(Both(), "k string, total long"), "k string, n long"
    )
    harness.push(("a", 5), at=1)
    harness.watermark(3)
    assert harness.take() == [("a", 5), ("a", 0)]


def test_an_error_names_step_key_and_time() -> None:
    class Breaks(Both):
        def process_right(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
            raise ZeroDivisionError

    harness = Harness(lambda a, b: a.key_by("k").connect(b.key_by("k")).process(Breaks(), "k string, t long"), INPUTS)
    with pytest.raises(hw.UserCodeError, match=r"(?s)'breaks'.*'a'.*7.*ZeroDivisionError"):
        harness.push(("a", 1), at=7, to="right")


def test_without_keys_there_are_no_timers() -> None:
    harness = Harness(lambda a, b: a.connect(b).process(Stateless(), "k string, n long"), INPUTS)
    harness.push(("a", 1), to="right")
    assert harness.take() == [("a", 1)]
    with pytest.raises(hw.UserCodeError, match="timers belong to keys and its input has none; use key_by before"):
        harness.push(("a", 1), to="left")


def test_wrong_use_is_refused_when_the_graph_is_built() -> None:
    a, b = streams()
    other, _ = streams()
    numbered = b.select("k", "cast(n as string) as n")
    with pytest.raises(hw.GraphError, match=r"needs both streams keyed or neither; got 'a right one without key'"):
        a.key_by("k").connect(b)
    with pytest.raises(hw.GraphError, match="needs keys of one type on both sides; got 'n: bigint and n: string'"):
        a.key_by("n").connect(numbered.key_by("n"))
    with pytest.raises(hw.GraphError, match="two environments"):
        a.connect(other)
    with pytest.raises(hw.GraphError, match="needs another stream"):
        a.connect("b")  # type: ignore[arg-type]
    with pytest.raises(hw.GraphError, match=r"'both' keeps state per key, so it needs keyed streams"):
        a.connect(b).process(Both(), "k string, total long")
    with pytest.raises(hw.GraphError, match=r"needs a hw\.CoProcessFunction"):
        a.connect(b).process(lambda row: row, "k string")  # type: ignore[arg-type]


def test_keys_of_several_columns_meet_whatever_their_names() -> None:
    inputs = {"left": "a string, b int, n long", "right": "c string, d int, n long"}
    harness = Harness(
        lambda left, right: (
            left.key_by("a", "b").connect(right.key_by("c", "d")).process(Both(), "k struct<a:string,b:int>, t long")
        ),
        inputs,
        parallelism=3,
    )
    harness.push(("x", 1, 10), to="left")
    harness.push(("x", 1, 4), to="right")
    assert [row.t for row in harness.take()] == [10, 6]
