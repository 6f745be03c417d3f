"""Windows folded by a user's function: what it is given, and what is told when it fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import headwater as hw
from headwater.errors import UserCodeError
from headwater.testing import Harness

ROWS = "k string, n long"


def added(left: Any, right: Any) -> dict[str, Any]:
    return {"k": left.k, "n": left.n + right.n}


class Spread(hw.AggregateFunction[Any, Any, int]):
    """The largest number less the smallest, by the names of the accumulator's fields."""

    def create(self) -> Any:
        return None

    def add(self, accumulator: Any, value: Any) -> Any:
        if accumulator is None:
            return (value.n, value.n)
        return {"low": min(accumulator.low, value.n), "high": max(accumulator.high, value.n)}

    def merge(self, left: Any, right: Any) -> Any:
        return (min(left.low, right.low), max(left.high, right.high))

    def result(self, accumulator: Any) -> int:
        return int(accumulator.high - accumulator.low)


def fed(build: Callable[[Any], Any], numbers: list[int]) -> Harness:
    harness = Harness(build, ROWS)
    for place, number in enumerate(numbers):
        harness.push(("ann", number), at=place)
    harness.end()
    return harness


@pytest.mark.parametrize("windows", [hw.tumbling("10 ms"), hw.session("5 ms")], ids=["tumbling", "session"])
def test_a_reduce_behind_an_evictor_gets_rows_however_many_there_are(windows: hw.WindowAssigner) -> None:
    evicted = fed(lambda s: s.key_by("k").window(windows).evict(hw.evictors.count(4)).reduce(added), [1, 2, 3, 4, 5])
    assert [(row.k, row.n) for row in evicted.take()] == [("ann", 14)]


def test_a_reduce_of_sliding_count_windows_gets_rows() -> None:
    moving = fed(lambda s: s.key_by("k").window(hw.count(3, 1)).reduce(added), [1, 2, 3, 4])
    assert [row.n for row in moving.take()] == [1, 3, 6, 9]


@pytest.mark.parametrize("evictor", [None, hw.evictors.count(9)], ids=["kept", "evicted"])
def test_an_aggregate_function_gets_its_accumulator_as_it_is_declared(evictor: hw.Evictor | None) -> None:
    def build(stream: Any) -> Any:
        windows = stream.key_by("k").window(hw.tumbling("10 ms"))
        windows = windows if evictor is None else windows.evict(evictor)
        return windows.aggregate(Spread(), accumulator="struct<low: bigint, high: bigint>", schema="spread long")

    assert [row.spread for row in fed(build, [5, 2, 9]).take()] == [7]


class Failing(Spread):
    """Fails in the method it is told to."""

    def __init__(self, method: str) -> None:
        self._method = method

    def _fail(self, method: str) -> None:
        if method == self._method:
            raise ZeroDivisionError(f"in {method}")

    def create(self) -> Any:
        self._fail("create")
        return super().create()

    def add(self, accumulator: Any, value: Any) -> Any:
        self._fail("add")
        return super().add(accumulator, value)

    def merge(self, left: Any, right: Any) -> Any:
        self._fail("merge")
        return super().merge(left, right)

    def result(self, accumulator: Any) -> int:
        self._fail("result")
        return super().result(accumulator)


def push_and_end(build: Callable[[Any], Any], times: list[int]) -> UserCodeError:
    harness = Harness(build, ROWS)

    def play() -> None:
        for at in times:
            harness.push(("ann", at), at=at)
        harness.end()

    with pytest.raises(UserCodeError) as raised:
        play()
    return raised.value


@pytest.mark.parametrize("evictor", [None, hw.evictors.count(9)], ids=["kept", "evicted"])
@pytest.mark.parametrize("method", ["create", "add", "merge", "result"])
def test_a_method_of_an_aggregate_that_fails_is_told_with_step_key_and_time(
    method: str, evictor: hw.Evictor | None
) -> None:
    if method == "merge" and evictor is not None:
        evictor = None  # behind an evictor rows are kept, and only added

    def build(stream: Any) -> Any:
        windows = stream.key_by("k").window(hw.session("5 ms"))
        windows = windows if evictor is None else windows.evict(evictor)
        return windows.aggregate(
            Failing(method), accumulator="struct<low: bigint, high: bigint>", schema="spread long"
        ).with_uid("spreads")

    error = push_and_end(build, [1, 9, 5])
    assert (error.step, error.key, error.cause) == ("spreads", "ann", f"ZeroDivisionError: in {method}")
    late = method == "result" or evictor is not None
    assert error.timestamp == (13 if late else 5 if method == "merge" else 1)
    assert "self._fail(" in error.traceback
    assert "headwater/operators" not in error.traceback


@pytest.mark.parametrize("evictor", [None, hw.evictors.count(9)], ids=["kept", "evicted"])
def test_a_reduce_that_fails_is_told_with_step_key_and_time(evictor: hw.Evictor | None) -> None:
    def build(stream: Any) -> Any:
        windows = stream.key_by("k").window(hw.tumbling("10 ms"))
        windows = windows if evictor is None else windows.evict(evictor)
        return windows.reduce(lambda left, right: left.missing).with_uid("reduced")

    error = push_and_end(build, [1, 2])
    assert (error.step, error.key, error.timestamp) == ("reduced", "ann", 2 if evictor is None else 9)
    assert "left.missing" in error.traceback
