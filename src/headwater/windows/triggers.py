"""The triggers there are: when a window's result is emitted, and whether its content is dropped then."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamps
from headwater.data.schema import Schema
from headwater.descriptors import ReducingState, StateDeclaration, ValueState, state_of_type
from headwater.durations import Duration
from headwater.errors import GraphError
from headwater.windows.timeout import LastRowTimeout, TimeoutTrigger
from headwater.windows.trigger import (
    CONTINUE,
    FIRE,
    NO_FIRINGS,
    Firings,
    Trigger,
    TriggerContext,
    TriggerResult,
    checked,
    count_rows,
    interval_ms,
)

__all__ = [
    "Firings",
    "Trigger",
    "TriggerContext",
    "TriggerResult",
    "continuous",
    "continuous_processing_time",
    "count",
    "delta",
    "event_time",
    "never",
    "processing_time",
    "purging",
    "timeout",
]


class EventTimeTrigger(Trigger):
    """Fires when the watermark passes the window's end, and then for every late row."""

    can_merge = True
    waits_for_time = True

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        if ctx.window.last <= ctx.watermark:
            return FIRE
        ctx.timers.event_time(ctx.window.last)
        return CONTINUE

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        if ctx.window.last <= ctx.watermark:
            return Firings.at(np.arange(len(timestamps)))
        ctx.timers.event_time(ctx.window.last)
        return NO_FIRINGS

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        return 1 if ctx.window.last <= ctx.watermark else None

    def on_event_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        return FIRE if timestamp == ctx.window.last else CONTINUE

    def rearm(self, ctx: TriggerContext) -> None:
        if ctx.window.last > ctx.watermark:
            ctx.timers.event_time(ctx.window.last)

    def clear(self, ctx: TriggerContext) -> None:
        ctx.timers.delete_event_time(ctx.window.last)


class ProcessingTimeTrigger(Trigger):
    """Fires when processing time passes the window's end."""

    can_merge = True
    waits_for_time = True

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        ctx.timers.processing_time(ctx.window.last)
        return CONTINUE

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        ctx.timers.processing_time(ctx.window.last)
        return NO_FIRINGS

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        return None

    def on_processing_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        return FIRE if timestamp == ctx.window.last else CONTINUE

    def rearm(self, ctx: TriggerContext) -> None:
        if ctx.window.last > ctx.now:
            ctx.timers.processing_time(ctx.window.last)

    def clear(self, ctx: TriggerContext) -> None:
        ctx.timers.delete_processing_time(ctx.window.last)


class CountTrigger(Trigger):
    """Fires for every `count` rows."""

    can_merge = True
    seen = ReducingState("bigint", reduce=operator.add)

    def __init__(self, count: int) -> None:
        self._count = count

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        self.seen.add(1)
        if (self.seen.get() or 0) < self._count:
            return CONTINUE
        self.seen.clear()
        return FIRE

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        return count_rows(self.seen, self._count, len(timestamps))

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        return self._count - (self.seen.get() or 0)


class _ContinuousTrigger(Trigger):
    """Fires whenever a time passes a multiple of the interval; those that extend it say which time."""

    can_merge = True
    next = ReducingState("bigint", reduce=min)
    _is_event_time: bool

    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = interval_ms

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        if self._is_late(ctx):
            return FIRE
        self._begin(ctx.timestamp, ctx)
        return CONTINUE

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        if self._is_late(ctx):
            return Firings.at(np.arange(len(timestamps)))
        first = int(timestamps[0])
        self._begin(None if first == MIN_TIMESTAMP else first, ctx)
        return NO_FIRINGS

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        return 1 if self._is_late(ctx) else None

    def _is_late(self, ctx: TriggerContext) -> bool:
        """Whether rows come behind the window's end: in processing time there are no such."""
        return self._is_event_time and ctx.window.last <= ctx.watermark

    def _begin(self, timestamp: int | None, ctx: TriggerContext) -> None:
        """Rows came, the first of them with this timestamp: set the timers that are not set."""
        if self._is_event_time:
            ctx.timers.event_time(ctx.window.last)
        if self.next.get() is not None:
            return
        moment = timestamp if self._is_event_time else ctx.now
        if moment is None:
            raise ValueError("triggers.continuous needs rows with event time; declare watermarks at the source")
        self._set_next(_aligned(moment, self._interval_ms), ctx)

    def on_event_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        return self._on_time(timestamp, ctx) if self._is_event_time else CONTINUE

    def on_processing_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        return CONTINUE if self._is_event_time else self._on_time(timestamp, ctx)

    def _on_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        if timestamp == ctx.window.last:
            return FIRE
        if timestamp != self.next.get():
            return CONTINUE
        self.next.clear()
        self._set_next(timestamp, ctx)
        return FIRE

    def _set_next(self, after: int, ctx: TriggerContext) -> None:
        at = min(after + self._interval_ms, ctx.window.last)
        if self._is_event_time and ctx.watermark == ctx.window.last == MAX_TIMESTAMP:
            at = MAX_TIMESTAMP  # the input has ended: of all the multiples up to the end of time, only the end is left
        self.next.add(at)
        self._set(at, ctx)

    def _set(self, at: int, ctx: TriggerContext) -> None:
        (ctx.timers.event_time if self._is_event_time else ctx.timers.processing_time)(at)

    def rearm(self, ctx: TriggerContext) -> None:
        if (at := self.next.get()) is not None:
            self._set(at, ctx)

    def clear(self, ctx: TriggerContext) -> None:
        if (at := self.next.get()) is not None:
            timers = ctx.timers
            (timers.delete_event_time if self._is_event_time else timers.delete_processing_time)(at)


class ContinuousEventTimeTrigger(_ContinuousTrigger):
    """Fires whenever event time passes a multiple of the interval, and at the window's end."""

    _is_event_time = True


class ContinuousProcessingTimeTrigger(_ContinuousTrigger):
    """Fires whenever processing time passes a multiple of the interval."""

    _is_event_time = False


class DeltaTrigger(Trigger):
    """Fires when the delta between a row and the row that fired last exceeds the threshold."""

    last: ValueState[Any]

    def __init__(self, threshold: float, delta: Callable[[Any, Any], float]) -> None:
        self._threshold, self._delta = threshold, delta

    def states(self, schema: Schema, step: str) -> list[StateDeclaration]:
        return [state_of_type(ValueState("last", "boolean"), schema.struct)]

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        last = self.last.get()
        if last is None:
            self.last.set(event)
            return CONTINUE
        if self._delta(last, event) <= self._threshold:
            return CONTINUE
        self.last.set(event)
        return FIRE


class NeverTrigger(Trigger):
    """Does not fire."""

    can_merge = True
    can_fire = False

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return CONTINUE

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        return NO_FIRINGS

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        return None


class PurgingTrigger(Trigger):
    """Another trigger, whose firings also drop the window's content."""

    def __init__(self, inner: Trigger) -> None:
        self._inner = inner
        self.can_merge, self.can_fire, self.waits_for_time = inner.can_merge, inner.can_fire, inner.waits_for_time

    def parts(self) -> Sequence[Trigger]:
        return (self._inner,)

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return self._purged(self._inner.on_element(event, ctx))

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        places, _ = self._inner.on_rows(timestamps, ctx)
        return Firings(places, np.ones(len(places), np.bool_))

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        return self._inner.rows_to_fire(ctx)

    def on_event_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        return self._purged(self._inner.on_event_time(timestamp, ctx))

    def on_processing_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        return self._purged(self._inner.on_processing_time(timestamp, ctx))

    def rearm(self, ctx: TriggerContext) -> None:
        self._inner.rearm(ctx)

    def clear(self, ctx: TriggerContext) -> None:
        self._inner.clear(ctx)

    @staticmethod
    def _purged(result: TriggerResult) -> TriggerResult:
        return TriggerResult.FIRE_AND_PURGE if FIRE in result else result


def event_time() -> Trigger:
    """Fire when the watermark passes the window's end, and for every late row: the default in event time."""
    return EventTimeTrigger()


def processing_time() -> Trigger:
    """Fire when processing time passes the window's end: the default in processing time."""
    return ProcessingTimeTrigger()


def count(n: int) -> Trigger:
    """Fire for every `n` rows in a window."""
    if type(n) is not int or n <= 0:
        raise GraphError.bad_argument("triggers.count", "needs a positive number", n, "write triggers.count(100)")
    return CountTrigger(n)


def continuous(interval: Duration) -> Trigger:
    """Fire whenever event time passes a multiple of the interval, and at the window's end."""
    return ContinuousEventTimeTrigger(interval_ms(interval, "continuous"))


def continuous_processing_time(interval: Duration) -> Trigger:
    """Fire whenever processing time passes a multiple of the interval."""
    return ContinuousProcessingTimeTrigger(interval_ms(interval, "continuous_processing_time"))


def delta(threshold: float, function: Callable[[Any, Any], float]) -> Trigger:
    """Fire when `function(row that fired last, row)` exceeds the threshold."""
    if not callable(function):
        raise GraphError.bad_argument("triggers.delta", "needs a function of two rows", function, "pass a function")
    return DeltaTrigger(threshold, function)


def purging(trigger: Trigger) -> Trigger:
    """The same firings, each dropping the window's content."""
    return PurgingTrigger(checked(trigger, "triggers.purging"))


def timeout(
    trigger: Trigger, after: Duration, *, reset_on_new_record: bool = False, clear_on_timeout: bool = True
) -> Trigger:
    """Fire when the trigger does, or at the latest `after` so much processing time with rows that it has not fired for.

    Time counts from the first of these rows, or with `reset_on_new_record` from the last. A timeout starts the trigger
    over; with `clear_on_timeout=False` it goes on as if nothing had been, and no second timeout comes before it fires for a
    row. `triggers.timeout(triggers.count(100), "10 s")`
    """
    kind = LastRowTimeout if reset_on_new_record else TimeoutTrigger
    return kind(checked(trigger, "triggers.timeout"), interval_ms(after, "timeout"), clears=clear_on_timeout)


def never() -> Trigger:
    """Do not fire."""
    return NeverTrigger()


def _aligned(timestamp: int, interval_ms: int) -> int:
    """The multiple of the interval next to a timestamp on the side of zero, as Flink has it."""
    return timestamp - timestamp % interval_ms if timestamp >= 0 else timestamp + -timestamp % interval_ms
