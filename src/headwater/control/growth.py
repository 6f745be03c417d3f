"""How fast the state of a job grows, as its newest epochs tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.job.checkpoints.history import EpochLine


@dataclass(frozen=True)
class Growth:
    """What is added to the state of a step in an hour, if it goes on as it did."""

    entries_per_h: float
    bytes_per_h: float


def growth_of(lines: Sequence[EpochLine], uid: str) -> Growth | None:
    """Of a step, from epochs in any order; None where there are too few to tell."""
    told = sorted((line for line in lines if uid in line.steps), key=lambda line: line.time_ms)
    if len(told) < 2 or told[-1].time_ms <= told[0].time_ms:
        return None
    before, after = told[0].steps[uid], told[-1].steps[uid]
    hours = (told[-1].time_ms - told[0].time_ms) / 3_600_000
    entries = sum(after.state.values()) - sum(before.state.values())
    size_bytes = after.work.get("state_bytes", 0) - before.work.get("state_bytes", 0)
    return Growth(entries / hours, size_bytes / hours)
