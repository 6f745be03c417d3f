"""The clock that epochs go by. It is asked where epochs are planned; what an epoch's time is, stands in its offset."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[int], int]
"""Gives the time of an epoch, in ms, when the epoch is planned; asked with -1 before the first epoch."""


def wall_clock(epoch: int) -> int:  # noqa: ARG001
    """The machine's time."""
    return time.time_ns() // 1_000_000
