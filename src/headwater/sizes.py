"""Sizes in bytes as users write and read them ("512 MB")."""

from __future__ import annotations

import re
from decimal import Decimal

from headwater.errors import SizeError

_UNITS = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}
_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def size_bytes(value: str, *, what: str = "size") -> int:
    """The size in whole bytes; `what` names it in errors.

    >>> size_bytes("512 MB"), size_bytes("1.5 GiB"), size_bytes("64kB")
    (512000000, 1610612736, 64000)
    """
    match = _PATTERN.fullmatch(str(value))
    factor = None if match is None else _UNITS.get(match.group(2).lower())
    if match is None or factor is None:
        raise SizeError.not_a_size(what, value)
    return int(Decimal(match.group(1)) * factor)


def size_text(count: int) -> str:
    """A size as a person reads it.

    >>> size_text(999), size_text(1_500), size_text(2_000_000_000)
    ('999 B', '1.5 kB', '2.0 GB')
    """
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
