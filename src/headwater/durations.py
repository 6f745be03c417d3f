"""Durations as users write them ("10 s", a timedelta) and as the runtime keeps them: integer milliseconds."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

from headwater.errors import DurationError

Duration = str | timedelta

_UNITS_MS = {
    "ms": 1,
    "milli": 1,
    "millis": 1,
    "millisecond": 1,
    "s": 1_000,
    "sec": 1_000,
    "second": 1_000,
    "m": 60_000,
    "min": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
}
_PATTERN = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)


def duration_ms(value: Duration, *, what: str = "duration", negative: bool = False) -> int:
    """The duration in whole milliseconds; `what` names it in errors.

    >>> duration_ms("1 min 30 s"), duration_ms("250ms"), duration_ms(timedelta(hours=1))
    (90000, 250, 3600000)
    """
    if isinstance(value, timedelta):
        millis = value // timedelta(milliseconds=1)
        if timedelta(milliseconds=millis) != value:
            raise DurationError.finer_than_a_millisecond(what, value)
    elif isinstance(value, str):
        millis = _parse(value, what)
    else:
        raise DurationError.not_a_duration(what, value)
    if millis < 0 and not negative:
        raise DurationError.negative(what, value)
    if abs(millis) >= 1 << 63:
        raise DurationError.too_long(what, value)
    return millis


def duration_text(millis: int) -> str:
    """A duration in its largest whole unit.

    >>> duration_text(7_200_000), duration_text(90_000)
    ('2 h', '90 s')
    """
    for name, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if millis and millis % size == 0:
            return f"{millis // size} {name}"
    return f"{millis} ms"


def _parse(text: str, what: str) -> int:
    total = Decimal(0)
    end = 0
    for match in _PATTERN.finditer(text):
        unit = match.group(2).lower()
        factor = _UNITS_MS.get(unit) or _UNITS_MS.get(unit.removesuffix("s"))
        if factor is None or text[end : match.start()].strip():
            raise DurationError.not_a_duration(what, text)
        total += Decimal(match.group(1)) * factor
        end = match.end()
    if end == 0 or text[end:].strip():
        raise DurationError.not_a_duration(what, text)
    if total != int(total):
        raise DurationError.finer_than_a_millisecond(what, text)
    return int(total)
