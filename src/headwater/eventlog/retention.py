"""Retention: which old segments may go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from headwater.eventlog.arguments import whole


class SegmentFacts(NamedTuple):
    """What retention looks at."""

    base: int
    size_bytes: int
    written_ms: int
    """When the last append went in, by the file system's clock."""


class RemovedSegment(NamedTuple):
    """A segment that retention took away: rows [first_offset, next_offset) of a partition."""

    partition: int
    first_offset: int
    next_offset: int
    size_bytes: int


@dataclass(frozen=True)
class Retention:
    """How much of each partition is kept. Without limits, everything.

    Only whole segments go, oldest first, and never the one being written. So a partition may exceed `max_bytes` by that
    one, and a row may outlive `max_age_ms` by as long as its segment is written.
    """

    max_bytes: int | None = None
    max_age_ms: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("max_bytes", self.max_bytes), ("max_age_ms", self.max_age_ms)):
            if value is not None:
                whole(f"Retention.{name}", value)

    @property
    def unlimited(self) -> bool:
        """Whether nothing is ever removed."""
        return self.max_bytes is None and self.max_age_ms is None

    def expired(self, segments: list[SegmentFacts], now_ms: int) -> int:
        """How many of the oldest segments may go; `segments` are in order and the last is being written."""
        total = sum(segment.size_bytes for segment in segments)
        for count, segment in enumerate(segments[:-1]):
            too_big = self.max_bytes is not None and total > self.max_bytes
            too_old = self.max_age_ms is not None and now_ms - segment.written_ms > self.max_age_ms
            if not (too_big or too_old):
                return count
            total -= segment.size_bytes
        return max(len(segments) - 1, 0)
