"""Late rows that steps drop, as they are shown: a few of the newest of each step, each as a short text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SHOWN = 20
"""So many of the newest are kept of each step: enough to see what they have in common."""


@dataclass(frozen=True)
class LateRow:
    """A row that came too late for its step, or several that were combined on their way to it."""

    timestamp_ms: int
    """Its event time. Of rows that were combined: the start of the slice of time that they are in."""
    late_by_ms: int | None
    """How far the step's watermark was ahead of that; None when the input had ended."""
    key: str | None
    """As JSON, cut where it is long; None where the step has no key."""
    row: str | None
    """As JSON, cut where it is long; None of rows that were combined."""
    rows: int = 1
    """How many rows it stands for."""
    epoch: int = -1
    """In which it came."""


def late_rows_of(facts: Iterable[Mapping[str, Any]]) -> tuple[LateRow, ...]:
    """The reverse of `asdict`, for several."""
    return tuple(LateRow(**one) for one in facts)


def newest(known: Sequence[LateRow], parts: Iterable[Sequence[LateRow]]) -> tuple[LateRow, ...]:
    """Those to show after an epoch, the newest last: of its subtasks, which know no order, by event time."""
    came = [row for part in parts for row in part]
    if not came:
        return tuple(known)
    came.sort(key=lambda row: row.timestamp_ms)
    return (*known, *came)[-SHOWN:]
