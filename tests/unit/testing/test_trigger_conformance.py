"""The conformance kit for triggers: ours pass it, and triggers with a fault are told which rule they break, and when."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headwater as hw
from headwater.data.batch import Timestamps
from headwater.testing import NotConforming, check_trigger
from headwater.windows.triggers import Firings, TriggerContext, TriggerResult

SCHEMA = "user string, amount double"
ROWS = [("ann", float(amount)) for amount in range(6)]
CONTINUE, FIRE = TriggerResult.CONTINUE, TriggerResult.FIRE
T = hw.triggers

OURS = [
    T.event_time(),
    T.processing_time(),
    T.count(3),
    T.continuous("7 s"),
    T.continuous_processing_time("7 s"),
    T.delta(2.0, lambda one, other: abs(one.amount - other.amount)),
    T.never(),
    T.purging(T.count(2)),
    T.timeout(T.count(3), "7 s"),
    T.timeout(T.count(3), "7 s", reset_on_new_record=True),
    T.timeout(T.count(3), "7 s", clear_on_timeout=False),
    T.timeout(T.count(3), "7 s", reset_on_new_record=True, clear_on_timeout=False),
    T.timeout(T.delta(2.0, lambda one, other: abs(one.amount - other.amount)), "7 s"),
    T.timeout(hw.then(T.count(2), T.purging(T.event_time())), "20 s"),
    hw.either(T.timeout(T.count(3), "7 s"), T.timeout(T.continuous("9 s"), "7 s", reset_on_new_record=True)),
    hw.early(every="10 s").late(count=2),
    hw.early(count=2).on_time().late(every="5 s"),
    hw.either(T.count(2), T.event_time()),
    hw.both(T.count(2), T.continuous("9 s")),
    hw.then(T.count(2), T.event_time(), T.continuous_processing_time("8 s")),
    hw.repeat(hw.either(T.count(4), T.continuous("10 s"))),
    hw.repeat(hw.then(T.count(2), hw.both(T.count(1), hw.early(every="5 s")))),
]


@pytest.mark.parametrize("trigger", OURS, ids=lambda trigger: trigger.describe())
def test_our_triggers_conform(trigger: hw.Trigger) -> None:
    check_trigger(trigger, SCHEMA, ROWS, runs=3)


class Three(hw.Trigger):
    """Fires for every third row."""

    can_merge = True
    seen = hw.ReducingState("bigint", reduce=operator.add)

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        self.seen.add(1)
        return CONTINUE if self.seen.get() % 3 else FIRE


class ThreeOfMany(Three):
    """The same, of many at once too."""

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return super().on_element(event, ctx)

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        before = self.seen.get() or 0
        self.seen.add(len(timestamps))
        return Firings.at(np.flatnonzero((before + 1 + np.arange(len(timestamps))) % 3 == 0))

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        return 3 - (self.seen.get() or 0) % 3


class AtEnd(hw.Trigger):
    """Fires at the window's end."""

    can_merge = True

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        ctx.timers.event_time(ctx.window.last)
        return CONTINUE

    def on_event_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        return FIRE if timestamp == ctx.window.last else CONTINUE

    def clear(self, ctx: TriggerContext) -> None:
        ctx.timers.delete_event_time(ctx.window.last)


@pytest.mark.parametrize("trigger", [Three(), ThreeOfMany(), AtEnd()], ids=lambda trigger: trigger.describe())
def test_triggers_of_ones_own_conform(trigger: hw.Trigger) -> None:
    check_trigger(trigger, SCHEMA, ROWS, runs=3)


# -- faults ---------------------------------------------------------------------------------------------------------


class StartsEachBatchAnew(ThreeOfMany):
    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return super().on_element(event, ctx)

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        return Firings.at(np.arange(2, len(timestamps), 3))

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        return 1


class SaysThatItNeverFires(ThreeOfMany):
    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return super().on_element(event, ctx)

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        return super().on_rows(timestamps, ctx)

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        return None


class SaysThatItWaitsForTime(ThreeOfMany):
    waits_for_time = True


class CountsInAnAttribute(hw.Trigger):
    def __init__(self) -> None:
        self.seen: dict[Any, int] = {}

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        window = (ctx.key, ctx.window)
        self.seen[window] = self.seen.get(window, 0) + 1
        return CONTINUE if self.seen[window] % 3 else FIRE


class DependsOnThePast(hw.Trigger):
    asked: Iterator[int] = itertools.count()

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return CONTINUE if next(DependsOnThePast.asked) % 7 else FIRE


class LooksAtTheWatermark(AtEnd):
    def on_event_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        return FIRE if ctx.watermark > 2 * ctx.window.last else CONTINUE


class SetsTimersForEver(AtEnd):
    def on_event_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        ctx.timers.event_time(timestamp + 1_000)
        return FIRE


class LeavesSomething(AtEnd):
    said = hw.ReducingState("bigint", reduce=operator.add)

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        ctx.timers.processing_time(ctx.now + 200_000)
        return super().on_element(event, ctx)

    def on_processing_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        self.said.add(1)
        return CONTINUE


class DoesNotRearm(AtEnd):
    is_set = hw.ReducingState("bigint", reduce=max)

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        if self.is_set.get() is None:
            self.is_set.add(1)
            ctx.timers.event_time(ctx.window.last)
        return CONTINUE


class KeepsTheLastOfBoth(Three):
    last = hw.ReducingState("bigint", reduce=lambda _, added: added)

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        self.last.add(ctx.timestamp)
        return super().on_element(event, ctx)


class SaysNothing(hw.Trigger):
    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return None  # type: ignore[return-value]


class Raises(hw.Trigger):
    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return FIRE if event.price > 3 else CONTINUE


class NeverDoes(hw.Trigger):
    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return CONTINUE


class DoesAllTheSame(Three):
    can_fire = False


@pytest.mark.parametrize(
    ("trigger", "rule"),
    [
        (StartsEachBatchAnew, "on_element, on_rows and rows_to_fire agree; one by one .* FIRE of the row"),
        (SaysThatItNeverFires, "None only if it does not; it was None, and row"),
        (SaysThatItWaitsForTime, "on_element, on_rows and rows_to_fire agree; .*session"),
        (CountsInAnAttribute, "after a restore: all that it keeps is declared state; one by one it said FIRE"),
        (DependsOnThePast, "when all is done again"),
        (LooksAtTheWatermark, "at once or in steps"),
        (SetsTimersForEver, "timers come to an end"),
        (LeavesSomething, "leave neither timers nor state.*'@trigger.1.said'"),
        (DoesNotRearm, "rearm.. sets the timers"),
        (KeepsTheLastOfBoth, "state 'last' is the same in whatever order"),
        (SaysNothing, "one of hw.TriggerResult.*of a row it said None"),
        (Raises, "it raises nothing.*no field 'price'"),
        (NeverDoes, "it fires, unless it says can_fire = False"),
        (DoesAllTheSame, "with can_fire = False it never fires"),
    ],
)
def test_a_trigger_with_a_fault_is_told_the_rule(trigger: type[hw.Trigger], rule: str) -> None:
    with pytest.raises(NotConforming, match=f"{trigger.__name__}: .*{rule}"):
        check_trigger(trigger(), SCHEMA, ROWS)


def test_the_sequence_that_shows_a_fault_is_a_short_one() -> None:
    with pytest.raises(NotConforming) as failure:
        check_trigger(CountsInAnAttribute(), SCHEMA, ROWS)
    _, sequence = str(failure.value).split("shown by tumbling(60000 ms) windows, ")
    assert sequence.count("rows ") >= 2
    assert 3 <= sequence.count("@") <= 4
    assert "moves" not in sequence


def test_the_same_seed_shows_the_same() -> None:
    texts = set()
    for _ in range(2):
        with pytest.raises(NotConforming) as failure:
            check_trigger(StartsEachBatchAnew(), SCHEMA, ROWS, seed=7)
        texts.add(str(failure.value))
    assert len(texts) == 1


@pytest.mark.parametrize(("rows", "size"), [([], "1 min"), (ROWS, "7 ms")])
def test_a_check_needs_rows_and_windows(rows: list[Any], size: str) -> None:
    with pytest.raises(ValueError, match="give rows, and windows of at least 8 ms"):
        check_trigger(T.count(2), SCHEMA, rows, size=size)
