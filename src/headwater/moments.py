"""A time as text, and what was perhaps meant by one that is far off."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH_0 = datetime(1970, 1, 1, tzinfo=UTC)


def moment_text(at_ms: int, *, millis: bool = True) -> str:
    """A time in UTC, to the millisecond or the second; one that is in no calendar, as a number."""
    try:
        seconds = f"{_EPOCH_0 + timedelta(milliseconds=at_ms):%Y-%m-%d %H:%M:%S}"
    except OverflowError:
        return f"{at_ms} ms"
    return f"{seconds}.{at_ms % 1000:03d}" if millis else seconds


def unit_meant(timestamp_ms: int) -> str:
    """A question, where a time in milliseconds is far off, and near today in a finer unit."""
    for unit, per_ms in (("nanoseconds", 1_000_000), ("microseconds", 1_000)):
        if _MEANT_MS[0] <= timestamp_ms // per_ms < _MEANT_MS[1]:
            return (
                f"is the event-time column in {unit}? Headwater reads a bigint as milliseconds: divide it by {per_ms:_}"
            )
    return ""


_MEANT_MS = (315_532_800_000, 4_102_444_800_000)
"""The years 1980 to 2099, of which most times are."""
