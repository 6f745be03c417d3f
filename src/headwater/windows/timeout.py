"""Triggers that fire after a while of processing time at the latest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.data.batch import Timestamps
from headwater.descriptors import ReducingState
from headwater.windows.composition import until_it_fires
from headwater.windows.trigger import FIRE, NO_FIRINGS, Firings, Trigger, TriggerContext, TriggerResult


class TimeoutTrigger(Trigger):
    """Another trigger, or a while of processing time after the first row that it has not fired for."""

    due = ReducingState("bigint", reduce=min)
    """When the timeout is over; also after it, if it did not start anew, so that no second one comes."""
    _is_renewed = False

    def __init__(self, inner: Trigger, timeout_ms: int, *, clears: bool) -> None:
        self._inner, self._timeout_ms, self._clears = inner, timeout_ms, clears
        self.can_merge = inner.can_merge and clears  # of a timeout that is over and one that is not, neither is right
        self.waits_for_time = inner.waits_for_time

    def parts(self) -> Sequence[Trigger]:
        return (self._inner,)

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        result = self._inner.on_element(event, ctx)
        self._took_row(ctx, has_fired=FIRE in result)
        return result

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        found, at = [NO_FIRINGS], 0
        while at < len(timestamps):
            rows, fired = until_it_fires(self._inner, timestamps[at:], ctx)
            self._took_row(ctx, has_fired=len(fired.places) > 0)
            found.append(fired.behind(at))
            at += rows
        return Firings(*map(np.concatenate, zip(*found, strict=True)))

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        return self._inner.rows_to_fire(ctx)

    def _took_row(self, ctx: TriggerContext, *, has_fired: bool) -> None:
        """A row came, or several of which the last one may have fired the inner trigger."""
        if has_fired:
            self._start_over(ctx)
            return
        due, later = self.due.get(), ctx.now + self._timeout_ms
        if due is None or (self._is_renewed and due <= ctx.now):
            ctx.timers.processing_time(later)
        if due is None or self._is_renewed:
            self.due.add(later)

    def on_event_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        result = self._inner.on_event_time(timestamp, ctx)
        if FIRE in result and self._clears:
            self._start_over(ctx)
        return result

    def on_processing_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        result = self._inner.on_processing_time(timestamp, ctx)
        due = self.due.get()
        if timestamp == due:
            result |= FIRE
        elif due is not None and timestamp < due:
            ctx.timers.processing_time(due)  # a row has put it off since the timer was set
        if FIRE in result and self._clears:
            self._start_over(ctx)
        return result

    def _start_over(self, ctx: TriggerContext) -> None:
        self.due.clear()
        if self._inner.is_done():
            self._inner.reset()
            self._inner.rearm(ctx)

    def rearm(self, ctx: TriggerContext) -> None:
        self._inner.rearm(ctx)
        if (due := self.due.get()) is not None:
            ctx.timers.processing_time(due)

    def clear(self, ctx: TriggerContext) -> None:
        if (due := self.due.get()) is not None:
            ctx.timers.delete_processing_time(due)
        self._inner.clear(ctx)


class LastRowTimeout(TimeoutTrigger):
    """The same, after the last row that it has not fired for."""

    due = ReducingState("bigint", reduce=max)
    _is_renewed = True
