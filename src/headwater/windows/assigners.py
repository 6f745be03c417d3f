"""Windows, and the assigners that say which windows a row belongs to. Times are integer milliseconds."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard, TypeVar, overload

from headwater import aggregates
from headwater.aggregates import Aggregate
from headwater.data.batch import FURTHEST_MS, MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.functions import EVENT, PROCESSING
from headwater.windows.evictors import CountEvictor, Evictor
from headwater.windows.triggers import (
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
    Trigger,
)

_FEW_SLICES = 256
"""Slices of a window that can be handled one by one."""
_WIDE_SLICES = 16
"""Slices between the starts of two windows that are worth it; a slide that hardly divides the size makes thousands."""


class Window(NamedTuple):
    """The span `[start, end)`."""

    start: int
    end: int

    @property
    def last(self) -> int:
        """The last timestamp that belongs to the window."""
        return self.end - 1 if self.end < MAX_TIMESTAMP else MAX_TIMESTAMP

    def touches(self, other: Window) -> bool:
        """Whether the two overlap or one begins where the other ends."""
        return self.start <= other.end and self.end >= other.start


@dataclass(frozen=True)
class Windows(Sequence[Window]):
    """Windows at even distances, earliest end first; none is made before it is asked for."""

    first: Window
    number: int
    starts_by_ms: int
    ends_by_ms: int

    def __len__(self) -> int:
        return self.number

    @overload
    def __getitem__(self, at: int) -> Window: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Window]: ...
    def __getitem__(self, at: int | slice) -> Window | Sequence[Window]:
        places = range(self.number)[at]
        return self._at(places) if isinstance(places, int) else [self._at(place) for place in places]

    def _at(self, place: int) -> Window:
        return Window(self.first.start + place * self.starts_by_ms, self.first.end + place * self.ends_by_ms)


GLOBAL = Window(MIN_TIMESTAMP, MAX_TIMESTAMP)
"""The window of everything."""


class WindowAssigner:
    """Says which windows a row belongs to. Subclass it for windows of your own; `assign` must depend on its arguments only."""

    domain = EVENT
    """Whose time `assign` gets: the row's event time, or processing time."""
    merges = False
    """Whether windows of a key that touch become one."""
    is_bounded = True
    """Whether windows have a start and an end that results show."""

    def assign(self, event: Any, timestamp: int) -> Iterable[Window]:
        """The windows of a row."""
        raise NotImplementedError

    def default_trigger(self) -> Trigger:
        """What fires the windows unless the user says otherwise."""
        return EventTimeTrigger() if self.domain == EVENT else ProcessingTimeTrigger()

    def default_evictor(self) -> Evictor | None:
        """What leaves the windows before they are computed, unless the user says otherwise."""
        return None

    def describe(self) -> str:
        """The windows in a few words, for `env.describe()` and errors."""
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<{self.describe()}>"


Kind = TypeVar("Kind", bound=WindowAssigner)


def assigns_as(assigner: WindowAssigner, kind: type[Kind]) -> TypeGuard[Kind]:
    """Whether an assigner gives the windows of its kind; one that overrides `assign` is asked for each row instead."""
    return isinstance(assigner, kind) and type(assigner).assign is kind.assign


class SlicedAssigner(WindowAssigner):
    """Windows made of slices of one width, so that a row is kept once however many windows it belongs to."""

    size_ms: int
    slice_ms: int
    offset_ms: int

    @property
    def slices(self) -> int:
        """How many slices the largest window has."""
        return self.size_ms // self.slice_ms

    @property
    def has_few_slices(self) -> bool:
        """Whether the slices of a window can be handled one by one."""
        return self.slices <= _FEW_SLICES

    @property
    def has_wide_slices(self) -> bool:
        """Whether it pays to keep rows by slices: few lie between the start of a window and that of the next."""
        return True

    def slice_of(self, timestamp: int) -> int:
        """Where the slice of a timestamp starts."""
        return timestamp - (timestamp - self.offset_ms) % self.slice_ms

    def windows_of_slice(self, start: int) -> Sequence[Window]:
        """The windows that a slice is part of, earliest end first."""
        raise NotImplementedError

    def window_after(self, window: Window) -> Window | None:
        """The window that ends next among those that share its last slice; None if there is none."""
        following = self.windows_of_slice(window.end - self.slice_ms)
        at = bisect_right(following, window.end, key=lambda one: one.end)
        return following[at] if at < len(following) else None

    def slices_of_window(self, window: Window) -> range:
        """Where the slices of a window start."""
        return range(window.start, window.end, self.slice_ms)

    def assign(self, event: Any, timestamp: int) -> Iterable[Window]:
        return self.windows_of_slice(self.slice_of(timestamp))


class Tumbling(SlicedAssigner):
    """Windows of one size, end to end."""

    def __init__(self, size_ms: int, offset_ms: int = 0) -> None:
        self.size_ms = self.slice_ms = size_ms
        self.offset_ms = offset_ms

    def windows_of_slice(self, start: int) -> Sequence[Window]:
        return [Window(start, start + self.size_ms)]

    def describe(self) -> str:
        return f"tumbling({self.size_ms} ms)"


class Sliding(SlicedAssigner):
    """Windows of one size that start every `slide`."""

    def __init__(self, size_ms: int, slide_ms: int, offset_ms: int = 0) -> None:
        self.size_ms, self.slide_ms, self.offset_ms = size_ms, slide_ms, offset_ms
        self.slice_ms = math.gcd(size_ms, slide_ms)

    @property
    def has_wide_slices(self) -> bool:
        return self.has_few_slices or self.slide_ms // self.slice_ms <= _WIDE_SLICES

    def windows_of_slice(self, start: int) -> Sequence[Window]:
        newest = start - (start - self.offset_ms) % self.slide_ms
        starts = range(newest, start - self.size_ms, -self.slide_ms)
        first = starts[-1] if starts else newest
        return Windows(Window(first, first + self.size_ms), len(starts), self.slide_ms, self.slide_ms)

    def describe(self) -> str:
        return f"sliding({self.size_ms} ms, {self.slide_ms} ms)"


class Cumulate(SlicedAssigner):
    """Windows that start together and grow by `step` until they have their size."""

    def __init__(self, step_ms: int, size_ms: int, offset_ms: int = 0) -> None:
        self.slice_ms, self.size_ms, self.offset_ms = step_ms, size_ms, offset_ms

    def windows_of_slice(self, start: int) -> Sequence[Window]:
        first = start - (start - self.offset_ms) % self.size_ms
        ends = range(start + self.slice_ms, first + self.size_ms + 1, self.slice_ms)
        return Windows(Window(first, ends[0]), len(ends), 0, self.slice_ms)

    def describe(self) -> str:
        return f"cumulate({self.slice_ms} ms, {self.size_ms} ms)"


class Session(WindowAssigner):
    """A window per burst of rows: it ends when no row came for the gap."""

    merges = True

    def __init__(self, gap_ms: int | None, by: Callable[[Any], Duration] | None = None) -> None:
        self.gap_ms, self._by = gap_ms, by

    def assign(self, event: Any, timestamp: int) -> Iterable[Window]:
        return (Window(timestamp, timestamp + self.gap_of(event)),)

    def gap_of(self, event: Any) -> int:
        """For how long a row keeps its session open."""
        if self.gap_ms is not None:
            return self.gap_ms
        assert self._by is not None
        gap_ms = duration_ms(self._by(event), what="a session's gap", negative=True)
        if gap_ms <= 0:
            raise ValueError(f"a session's gap must be more than 0, got {gap_ms} ms")
        if gap_ms > FURTHEST_MS:
            raise ValueError(f"a session's gap must be at most 292,000 years, got {gap_ms} ms")
        return gap_ms

    def describe(self) -> str:
        return f"session({self.gap_ms} ms)" if self.gap_ms is not None else "session(by function)"


class Global(WindowAssigner):
    """One window for all rows of a key; it needs a trigger."""

    is_bounded = False

    def assign(self, event: Any, timestamp: int) -> Iterable[Window]:
        return (GLOBAL,)

    def default_trigger(self) -> Trigger:
        return NeverTrigger()

    def describe(self) -> str:
        return "global"


class CountWindows(Global):
    """Every `size` rows of a key; or, with a slide, the last `size` rows after every `slide`."""

    def __init__(self, size: int, slide: int | None) -> None:
        self.size, self.slide = size, slide

    def default_trigger(self) -> Trigger:
        return PurgingTrigger(CountTrigger(self.size)) if self.slide is None else CountTrigger(self.slide)

    def default_evictor(self) -> Evictor | None:
        return None if self.slide is None else CountEvictor(self.size)

    def describe(self) -> str:
        return f"count({self.size})" if self.slide is None else f"count({self.size}, {self.slide})"


def tumbling(size: Duration, offset: Duration = "0 s") -> Tumbling:
    """Windows of one size, end to end; the offset moves their edges away from whole multiples."""
    size_ms = _positive(size, "tumbling", "size")
    return Tumbling(size_ms, _offset(offset, size_ms, "tumbling"))


def sliding(size: Duration, slide: Duration, offset: Duration = "0 s") -> Sliding:
    """Windows of one size, one starting every `slide`; a row belongs to all that cover it."""
    size_ms, slide_ms = _positive(size, "sliding", "size"), _positive(slide, "sliding", "slide")
    return Sliding(size_ms, slide_ms, _offset(offset, slide_ms, "sliding"))


def cumulate(step: Duration, size: Duration, offset: Duration = "0 s") -> Cumulate:
    """Windows that start together every `size` and end after one step, two steps, and so on up to the size."""
    step_ms, size_ms = _positive(step, "cumulate", "step"), _positive(size, "cumulate", "size")
    if size_ms % step_ms:
        raise GraphError.bad_argument(
            "cumulate", "needs a size that is a multiple of its step", f"{step}, {size}", "choose another step"
        )
    return Cumulate(step_ms, size_ms, _offset(offset, size_ms, "cumulate"))


def session(gap: Duration | None = None, *, by: Callable[[Any], Duration] | None = None) -> Session:
    """A window per burst: it ends when no row came for the gap, which is fixed or, with `by`, of each row."""
    if (gap is None) == (by is None):
        raise GraphError.bad_argument("session", "needs a gap or by=function", (gap, by), "write session('30 s')")
    if by is not None and not callable(by):
        raise GraphError.bad_argument("session", "needs a function of the row for by=", by, "pass a function")
    return Session(None if gap is None else _positive(gap, "session", "gap"), by)


def global_window() -> Global:
    """One window for all rows of a key; give it a trigger."""
    return Global()


def count_windows(size: int, slide: int | None = None) -> CountWindows:
    """Windows by number of rows, as `hw.count(size)` and `hw.count(size, slide)`."""
    for what, value in (("size", size), ("slide", slide)):
        if value is not None and (type(value) is not int or value <= 0):
            raise GraphError.bad_argument("count", f"needs a positive {what}", value, "write count(100)")
    return CountWindows(size, slide)


@overload
def count(rows_or_column: int, slide: int | None = None) -> CountWindows: ...
@overload
def count(rows_or_column: str | None = None) -> Aggregate: ...
def count(rows_or_column: int | str | None = None, slide: int | None = None) -> CountWindows | Aggregate:
    """With a number, windows of so many rows of a key; else the aggregate: rows, or the values of a column that are not null.

    `count(100)`, `count(100, 10)` (the last 100 after every 10), `count()`, `count("amount")`
    """
    if rows_or_column is None or isinstance(rows_or_column, str):
        return aggregates.count(rows_or_column)
    return count_windows(rows_or_column, slide)


def processing_time(assigner: WindowAssigner) -> WindowAssigner:
    """The same windows in processing time: the job's clock takes the place of event time."""
    if not assigner.is_bounded:
        raise GraphError.bad_argument(
            "processing_time", "needs windows in time", assigner, "write processing_time(tumbling('10 s'))"
        )
    return InProcessingTime(assigner)


class InProcessingTime(WindowAssigner):
    """Other windows, by the job's clock."""

    domain = PROCESSING

    def __init__(self, inner: WindowAssigner) -> None:
        self.inner = inner
        self.merges = inner.merges

    def assign(self, event: Any, timestamp: int) -> Iterable[Window]:
        return self.inner.assign(event, timestamp)

    def describe(self) -> str:
        return f"processing_time({self.inner.describe()})"


def _positive(value: Duration, step: str, what: str) -> int:
    millis = duration_ms(value, what=f"the {what} of {step} windows", negative=True)
    if millis <= 0:
        raise GraphError.bad_argument(step, f"needs a {what} of more than 0", value, f"write {step}('10 s')")
    if millis > FURTHEST_MS:
        raise GraphError.bad_argument(step, f"needs a {what} of at most 292,000 years", value, "choose a smaller one")
    return millis


def _offset(value: Duration, below_ms: int, step: str) -> int:
    millis = duration_ms(value, what=f"the offset of {step} windows", negative=True)
    if abs(millis) >= below_ms:
        raise GraphError.bad_argument(step, f"needs an offset within {below_ms} ms", value, "choose a smaller one")
    return millis
