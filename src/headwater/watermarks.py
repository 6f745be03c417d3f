"""Watermark strategies users write on a source."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.durations import Duration, duration_ms


@dataclass(frozen=True)
class Watermarks:
    """Where event time comes from and how far the watermark stays behind the largest timestamp of each split."""

    column: str | None
    delay_ms: int = 0

    @classmethod
    def none(cls) -> Watermarks:
        """Rows have no timestamps; event time reaches its maximum at the end of input only."""
        return cls(None)

    @classmethod
    def monotonous(cls, column: str) -> Watermarks:
        """Timestamps never go back within a split."""
        return cls(column)

    @classmethod
    def bounded(cls, column: str, delay: Duration) -> Watermarks:
        """Timestamps are out of order by at most `delay` within a split."""
        return cls(column, duration_ms(delay, what="the delay of bounded watermarks"))
