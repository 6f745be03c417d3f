"""A time as text."""

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
