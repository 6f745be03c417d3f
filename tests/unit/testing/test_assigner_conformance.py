"""The conformance kit for window assigners: ours pass it, and those with a fault are told which rule they break."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import headwater as hw
from headwater.testing import NotConforming, check_assigner
from headwater.windows.assigners import Global, Session, Tumbling, Window, WindowAssigner

SCHEMA = "user string, amount double"
ROWS = [("ann", float(amount)) for amount in range(6)]
MINUTE_MS = 60_000

IN_TIME = [
    hw.tumbling("10 s"),
    hw.tumbling("1 h", "-7 min"),
    hw.sliding("1 min", "7 s"),
    hw.sliding("4 s", "10 s"),
    hw.cumulate("5 s", "1 min"),
    hw.session("30 s"),
    hw.session(by=lambda row: f"{int(row.amount) + 1} min"),
]
OURS = [*IN_TIME, hw.global_window(), hw.count(3), hw.count(5, 2), *map(hw.processing_time, IN_TIME)]


@pytest.mark.parametrize("assigner", OURS, ids=lambda assigner: assigner.describe())
def test_our_assigners_conform(assigner: WindowAssigner) -> None:
    check_assigner(assigner, SCHEMA, ROWS, runs=5)


class Minutes(hw.WindowAssigner):
    """Windows of a minute."""

    def assign(self, event: Any, timestamp: int) -> Iterable[Window]:
        start = timestamp - timestamp % MINUTE_MS
        return [Window(start, start + MINUTE_MS)]


class ByAmount(Tumbling):
    """Rows of much are in windows of their own size, which those by columns do not know."""

    def assign(self, event: Any, timestamp: int) -> Iterable[Window]:
        return (
            Tumbling(self.size_ms * 2).assign(event, timestamp)
            if event.amount > 2
            else super().assign(event, timestamp)
        )


class LongOnes(Session):
    """Sessions of rows of much are longer."""

    def assign(self, event: Any, timestamp: int) -> Iterable[Window]:
        return [Window(timestamp, timestamp + int(1 + event.amount) * MINUTE_MS)]


class Labels(Global):
    """Two windows for all, by what rows hold."""

    def assign(self, event: Any, timestamp: int) -> Iterable[Window]:
        return [Window(int(event.amount > 2), 3)]


@pytest.mark.parametrize("assigner", [Minutes(), LongOnes(MINUTE_MS), Labels()], ids=lambda one: type(one).__name__)
def test_assigners_of_ones_own_conform(assigner: WindowAssigner) -> None:
    check_assigner(assigner, SCHEMA, ROWS)


@pytest.mark.parametrize(
    ("assigner", "windows"),
    [
        (ByAmount(MINUTE_MS), [(0, 120_000), (0, 60_000)]),
        (LongOnes(MINUTE_MS), [(0, 360_000), (0, 60_000)]),
    ],
)
def test_an_assigner_that_overrides_one_of_ours_is_asked_for_each_row(assigner: Any, windows: Any) -> None:
    harness = hw.testing.Harness(lambda s: s.key_by("user").window(assigner).agg(n=hw.count()), SCHEMA)
    harness.push_all([("ann", 5.0), ("bob", 0.0)], [0, 0])
    harness.end()
    found = {
        row.user: (row.window_start.timestamp() * 1_000, row.window_end.timestamp() * 1_000) for row in harness.take()
    }
    assert [found["ann"], found["bob"]] == windows


# -- faults ---------------------------------------------------------------------------------------------------------


class Elsewhere(Minutes):
    def assign(self, event: Any, timestamp: int) -> Iterable[Window]:
        start = int(timestamp / MINUTE_MS) * MINUTE_MS
        return [Window(start, start + MINUTE_MS)]


class Pairs(Minutes):
    def assign(self, event: Any, timestamp: int) -> Iterable[Any]:
        return [(timestamp, timestamp + MINUTE_MS)]


class Empty(Minutes):
    def assign(self, event: Any, timestamp: int) -> Iterable[Window]:
        return [Window(timestamp, timestamp)]


class Twice(Minutes):
    def assign(self, event: Any, timestamp: int) -> Iterable[Window]:
        return [*super().assign(event, timestamp), *super().assign(event, timestamp)]


class Alternating(Minutes):
    def __init__(self) -> None:
        self.turn = 0

    def assign(self, event: Any, timestamp: int) -> Iterable[Window]:
        self.turn = 1 - self.turn
        return [Window(timestamp, timestamp + MINUTE_MS + self.turn)]


class TwoThatMerge(Minutes):
    merges = True

    def assign(self, event: Any, timestamp: int) -> Iterable[Window]:
        return [Window(timestamp, timestamp + 10), Window(timestamp - 500, timestamp + 500)]


class CannotMerge(Minutes):
    merges = True

    def default_trigger(self) -> hw.Trigger:
        return hw.triggers.delta(1.0, lambda one, other: 0.0)


class Raises(Minutes):
    def assign(self, event: Any, timestamp: int) -> Iterable[Window]:
        return [Window(timestamp, timestamp + event.price)]


class OnAClock(Minutes):
    domain = "clock"


class Nameless(Minutes):
    def describe(self) -> str:
        return ""


@pytest.mark.parametrize(
    ("assigner", "rule"),
    [
        (Elsewhere, "a row's timestamp is in its windows"),
        (Pairs, "gives windows that start, in whole ms, before they end"),
        (Empty, "gives windows that start, in whole ms, before they end"),
        (Twice, "a row is in a window once"),
        (Alternating, "the same windows for the same row and time"),
        (TwoThatMerge, "windows that merge are one for each row"),
        (CannotMerge, "the default trigger of windows that merge can merge"),
        (Raises, "gives windows for the rows it is checked with; .*no field 'price'"),
        (OnAClock, "domain is 'event' or 'processing'"),
        (Nameless, "describe.. says in a few words"),
        (lambda: ByAmount(MINUTE_MS), "the windows of a slice are those of its rows"),
    ],
)
def test_an_assigner_with_a_fault_is_told_the_rule(assigner: Any, rule: str) -> None:
    made = assigner()
    with pytest.raises(NotConforming, match=f"{type(made).__name__}: .*{rule}"):
        check_assigner(made, SCHEMA, ROWS)


def test_a_check_needs_rows() -> None:
    with pytest.raises(ValueError, match="give rows to check"):
        check_assigner(Minutes(), SCHEMA, [])
