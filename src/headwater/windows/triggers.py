"""Triggers: when a window's result is emitted, and whether its content is dropped then.

A trigger keeps its state in declared states, as functions do, one per window; timers are the window's own. When windows
merge, reducing states are combined, and `rearm` sets the timers that the merged window needs.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from headwater.data.batch import MAX_TIMESTAMP, Timestamps
from headwater.data.schema import Schema
from headwater.descriptors import ReducingState, StateDeclaration, ValueState, keyed_states, state_of_type
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.functions import Timers

__all__ = [
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
]


class TriggerResult(enum.Flag):
    """What to do with a window."""

    CONTINUE = 0
    FIRE = 1
    PURGE = 2
    FIRE_AND_PURGE = 3


CONTINUE, FIRE = TriggerResult.CONTINUE, TriggerResult.FIRE


class Firings(NamedTuple):
    """After which of the rows that came together a window fires, in order, and where its content is dropped then."""

    places: npt.NDArray[np.int64]
    purges: npt.NDArray[np.bool_]

    @classmethod
    def at(cls, places: npt.NDArray[np.int64]) -> Firings:
        """Firings that drop nothing."""
        return cls(places, np.zeros(len(places), np.bool_))

    def behind(self, rows: int) -> Firings:
        """The same after so many rows more."""
        return Firings(self.places + rows, self.purges)


NO_FIRINGS = Firings.at(np.empty(0, np.int64))


class _Window(Protocol):
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def last(self) -> int: ...


class TriggerContext:
    """What a trigger knows; valid during the call only."""

    __slots__ = ("key", "now", "timers", "timestamp", "watermark", "window")

    key: Any
    window: _Window
    timestamp: int | None
    """The element's timestamp in ms; None when it has none."""
    watermark: int
    now: int
    """Processing time in ms."""
    timers: Timers


class Trigger:
    """Decides when a window fires. Subclass it for a trigger of your own; declare state as class attributes."""

    can_merge = False
    """Whether it works for windows that merge: its states are then reducing states."""
    can_fire = True
    """Whether it ever fires by itself."""
    waits_for_time = False
    """Whether, while the watermark is before the window's end, it makes no difference how many rows came, and when."""

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        """A row came into the window."""
        raise NotImplementedError

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        """Rows with these timestamps came into the window, in this order: what `on_element` says of each, in one call.

        A class that has it beside `on_element` is asked so where nobody needs the rows as Python values.
        """
        raise NotImplementedError

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        """For a trigger with `on_rows`: after how many rows it fires next if nothing but rows comes; None if never."""
        return None

    def takes_rows(self) -> bool:
        """Whether it and its parts have `on_rows`; one that is inherited does not know of an `on_element` that is not."""
        return "on_rows" in vars(type(self)) and all(part.takes_rows() for part in self.parts())

    def on_event_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        """An event-time timer of the window fires; it may be another trigger's."""
        return CONTINUE

    def on_processing_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        """A processing-time timer of the window fires; it may be another trigger's."""
        return CONTINUE

    def rearm(self, ctx: TriggerContext) -> None:
        """Set the timers that the window needs from now on: it came out of a merge, or the trigger's turn has come."""

    def clear(self, ctx: TriggerContext) -> None:
        """The window is gone: delete timers. Declared states are cleared by the runtime."""

    def is_done(self) -> bool:
        """Whether, having fired, it has done all it does before it would start over."""
        return True

    def parts(self) -> Sequence[Trigger]:
        """The triggers it is composed of."""
        return ()

    def describe(self) -> str:
        """The trigger and its parts in a word each; state fits as long as this is the same."""
        parts = ", ".join(part.describe() for part in self.parts())
        return f"{type(self).__name__}({parts})"

    def states(self, schema: Schema, step: str) -> list[StateDeclaration]:
        """The states it keeps; by default those declared on its class."""
        return keyed_states(self, step)

    def reset(self, ctx: TriggerContext) -> None:
        """Start over: no timers, no state, here and in its parts."""
        self.clear(ctx)
        for part in self.parts():
            part.reset(ctx)
        for value in vars(self).values():
            if hasattr(value, "changes") and hasattr(value, "clear"):  # an opened state
                value.clear()


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
        if self.seen.get() < self._count:
            return CONTINUE
        self.seen.clear()
        return FIRE

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        return count_rows(self.seen, self._count, len(timestamps))

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        return self._count - (self.seen.get() or 0)


class ContinuousEventTimeTrigger(Trigger):
    """Fires whenever event time passes a multiple of the interval, and at the window's end."""

    can_merge = True
    next = ReducingState("bigint", reduce=min)

    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = interval_ms

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        if ctx.window.last <= ctx.watermark:
            return FIRE
        ctx.timers.event_time(ctx.window.last)
        if self.next.get() is None:
            assert ctx.timestamp is not None
            self._set_next(_aligned(ctx.timestamp, self._interval_ms), ctx)
        return CONTINUE

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        if ctx.window.last <= ctx.watermark:
            return Firings.at(np.arange(len(timestamps)))
        ctx.timers.event_time(ctx.window.last)
        if self.next.get() is None:
            self._set_next(_aligned(int(timestamps[0]), self._interval_ms), ctx)
        return NO_FIRINGS

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        return 1 if ctx.window.last <= ctx.watermark else None

    def on_event_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        if timestamp == ctx.window.last:
            return FIRE
        if timestamp != self.next.get():
            return CONTINUE
        self.next.clear()
        self._set_next(timestamp, ctx)
        return FIRE

    def _set_next(self, after: int, ctx: TriggerContext) -> None:
        at = min(after + self._interval_ms, ctx.window.last)
        if ctx.watermark == ctx.window.last == MAX_TIMESTAMP:
            at = MAX_TIMESTAMP  # the input has ended: of all the multiples up to the end of time, only the end is left
        self.next.add(at)
        ctx.timers.event_time(at)

    def rearm(self, ctx: TriggerContext) -> None:
        if self.next.get() is not None:
            ctx.timers.event_time(self.next.get())

    def clear(self, ctx: TriggerContext) -> None:
        if self.next.get() is not None:
            ctx.timers.delete_event_time(self.next.get())


class ContinuousProcessingTimeTrigger(Trigger):
    """Fires whenever processing time passes a multiple of the interval."""

    can_merge = True
    next = ReducingState("bigint", reduce=min)

    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = interval_ms

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        if self.next.get() is None:
            self._set_next(_aligned(ctx.now, self._interval_ms), ctx)
        return CONTINUE

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        if self.next.get() is None:
            self._set_next(_aligned(ctx.now, self._interval_ms), ctx)
        return NO_FIRINGS

    def on_processing_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        if timestamp == ctx.window.last:
            return FIRE
        if timestamp != self.next.get():
            return CONTINUE
        self.next.clear()
        self._set_next(timestamp, ctx)
        return FIRE

    def _set_next(self, after: int, ctx: TriggerContext) -> None:
        at = min(after + self._interval_ms, ctx.window.last)
        self.next.add(at)
        ctx.timers.processing_time(at)

    def rearm(self, ctx: TriggerContext) -> None:
        if self.next.get() is not None:
            ctx.timers.processing_time(self.next.get())

    def clear(self, ctx: TriggerContext) -> None:
        if self.next.get() is not None:
            ctx.timers.delete_processing_time(self.next.get())


class DeltaTrigger(Trigger):
    """Fires when the delta between a row and the row that fired last exceeds the threshold."""

    last: ValueState

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
    return ContinuousEventTimeTrigger(_interval(interval, "continuous"))


def continuous_processing_time(interval: Duration) -> Trigger:
    """Fire whenever processing time passes a multiple of the interval."""
    return ContinuousProcessingTimeTrigger(_interval(interval, "continuous_processing_time"))


def delta(threshold: float, function: Callable[[Any, Any], float]) -> Trigger:
    """Fire when `function(row that fired last, row)` exceeds the threshold."""
    if not callable(function):
        raise GraphError.bad_argument("triggers.delta", "needs a function of two rows", function, "pass a function")
    return DeltaTrigger(threshold, function)


def purging(trigger: Trigger) -> Trigger:
    """The same firings, each dropping the window's content."""
    return PurgingTrigger(checked(trigger, "triggers.purging"))


def never() -> Trigger:
    """Do not fire."""
    return NeverTrigger()


def count_rows(seen: Any, count: int, rows: int) -> Firings:
    """Where a count is reached by so many rows more; keeps what is left of them in the state `seen`."""
    before = seen.get() or 0
    if before:
        seen.clear()
    if left := (before + rows) % count:
        seen.add(left)
    return Firings.at(np.arange(count - before - 1, rows, count)) if before + rows >= count else NO_FIRINGS


def checked(trigger: Any, step: str) -> Trigger:
    """The trigger, if it is one."""
    if not isinstance(trigger, Trigger):
        raise GraphError.bad_argument(step, "needs a hw.Trigger", trigger, "use one of hw.triggers")
    return trigger


def _interval(interval: Duration, name: str) -> int:
    millis = duration_ms(interval, what=f"the interval of triggers.{name}", negative=True)
    if millis <= 0:
        raise GraphError.bad_argument(f"triggers.{name}", "needs an interval of more than 0", interval, "write '10 s'")
    return millis


def _aligned(timestamp: int, interval_ms: int) -> int:
    """The multiple of the interval next to a timestamp on the side of zero, as Flink has it."""
    return timestamp - timestamp % interval_ms if timestamp >= 0 else timestamp + -timestamp % interval_ms
