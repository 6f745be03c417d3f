"""Alignment: which splits wait in an epoch, so that the splits of a group stay near each other in event time.

Planning knows positions only, so the driver hands it the watermarks that the last epoch's splits reported. What planning
makes of them is in the offset, and a replay uses the offset alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.epoch.notes import EpochNote
from headwater.epoch.offset import BySplit
from headwater.job.layout import OutboxLayout
from headwater.plan.plan import JobPlan

Marks = dict[str, dict[str, int]]
"""Per source uid and split: its watermark in ms."""


@dataclass(frozen=True)
class Stand:
    """Where a split stands in its group when an epoch is planned."""

    uid: str
    split: str
    group: str
    watermark_ms: int
    max_drift_ms: int
    counts: bool
    """Whether others wait for it: not when it is idle or has nothing more to give."""


def merged(plan: JobPlan, known: BySplit, said: BySplit) -> Marks:
    """The watermarks of the aligned sources' splits; they never go back."""
    found: Marks = {}
    for uid in _aligned_uids(plan):
        old, new = known.get(uid, {}), said.get(uid, {})
        splits = sorted({*old, *new})
        found[uid] = {s: max(old.get(s, MIN_TIMESTAMP), new.get(s, MIN_TIMESTAMP)) for s in splits}
    return found


def held_back(stands: Iterable[Stand]) -> set[tuple[str, str]]:
    """The splits, by uid and name, that must wait for the slowest of their group."""
    stands = list(stands)
    slowest: dict[str, int] = {}
    for stand in stands:
        if stand.counts and stand.watermark_ms != MAX_TIMESTAMP:
            slowest[stand.group] = min(slowest.get(stand.group, MAX_TIMESTAMP), stand.watermark_ms)
    return {
        (stand.uid, stand.split)
        for stand in stands
        if stand.group in slowest and stand.watermark_ms > slowest[stand.group] + stand.max_drift_ms
    }


class MarksFile(EpochNote):
    """How the driver tells the planner the watermarks of the splits."""

    def __init__(self, folder: Path, plan: JobPlan) -> None:
        super().__init__(OutboxLayout(folder).marks, BySplit, is_needed=bool(_aligned_uids(plan)))


def _aligned_uids(plan: JobPlan) -> list[str]:
    return [plan.graph.uid(node) for node in plan.sources() if node.watermarks.group is not None]
