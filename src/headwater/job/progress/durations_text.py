"""Durations as a person reads them."""

from __future__ import annotations

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"))


def long_text(duration_ms: int) -> str:
    """How long something takes, in its two largest units."""
    if duration_ms < 60_000:
        return f"{duration_ms / 1000:.1f} s" if duration_ms < 10_000 else f"{duration_ms // 1000} s"
    for at, (unit_ms, unit) in enumerate(_UNITS):
        whole, rest = divmod(duration_ms, unit_ms)
        if whole:
            smaller_ms, smaller = (*_UNITS, (1000, "s"))[at + 1]
            part = rest // smaller_ms
            return f"{whole} {unit} {part} {smaller}" if part else f"{whole} {unit}"
    raise AssertionError("a minute is the smallest unit here")
