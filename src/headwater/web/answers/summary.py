"""A job in a few facts, for the list and for the head of every page."""

from __future__ import annotations

import time
from typing import Any

from headwater.control.view import JobView
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.errors import HeadwaterError
from headwater.job.checkpoints.history import EpochLine
from headwater.job.splits import holder_in
from headwater.web.watched import WatchedJob

RECENT_EPOCHS = 12
"""What rates are taken over: some seconds at least, and soon as new as what they tell of."""
UNREADABLE = "unreadable"


def summary(job: WatchedJob) -> dict[str, Any]:
    """Where a job stands. One whose folder is damaged is told of with what is wrong with it."""
    try:
        return _facts(job, job.watch.view(), recent(job))
    except (HeadwaterError, OSError) as error:
        return {**_facts(job, None, []), "error": str(error)}


def _facts(job: WatchedJob, view: JobView | None, lines: list[EpochLine]) -> dict[str, Any]:
    steps = {} if view is None else view.steps
    splits = [] if view is None else [one for own in view.splits.values() for one in own.values()]
    error = None if view is None else view.status.error
    return {
        "id": job.id,
        "name": job.path.name if view is None else view.name,
        "folder": str(job.path),
        "state": UNREADABLE if view is None else view.state,
        "is_running": view is not None and view.is_running,
        "process": None if view is None or view.owner is None else str(view.owner),
        "planned": -1 if view is None else view.planned,
        "committed": -1 if view is None else view.committed,
        "published": -1 if view is None else view.published,
        "rows_in": sum(one.rows_in for one in splits),
        "rows_per_s": rate(sum(_rows_read(line, view) for line in lines), lines) if view is not None else None,
        "watermark_ms": None if view is None else shown_mark(_watermark(view)),
        "now_ms": int(time.time() * 1000),
        "epoch_ms": None if view is None else view.status.now_ms,
        "since_ms": None if view is None else view.status.since_ms,
        "late": sum(step.counters.get("late_dropped", 0) for step in steps.values()),
        "dead_letters": sum(step.counters.get("dead_letters", 0) for step in steps.values()),
        "restarts": 0 if view is None else len(view.restarts),
        "error": None if error is None else error.strip(),
    }


def recent(job: WatchedJob, most: int = RECENT_EPOCHS) -> list[EpochLine]:
    """The newest epochs, newest first."""
    return job.watch.pages.page(0, most)[1]


def rate(count: float, lines: list[EpochLine]) -> float | None:
    """How many a second, over some epochs; None where they take no time that could be measured."""
    if len(lines) < 2:
        return None
    newest, oldest = lines[0], lines[-1]
    took_ms = newest.time_ms - oldest.time_ms + oldest.duration_ms
    return round(count * 1000 / took_ms, 1) if took_ms > 0 else None


def shown_mark(watermark_ms: int) -> int | str | None:
    """A watermark: None before the first row, 'end' when the input has ended."""
    if watermark_ms <= MIN_TIMESTAMP:
        return None
    return "end" if watermark_ms >= MAX_TIMESTAMP else watermark_ms


def _rows_read(line: EpochLine, view: JobView) -> int:
    return sum(line.steps[uid].rows_in for uid in view.splits if uid in line.steps)


def _watermark(view: JobView) -> int:
    """How far event time has come in the job: in the split that is behind all others."""
    holder = holder_in(view.splits)
    if holder is not None:
        return holder.status.watermark_ms
    marks = [one.watermark_ms for own in view.splits.values() for one in own.values()]
    return max(marks, default=MIN_TIMESTAMP)
