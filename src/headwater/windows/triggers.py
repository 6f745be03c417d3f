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

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamps
from headwater.data.schema import Schema
from headwater.descriptors import ReducingState, StateDeclaration, ValueState, keyed_states, state_of_type
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.functions import Timers

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
    """Decides when a window fires. Subclass it for a trigger of your own; declare state as class attributes.

    What it says of rows it says in one class: of each row (`on_element`), or, where that depends on nothing but their
    timestamps, of each and of many at once (`on_rows`). The second is used where nobody needs rows as Python values, for a
    trigger and all its parts or for none of them.
    """

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
        """Rows with these timestamps came into the window, in this order: what `on_element` says of each, in one call."""
        raise NotImplementedError

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        """For a trigger with `on_rows`: after how many rows, at the earliest, it fires if nothing but rows comes.

        Compositions that start it over or take turns ask, and give it no more rows than that at once. None if rows alone
        never make it fire; 1 is always right.
        """
        return 1

    def takes_rows(self) -> bool:
        """Whether it and its parts can be asked for many rows at once."""
        kind = type(self)
        giver = next(cls for cls in kind.__mro__ if "on_element" in vars(cls))
        own = vars(giver)
        is_pair = own.get("on_rows") is kind.on_rows is not Trigger.on_rows
        is_whole = kind.rows_to_fire in (own.get("rows_to_fire"), Trigger.rows_to_fire)
        return is_pair and is_whole and all(part.takes_rows() for part in self.parts())

    def __init_subclass__(cls) -> None:
        """A class has the forms for many rows together with that for each: another's do not know what it does."""
        super().__init_subclass__()
        own = vars(cls)
        if "on_rows" not in own and "rows_to_fire" not in own:
            return
        needed = ["on_element", "on_rows"]
        if cls.rows_to_fire is not Trigger.rows_to_fire:
            needed.append("rows_to_fire")
        if missing := [name for name in needed if name not in own]:
            raise GraphError.half_trigger(cls.__name__, missing)

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

    def reset(self) -> None:
        """Start over: no state, here and in its parts. Timers stay, as others may wait for them too."""
        for part in self.parts():
            part.reset()
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
        if self.seen.get() < self._count:
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
        if self.next.get() is not None:
            self._set(self.next.get(), ctx)

    def clear(self, ctx: TriggerContext) -> None:
        if self.next.get() is not None:
            timers = ctx.timers
            (timers.delete_event_time if self._is_event_time else timers.delete_processing_time)(self.next.get())


class ContinuousEventTimeTrigger(_ContinuousTrigger):
    """Fires whenever event time passes a multiple of the interval, and at the window's end."""

    _is_event_time = True


class ContinuousProcessingTimeTrigger(_ContinuousTrigger):
    """Fires whenever processing time passes a multiple of the interval."""

    _is_event_time = False


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
