"""Event time as text: a time, or a word where there is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP

_EPOCH_0 = datetime(1970, 1, 1, tzinfo=UTC)


def moment_text(at_ms: int) -> str:
    """A time to the millisecond, in UTC; one that is in no calendar, as a number."""
    try:
        return f"{_EPOCH_0 + timedelta(milliseconds=at_ms):%Y-%m-%d %H:%M:%S}.{at_ms % 1000:03d}"
    except OverflowError:
        return f"{at_ms} ms"


def mark_text(watermark_ms: int) -> str:
    """A watermark: 'none yet' before the first row, 'end' when the input has ended."""
    if watermark_ms <= MIN_TIMESTAMP:
        return "none yet"
    return "end" if watermark_ms >= MAX_TIMESTAMP else moment_text(watermark_ms)
