"""Checks of numbers that callers pass."""

from __future__ import annotations

import operator
from typing import SupportsIndex

from headwater.eventlog.errors import LogArgument


def whole(subject: str, value: object, *, least: int = 0) -> int:
    """`value` as an int, also from numpy's; LogArgument if it is no whole number of at least `least`."""
    if isinstance(value, SupportsIndex) and not isinstance(value, bool) and operator.index(value) >= least:
        return operator.index(value)
    raise LogArgument.of(subject, f"a whole number, {least} or more", value)
