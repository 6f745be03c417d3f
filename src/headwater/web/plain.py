"""Values as JSON in a browser has them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

EXACT = 1 << 53
"""A browser's numbers are exact up to here; larger ones are sent as text."""


def plain(value: Any) -> Any:
    """A value that JSON has a form for, and that a browser reads as it is."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return value if -EXACT <= value <= EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    return value.hex() if isinstance(value, bytes) else str(value)


def to_bytes(value: Any) -> bytes:
    """One document. Lone surrogates, which are no text, are escaped."""
    return json.dumps(plain(value), ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
