"""Watermark strategies users write on a source: where event time comes from and how it advances."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError


class WatermarkGenerator:
    """Says how far event time has come, from the rows that one split gives to one epoch.

    A new generator is made for each split and epoch, so a replay asks it the same and hears the same. It knows only the
    rows of its epoch; what was said in earlier epochs is kept, because a watermark never goes back.
    """

    def on_event(self, event: Any, timestamp: int) -> int | None:
        """Called for each row with its event time in ms; the watermark in ms, or None to say nothing."""

    def on_periodic(self) -> int | None:
        """Called once after the epoch's rows, if there were any; the watermark in ms, or None to say nothing."""


@dataclass(frozen=True)
class _Punctuated(WatermarkGenerator):
    """Takes watermarks from rows that carry one."""

    function: Callable[[Any], int | None]

    def on_event(self, event: Any, timestamp: int) -> int | None:
        return self.function(event)


@dataclass(frozen=True)
class Watermarks:
    """Where event time comes from, how the watermark of each split follows it, and when a split does not count.

    Without a generator a split's watermark stays `delay_ms` behind its largest timestamp.
    """

    column: str | None
    delay_ms: int = 0
    generator: Callable[[], WatermarkGenerator] | None = None
    idle_ms: int | None = None
    """After how long without rows a split is idle; None for never."""
    group: str | None = None
    """The splits of all sources of one group are kept near each other in event time; None for no such bond."""
    max_drift_ms: int = 0

    @classmethod
    def none(cls) -> Watermarks:
        """Rows have no timestamps; event time reaches its maximum at the end of input only."""
        return cls(None)

    @classmethod
    def monotonous(cls, column: str) -> Watermarks:
        """Timestamps never go back within a split."""
        return cls(_named(column))

    @classmethod
    def bounded(cls, column: str, delay: Duration) -> Watermarks:
        """Timestamps are out of order by at most `delay` within a split."""
        return cls(_named(column), duration_ms(delay, what="the delay of bounded watermarks"))

    @classmethod
    def punctuated(cls, column: str, function: Callable[[Any], int | None]) -> Watermarks:
        """Some rows carry a watermark: `function(row)` gives it in ms, or None.

        >>> strategy = Watermarks.punctuated("ts", lambda row: row.ts if row.is_last else None)
        """
        if not callable(function):
            raise GraphError.bad_argument(
                "watermarks", "need a function of a row", function, "give one that returns milliseconds or None"
            )
        return cls(_named(column), generator=partial(_Punctuated, function))

    @classmethod
    def custom(cls, column: str, generator_factory: Callable[[], WatermarkGenerator]) -> Watermarks:
        """The watermark of a split is what a `WatermarkGenerator` says; the factory makes one for each split and epoch.

        >>> class Halfway(WatermarkGenerator):
        ...     def on_event(self, event, timestamp):
        ...         return timestamp // 2
        >>> strategy = Watermarks.custom("ts", Halfway)
        """
        is_other_class = isinstance(generator_factory, type) and not issubclass(generator_factory, WatermarkGenerator)
        if is_other_class or not callable(generator_factory):
            raise GraphError.bad_argument(
                "watermarks",
                "need something that makes a WatermarkGenerator",
                generator_factory,
                "give a subclass of hw.WatermarkGenerator or a function that returns an instance of one",
            )
        return cls(_named(column), generator=generator_factory)

    def with_idleness(self, timeout: Duration) -> Watermarks:
        """The same, and a split without rows for `timeout` of processing time does not hold event time back.

        >>> Watermarks.monotonous("ts").with_idleness("30 s").idle_ms
        30000
        """
        idle_ms = duration_ms(timeout, what="the timeout of idleness")
        if idle_ms == 0:
            raise GraphError.bad_argument("watermarks", "need a timeout of idleness above zero", timeout, "raise it")
        return dataclasses.replace(self, idle_ms=idle_ms)

    def aligned(self, group: str, max_drift: Duration) -> Watermarks:
        """The same, and a split that is more than `max_drift` ahead of the slowest one of the group waits for it.

        >>> Watermarks.monotonous("ts").aligned("orders", "1 min").max_drift_ms
        60000
        """
        if self.column is None:
            raise GraphError.bad_argument(
                "watermarks", "can be aligned only when rows have timestamps", "none()", "name an event-time column"
            )
        drift_ms = duration_ms(max_drift, what="the largest drift of aligned watermarks")
        return dataclasses.replace(self, group=_named(group, "alignment group"), max_drift_ms=drift_ms)


def _named(given: object, what: str = "event-time column") -> str:
    if not isinstance(given, str) or not given:
        raise GraphError.bad_argument("watermarks", f"need the name of the {what}", given, "give it as text")
    return given
