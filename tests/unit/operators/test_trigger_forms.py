"""What a trigger says of each row and of many at once is one thing: the cut of the input into epochs does not show."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import headwater as hw
from headwater.data.batch import Timestamps
from headwater.testing import Harness
from headwater.windows.triggers import (
    CountTrigger,
    EventTimeTrigger,
    Firings,
    TriggerContext,
    TriggerResult,
    count_rows,
)

T = hw.triggers
COMPOSITIONS: dict[str, Any] = {
    "itself": (lambda one: one, [3, 6, 9]),
    "repeat": (hw.repeat, [3, 6, 9]),
    "purging": (T.purging, [3, 3, 3]),
    "either": (lambda one: hw.either(one, T.count(4)), [3, 4, 6, 8, 9]),
    "repeat either": (lambda one: hw.repeat(hw.either(one, T.count(4))), [3, 6, 9]),
    "both": (lambda one: hw.both(one, T.count(2)), [3, 6, 9]),
    "then": (lambda one: hw.then(one, T.count(2)), [3, 5, 7, 9]),
    "then it": (lambda one: hw.then(T.count(2), one), [2, 5, 8]),
    "repeat then": (lambda one: hw.repeat(hw.then(one, T.count(2))), [3, 5, 8, 10]),
}


class Three(hw.Trigger):
    """Fires for every three rows, asked for each."""

    can_merge = True
    seen = hw.ReducingState("bigint", reduce=operator.add)

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        self.seen.add(1)
        if self.seen.get() < 3:
            return TriggerResult.CONTINUE
        self.seen.clear()
        return TriggerResult.FIRE


class ThreeOfMany(Three):
    """The same, asked for many at once; it does not say how many it waits for."""

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return super().on_element(event, ctx)

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        return count_rows(self.seen, 3, len(timestamps))


class ThreeSaid(Three):
    """The same, which says how many it waits for."""

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return super().on_element(event, ctx)

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        return count_rows(self.seen, 3, len(timestamps))

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        return 3 - (self.seen.get() or 0)


class EverySecond(CountTrigger):
    """Counts only every second row, which the form for many rows that it inherits does not know."""

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return super().on_element(event, ctx) if event.n % 2 else TriggerResult.CONTINUE


class Renamed(CountTrigger):
    """Overrides nothing that is about rows."""

    def describe(self) -> str:
        return "three"


class ElementOfOneAndRowsOfAnother(EverySecond, CountTrigger):
    """Inherits its forms from two classes."""


def fired(trigger: hw.Trigger, at_once: int, rows: int = 10) -> list[int]:
    """How many rows the window has at each firing, if they come so many at once."""
    harness = Harness(
        lambda s: s.key_by("k").window(hw.global_window()).trigger(trigger).agg(n=hw.count()), "k string, n long"
    )
    for start in range(0, rows, at_once):
        numbers = range(start, min(start + at_once, rows))
        harness.push_all([("a", n) for n in numbers], list(numbers))
    return [row.n for row in harness.take()]


@pytest.mark.parametrize("at_once", [1, 2, 3, 4, 5, 10])
@pytest.mark.parametrize("three", [Three, ThreeOfMany, ThreeSaid])
@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_firings_do_not_depend_on_how_rows_come_together(composition: str, three: type[Three], at_once: int) -> None:
    compose, expected = COMPOSITIONS[composition]
    assert fired(compose(three()), at_once) == expected


@pytest.mark.parametrize("trigger", [Three(), EverySecond(3), ElementOfOneAndRowsOfAnother(3)])
def test_a_trigger_without_a_form_of_its_own_for_many_rows_is_asked_for_each(trigger: hw.Trigger) -> None:
    assert not trigger.takes_rows()
    assert not hw.repeat(trigger).takes_rows()
    assert not hw.either(T.event_time(), T.purging(trigger)).takes_rows()


@pytest.mark.parametrize("trigger", [ThreeOfMany(), ThreeSaid(), Renamed(3), T.continuous("1 s")])
def test_a_trigger_with_both_forms_is_asked_for_many(trigger: hw.Trigger) -> None:
    assert trigger.takes_rows()
    assert hw.repeat(trigger).takes_rows()


@pytest.mark.parametrize("at_once", [1, 5, 12])
def test_a_subclass_that_overrides_one_form_does_not_get_the_other(at_once: int) -> None:
    assert fired(hw.repeat(EverySecond(2)), at_once, rows=12) == [4, 8, 12]


@pytest.mark.parametrize(
    ("parent", "methods", "missing"),
    [
        (hw.Trigger, ["on_rows"], "no on_element of its own"),
        (CountTrigger, ["on_rows", "rows_to_fire"], "no on_element of its own"),
        (CountTrigger, ["rows_to_fire"], "no on_element and no on_rows of its own"),
        (CountTrigger, ["on_element", "on_rows"], "no rows_to_fire of its own"),
        (EventTimeTrigger, ["on_element", "rows_to_fire"], "no on_rows of its own"),
    ],
)
def test_half_a_pair_is_refused_where_it_is_written(parent: type, methods: list[str], missing: str) -> None:
    with pytest.raises(hw.GraphError, match=f"trigger 'Half' must say .*; it has {missing}; write on_element, on_rows"):
        type("Half", (parent,), {name: lambda self, *arguments: None for name in methods})


def test_a_wrong_number_of_rows_to_fire_is_an_error_and_not_a_wrong_result() -> None:
    class Never(ThreeSaid):
        def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
            return super().on_element(event, ctx)

        def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
            return super().on_rows(timestamps, ctx)

        def rows_to_fire(self, ctx: TriggerContext) -> int | None:
            return None

    with pytest.raises(hw.UserCodeError, match="fired after 3 rows; rows_to_fire had said None") as failure:
        fired(hw.repeat(Never()), 5)
    assert failure.value.key == "a"


def test_a_continuous_trigger_needs_event_time_however_rows_come() -> None:
    def build(stream: Any) -> Any:
        return stream.key_by("k").window(hw.global_window()).trigger(T.continuous("1 s")).agg(n=hw.count())

    with pytest.raises(hw.UserCodeError, match="continuous needs rows with event time"):
        Harness(build, "k string").push(("a",))
