"""The course of state: how many entries and bytes each step had at some epochs of a run, however long it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.functions import EVENT, PROCESSING
from headwater.job.status import JobStatus
from headwater.words import TimeDomain

MOST_POINTS = 64
"""What is remembered of a run. When there are more, every second one goes, and half as many epochs are looked at since."""


@dataclass(frozen=True)
class Size:
    """How much a state is."""

    entries: int
    size_bytes: int


@dataclass(frozen=True)
class Point:
    """A step after an epoch."""

    now_ms: int
    watermark_ms: int
    states: Mapping[str, Size]

    def at_ms(self, clock: TimeDomain) -> int:
        """When it was, by a clock."""
        return self.now_ms if clock == PROCESSING else self.watermark_ms


class StepCourse:
    """A step over the points of a run, oldest first. The end of input, at which all fires, is no part of the course."""

    def __init__(self, points: Sequence[Point]) -> None:
        points = [one for one in points if one.watermark_ms != MAX_TIMESTAMP] or points
        timed = [one for one in points if one.watermark_ms > MIN_TIMESTAMP]
        is_event = len(timed) > 1 and timed[-1].watermark_ms > timed[0].watermark_ms
        self._all, self._by_event = points, timed
        self.clock: TimeDomain = EVENT if is_event else PROCESSING
        """The time that growth is told by: event time where it moves, which in a backfill is what counts."""
        self.points: Sequence[Point] = timed if is_event else points

    def seen_ms(self, clock: TimeDomain) -> int:
        """How long the run was, by a clock."""
        points = self._by_event if clock == EVENT else self._all
        return points[-1].at_ms(clock) - points[0].at_ms(clock) if points else 0

    @property
    def newer(self) -> list[Point]:
        """The points of the newer half of the time; what came before may have been the filling of empty state."""
        if not self.points:
            return []
        middle_ms = self.points[-1].at_ms(self.clock) - self.seen_ms(self.clock) // 2
        return [one for one in self.points if one.at_ms(self.clock) >= middle_ms]


class StateCourse:
    """Hears the status after every epoch, and keeps some of what it says of state."""

    def __init__(self) -> None:
        self._points: list[dict[str, Point]] = []
        self._newest: dict[str, Point] | None = None
        self._every, self._heard = 1, 0

    def hear(self, status: JobStatus) -> bool:
        """Take the status after an epoch; tells whether it is one of those that are kept."""
        if status.now_ms is None:
            return False
        now_ms = status.now_ms
        self._newest = {
            uid: Point(
                now_ms,
                step.watermark_ms,
                {name: Size(count, step.state_bytes.get(name, 0)) for name, count in step.state.items()},
            )
            for uid, step in status.steps.items()
            if step.state
        }
        self._heard += 1
        if (self._heard - 1) % self._every:
            return False
        self._points.append(self._newest)
        if len(self._points) >= MOST_POINTS:
            self._points = self._points[::2]
            self._every *= 2
        return True

    def of(self, uid: str) -> StepCourse:
        """What is known of a step."""
        points = list(self._points)
        if self._newest is not None and (not points or points[-1] is not self._newest):
            points.append(self._newest)
        return StepCourse([point[uid] for point in points if uid in point])
