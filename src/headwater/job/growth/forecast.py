"""What follows from the course of a state: how much it grows by the hour, and what it will be in a day and in a week.

A forecast goes on as the newer half of the run went. Where entries are known to go after a time, it does so only until the
run is as old as that; when it is older, what was seen is the size that the state keeps. Entries that last longer when they
are written again are believed to do so only if the newer half has not grown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwater.job.growth.course import Point, StepCourse
from headwater.words import TimeDomain

HOUR_MS = 3_600_000
DAY_MS, WEEK_MS = 24 * HOUR_MS, 7 * 24 * HOUR_MS
_LEAST_POINTS = 3
"""Fewer say nothing of how something goes on."""
_STEADY = 0.05
"""By this part of its size at most a state grows in the newer half of a run, if it has the size that it keeps."""


@dataclass(frozen=True)
class Lasting:
    """For how long entries are there, and by which clock."""

    ms: int
    clock: TimeDomain
    is_refreshed: bool = False
    """Whether they last longer when they are written again."""


@dataclass(frozen=True)
class Growth:
    """How a state has grown, by the hour, and what it will be then."""

    entries_per_hour: float
    bytes_per_hour: float
    day_bytes: int
    week_bytes: int
    is_level: bool
    """Whether the run is older than entries get, so that the size it has is the one it keeps."""
    has_only_grown: bool
    """Whether nothing was seen to go, of entries and what they have, and something still comes."""


def growth_of(course: StepCourse, state: str, lasting: Lasting | None) -> Growth | None:
    """How a state grows; None where too little was seen, or no time has passed."""
    newer = [point for point in course.newer if state in point.states]
    if len(newer) < _LEAST_POINTS or newer[-1].at_ms(course.clock) == newer[0].at_ms(course.clock):
        return None
    entries_per_hour = _slope(course.clock, newer, lambda point: point.states[state].entries)
    bytes_per_hour = _slope(course.clock, newer, lambda point: point.states[state].size_bytes)
    now = newer[-1].states[state]
    hours = (newer[-1].at_ms(course.clock) - newer[0].at_ms(course.clock)) / HOUR_MS
    is_steady = entries_per_hour * hours <= _STEADY * now.entries and bytes_per_hour * hours <= _STEADY * now.size_bytes
    left_ms = None if lasting is None else max(0, lasting.ms - course.seen_ms(lasting.clock))
    if left_ms == 0 and lasting is not None and lasting.is_refreshed and not is_steady:
        left_ms = None  # what is written again goes on to be there, and more comes
    most_bytes = max(point.states[state].size_bytes for point in newer)

    def in_ms(ahead_ms: int) -> int:
        if left_ms == 0:
            return most_bytes
        grows_ms = ahead_ms if left_ms is None else min(ahead_ms, left_ms)
        return max(0, round(now.size_bytes + bytes_per_hour * grows_ms / HOUR_MS))

    seen = [point.states[state] for point in course.points if state in point.states]
    more_entries = _never_falls([size.entries for size in seen])
    more_bytes = more_entries and _never_falls([size.size_bytes for size in seen])
    has_only_grown = (more_entries and entries_per_hour > 0) or (more_bytes and bytes_per_hour > 0)
    return Growth(
        entries_per_hour,
        bytes_per_hour,
        in_ms(DAY_MS),
        in_ms(WEEK_MS),
        left_ms == 0,
        has_only_grown and left_ms is None,
    )


def _never_falls(values: list[int]) -> bool:
    return values == sorted(values)


def _slope(clock: TimeDomain, points: list[Point], measured: Callable[[Point], int]) -> float:
    """The growth by the hour that fits the points best."""
    hours = [(point.at_ms(clock) - points[0].at_ms(clock)) / HOUR_MS for point in points]
    values = [measured(point) for point in points]
    middle, mean = sum(hours) / len(hours), sum(values) / len(values)
    spread = sum((hour - middle) ** 2 for hour in hours)
    return sum((hour - middle) * (value - mean) for hour, value in zip(hours, values, strict=True)) / spread
