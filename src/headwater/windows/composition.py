"""Triggers made of triggers: `repeat`, `either`, `both`, `then`, and the form that reads as it works, `early(...)`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from headwater.data.batch import Timestamps
from headwater.descriptors import ReducingState
from headwater.durations import Duration
from headwater.errors import GraphError
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


class _Composed(Trigger):
    """What compositions share: parts, and one way to ask them."""

    def __init__(self, *parts: Trigger) -> None:
        self._parts = parts
        self.can_merge = all(part.can_merge for part in parts)
        self.can_fire = any(part.can_fire for part in parts)

    def parts(self) -> Sequence[Trigger]:
        return self._parts

    def on_event_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        return self._ask("on_event_time", timestamp, ctx)

    def on_processing_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        return self._ask("on_processing_time", timestamp, ctx)

    def rearm(self, ctx: TriggerContext) -> None:
        for part in self._parts:
            part.rearm(ctx)

    def clear(self, ctx: TriggerContext) -> None:
        for part in self._parts:
            part.clear(ctx)

    def _ask(self, what: str, about: Any, ctx: TriggerContext) -> TriggerResult:
        raise NotImplementedError


class RepeatTrigger(_Composed):
    """Starts its part over whenever that has fired and is done."""

    def _ask(self, what: str, about: Any, ctx: TriggerContext) -> TriggerResult:
        part = self._parts[0]
        result: TriggerResult = getattr(part, what)(about, ctx)
        if FIRE in result and part.is_done():
            part.reset()
            part.rearm(ctx)
        return result

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return self._ask("on_element", event, ctx)

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        part, found, at = self._parts[0], [NO_FIRINGS], 0
        while at < len(timestamps):
            rows, fired = until_it_fires(part, timestamps[at:], ctx)
            if len(fired.places) and part.is_done():
                part.reset()
                part.rearm(ctx)
            found.append(fired.behind(at))
            at += rows
        return Firings(*map(np.concatenate, zip(*found, strict=True)))

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        return self._parts[0].rows_to_fire(ctx)


class EitherTrigger(_Composed):
    """Fires whenever one of its parts does."""

    def __init__(self, *parts: Trigger) -> None:
        super().__init__(*parts)
        self.waits_for_time = all(part.waits_for_time for part in parts)

    def _ask(self, what: str, about: Any, ctx: TriggerContext) -> TriggerResult:
        result = CONTINUE
        for part in self._parts:
            result |= getattr(part, what)(about, ctx)
        return result

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return self._ask("on_element", event, ctx)

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        return reduce(_together, [part.on_rows(timestamps, ctx) for part in self._parts])

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        return min((n for part in self._parts if (n := part.rows_to_fire(ctx)) is not None), default=None)


class BothTrigger(_Composed):
    """Fires when every part has fired since it fired last."""

    fired = ReducingState("bigint", reduce=operator.or_)

    def __init__(self, *parts: Trigger) -> None:
        super().__init__(*parts)
        self.can_fire = all(part.can_fire for part in parts)

    def _ask(self, what: str, about: Any, ctx: TriggerContext) -> TriggerResult:
        purge = CONTINUE
        for place, part in enumerate(self._parts):
            result: TriggerResult = getattr(part, what)(about, ctx)
            purge |= result & TriggerResult.PURGE
            if FIRE in result:
                self.fired.add(1 << place)
        if self.fired.get() != (1 << len(self._parts)) - 1:
            return CONTINUE
        self.fired.clear()
        return FIRE | purge

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return self._ask("on_element", event, ctx)

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        found = [part.on_rows(timestamps, ctx) for part in self._parts]
        missing = [place for place in range(len(found)) if not (self.fired.get() or 0) >> place & 1]
        at, places = 0, []
        while None not in (firsts := [_first_from(at, found[place]) for place in missing]):
            places.append(max(first for first in firsts if first is not None))
            at, missing = places[-1] + 1, list(range(len(found)))
        if at:
            self.fired.clear()
        for place, one in enumerate(found):
            if _first_from(at, one) is not None:
                self.fired.add(1 << place)
        purges = np.concatenate([one.places[one.purges] for one in found])
        return Firings(np.array(places, np.int64), np.isin(places, purges))

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        fired = self.fired.get() or 0
        waits = [part.rows_to_fire(ctx) for place, part in enumerate(self._parts) if not fired >> place & 1]
        return None if None in waits else max(n for n in waits if n is not None)


class ThenTrigger(_Composed):
    """Each part until it fires, one after the other; the last one stays."""

    turn = ReducingState("bigint", reduce=max)

    def __init__(self, *parts: Trigger) -> None:
        super().__init__(*parts)
        self.can_fire = parts[0].can_fire

    def _ask(self, what: str, about: Any, ctx: TriggerContext) -> TriggerResult:
        part = self._current()
        result: TriggerResult = getattr(part, what)(about, ctx)
        if FIRE in result:
            self.turn.add(min((self.turn.get() or 0) + 1, len(self._parts)))
            if self._current() is not part:
                part.reset()
                self._current().rearm(ctx)
        return result

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return self._ask("on_element", event, ctx)

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        found, at = [NO_FIRINGS], 0
        while at < len(timestamps):
            part = self._current()
            if part is self._parts[-1]:
                rows, fired = len(timestamps) - at, part.on_rows(timestamps[at:], ctx)
            else:
                rows, fired = until_it_fires(part, timestamps[at:], ctx)
            if len(fired.places):
                self.turn.add(min((self.turn.get() or 0) + len(fired.places), len(self._parts)))
                if self._current() is not part:
                    part.reset()
                    self._current().rearm(ctx)
            found.append(fired.behind(at))
            at += rows
        return Firings(*map(np.concatenate, zip(*found, strict=True)))

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        return self._current().rows_to_fire(ctx)

    def _current(self) -> Trigger:
        return self._parts[min(self.turn.get() or 0, len(self._parts) - 1)]

    def is_done(self) -> bool:
        return (self.turn.get() or 0) >= len(self._parts) and self._parts[-1].is_done()

    def rearm(self, ctx: TriggerContext) -> None:
        self._current().rearm(ctx)


class StagedTrigger(Trigger):
    """Early, on time, late: what `early(...)` gives."""

    can_merge = True
    seen = ReducingState("bigint", reduce=operator.add)
    next = ReducingState("bigint", reduce=min)

    def __init__(self, early: tuple[int | None, int | None], late: tuple[int | None, int | None]) -> None:
        self._early, self._late = early, late
        self.waits_for_time = early[1] is None

    def on_time(self) -> StagedTrigger:
        """And when the watermark passes the window's end, which it always does; said for the reader."""
        return self

    def late(
        self,
        *,
        each: bool = False,
        every: Duration | None = None,
        count: int | None = None,
    ) -> StagedTrigger:
        """And for late rows: for each one, once in a while of processing time, or for every `count` of them."""
        return StagedTrigger(self._early, _stage("late", each=each, every=every, count=count))

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        count = self._begin(ctx)
        if count is None:
            return CONTINUE
        self.seen.add(1)
        if (self.seen.get() or 0) < count:
            return CONTINUE
        self.seen.clear()
        return FIRE

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        count = self._begin(ctx)
        return NO_FIRINGS if count is None else count_rows(self.seen, count, len(timestamps))

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        _, count = self._stage(ctx)
        return None if count is None else count - (self.seen.get() or 0)

    def _stage(self, ctx: TriggerContext) -> tuple[int | None, int | None]:
        return self._early if ctx.window.last > ctx.watermark else self._late

    def _begin(self, ctx: TriggerContext) -> int | None:
        """A row came: set the timers; gives the number of rows to fire for, if there is one."""
        if ctx.window.last > ctx.watermark:
            ctx.timers.event_time(ctx.window.last)
        every_ms, count = self._stage(ctx)
        if every_ms is not None and self.next.get() is None:
            self.next.add(ctx.now + every_ms)
            ctx.timers.processing_time(ctx.now + every_ms)
        return count

    def on_event_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        if timestamp != ctx.window.last:
            return CONTINUE
        self.clear(ctx)
        self.next.clear()
        self.seen.clear()
        return FIRE

    def on_processing_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        if timestamp != self.next.get():
            return CONTINUE
        self.next.clear()
        return FIRE

    def rearm(self, ctx: TriggerContext) -> None:
        if ctx.window.last > ctx.watermark:
            ctx.timers.event_time(ctx.window.last)
        if (at := self.next.get()) is not None:
            ctx.timers.processing_time(at)

    def clear(self, ctx: TriggerContext) -> None:
        ctx.timers.delete_event_time(ctx.window.last)
        if (at := self.next.get()) is not None:
            ctx.timers.delete_processing_time(at)


def until_it_fires(part: Trigger, timestamps: Timestamps, ctx: TriggerContext) -> tuple[int, Firings]:
    """Give a trigger rows up to the first that can make it fire; how many these were, and what it says of them."""
    at_the_earliest = part.rows_to_fire(ctx)
    rows = len(timestamps) if at_the_earliest is None else min(max(1, at_the_earliest), len(timestamps))
    fired = part.on_rows(timestamps[:rows], ctx)
    if len(fired.places) and fired.places[0] != rows - 1:
        raise ValueError(
            f"{part.describe()} fired after {fired.places[0] + 1} rows; rows_to_fire had said {at_the_earliest}; "
            f"give the smallest number of rows that can make it fire, or 1"
        )
    return rows, fired


def _together(left: Firings, right: Firings) -> Firings:
    """The firings of both; where one drops the content, it is dropped."""
    if not len(left.places) or not len(right.places):
        return left if len(left.places) else right
    places = np.union1d(left.places, right.places)
    return Firings(places, np.isin(places, np.concatenate([one.places[one.purges] for one in (left, right)])))


def _first_from(place: int, firings: Firings) -> int | None:
    """The first of the firings at a place or behind it."""
    at = np.searchsorted(firings.places, place)
    return int(firings.places[at]) if at < len(firings.places) else None


def repeat(trigger: Trigger) -> Trigger:
    """Start the trigger over whenever it has fired; a `then` when the last of its triggers has."""
    return RepeatTrigger(checked(trigger, "repeat"))


def either(*triggers: Trigger) -> Trigger:
    """Fire whenever one of the triggers does."""
    return EitherTrigger(*_several(triggers, "either"))


def both(*triggers: Trigger) -> Trigger:
    """Fire when every one of the triggers has fired, and start over."""
    return BothTrigger(*_several(triggers, "both"))


def then(*triggers: Trigger) -> Trigger:
    """The first trigger until it fires, then the second, and so on; the last one stays."""
    return ThenTrigger(*_several(triggers, "then"))


def early(*, every: Duration | None = None, count: int | None = None) -> StagedTrigger:
    """Fire early, and on time; for late rows too, one by one unless `.late(...)` says otherwise.

    `every` is processing time from the first row after the last firing; `count` is a number of rows.
    `early(every="1 min").on_time().late(each=True)`
    """
    return StagedTrigger(_stage("early", each=False, every=every, count=count), (None, 1))


def _stage(name: str, *, each: bool, every: Duration | None, count: int | None) -> tuple[int | None, int | None]:
    if each + (every is not None) + (count is not None) != 1:
        choices = "every='1 min' or count=100" + (" or each=True" if name == "late" else "")
        raise GraphError.bad_argument(name, f"needs one of {choices}", (each, every, count), f"write {name}(...)")
    if count is not None and (type(count) is not int or count <= 0):
        raise GraphError.bad_argument(name, "needs a positive count", count, f"write {name}(count=100)")
    return None if every is None else interval_ms(every, name), 1 if each else count


def _several(triggers: tuple[Trigger, ...], step: str) -> list[Trigger]:
    if len(triggers) < 2:
        raise GraphError.bad_argument(step, "needs at least two triggers", triggers, f"write {step}(a, b)")
    return [checked(trigger, step) for trigger in triggers]
