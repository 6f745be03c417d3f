"""A watermark as text: a time, or a word where there is none."""

from __future__ import annotations

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.moments import moment_text


def mark_text(watermark_ms: int) -> str:
    """A watermark: 'none yet' before the first row, 'end' when the input has ended."""
    if watermark_ms <= MIN_TIMESTAMP:
        return "none yet"
    return "end" if watermark_ms >= MAX_TIMESTAMP else moment_text(watermark_ms)
