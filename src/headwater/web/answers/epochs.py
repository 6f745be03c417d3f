"""The epochs of a job: how long each took, in which parts, and what it read and stored."""

from __future__ import annotations

from typing import Any

from headwater.control.view import JobView
from headwater.job.checkpoints.history import EpochLine
from headwater.job.durations import EpochDurations
from headwater.web.watched import WatchedJob


def epochs(job: WatchedJob, skip: int, limit: int) -> dict[str, Any]:
    """A page of the history, newest first."""
    view, durations = job.watch.view(), job.watch.durations()
    total, lines = job.watch.pages.page(skip, limit)
    return {"total": total, "skip": skip, "epochs": [_epoch(line, durations.get(line.epoch), view) for line in lines]}


def _epoch(line: EpochLine, took: EpochDurations | None, view: JobView) -> dict[str, Any]:
    sources = view.splits.keys() or line.starts.keys()
    return {
        "epoch": line.epoch,
        "time_ms": line.time_ms,
        "duration_ms": line.duration_ms,
        "phases_ms": {} if took is None else dict(took.phases_ms),
        "rows_in": sum(line.steps[uid].rows_in for uid in sources if uid in line.steps),
        "changelog_bytes": sum(sum((step.changelog_bytes or {}).values()) for step in line.steps.values()),
        "stored_bytes": line.stored_bytes,
        "late": sum(step.counters.get("late_dropped", 0) for step in line.steps.values()),
        "dead_letters": sum(step.counters.get("dead_letters", 0) for step in line.steps.values()),
        "is_committed": line.epoch <= view.committed,
        "is_published": line.epoch <= view.published,
    }
