"""Back pressure of unaligned epochs: sources read less while rows wait, so that what is in flight stays bounded.

Planning knows positions only, so the driver hands it how much work the last epoch left. What planning makes of it is in
the offset, and a replay uses the offset alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headwater.epoch.notes import EpochNote
from headwater.epoch.offset import Pace
from headwater.job.layout import OutboxLayout
from headwater.task.inflight import FIRST_BUDGET, GROWTH

_FEW, _MANY = 0.5, 4.0
"""Epochs of work that may wait at a step on a subtask: up to the first sources read more, beyond the second nothing.

In between they go on as they are. So many epochs let a burst pass without a pause that all subtasks would feel, and a
savepoint waits for no more than these and what one epoch read too much.
"""


@dataclass(frozen=True)
class Unaligned:
    """What planning an epoch of an unaligned job goes by."""

    target_ms: int
    """How long a step may work on rows in an epoch."""
    backlog: float = 0.0
    """The work that the last epoch left, in epochs: the most that waits anywhere, of its step's budget there."""
    wants_aligned: bool = False
    """Whether the epoch is to leave nothing in flight."""


def next_pace(pace: Pace | None, backlog: float, max_rows: int, parallelism: int) -> Pace:
    """How sources read in the next epoch. They start as steps do, with few rows, and then grow as fast."""
    if pace is None:
        return Pace(min(max_rows, FIRST_BUDGET * parallelism), paused=False)
    rows = min(pace.rows, max_rows)
    if backlog > _MANY:
        return Pace(rows if pace.paused else max(1, rows // 2), paused=True)
    return Pace(min(max_rows, GROWTH * rows) if backlog <= _FEW else rows, paused=False)


class BacklogFile(EpochNote):
    """How the driver tells the planner the work that the last epoch left."""

    def __init__(self, folder: Path, *, unaligned: bool) -> None:
        super().__init__(OutboxLayout(folder).backlog, float, is_needed=unaligned)
