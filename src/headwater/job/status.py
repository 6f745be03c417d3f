"""A job at a moment, as its driver knows it from the reports of tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from headwater.data.batch import MIN_TIMESTAMP
from headwater.epoch.reports import positions_of


@dataclass(frozen=True)
class RestartReason:
    """A failure after which a job was started again from its last committed epoch."""

    attempt: int
    """The number of the start again, from 1, in the driver that made it."""
    failed_ms: int
    delay_ms: int
    """How long the job waited before it was started again."""
    error: str
    """The type of what was raised."""
    message: str
    step: str | None
    """The step that failed, where the error knows it."""


@dataclass
class JobStatus:
    """A job at a moment: what is committed and published, and each step's counters summed over its subtasks."""

    state: str
    """'running', 'restarting' (waiting to be started again), 'finished', 'stopped' or 'failed'."""
    epoch: int = -1
    """The newest epoch that was computed."""
    published: int = -1
    """The newest epoch that every sink has."""
    aligned_epoch: int = -1
    """The newest epoch that was computed and left no row in flight: the one to take a savepoint of."""
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Per step uid: rows_in, rows_out, late_dropped and dead_letters of this run, in_flight, watermark_ms, state by name."""
    positions: dict[str, dict[str, int]] = field(default_factory=dict)
    """Per source uid and split: the position of the next row to read."""
    error: str | None = None
    restarts: list[RestartReason] = field(default_factory=list)
    """Why the job was started again, oldest first; those of earlier drivers too, where there is a job folder."""


def update_status(status: JobStatus, epoch: int, reports: Iterable[dict[str, Any]]) -> None:
    """Add an epoch's counters to the job's status; a step's watermark is the lowest of its subtasks."""
    reports = list(reports)
    status.epoch = epoch
    status.positions = positions_of(reports)
    lowest: dict[str, int] = {}
    in_flight: dict[str, int] = {}
    states: dict[str, dict[str, int]] = {}
    for one in reports:
        for uid, counters in one["steps"].items():
            total = status.steps.setdefault(uid, _fresh_counters())
            total["rows_in"] += counters["rows_in"]
            total["rows_out"] += counters["rows_out"]
            for name in ("late_dropped", "dead_letters"):
                total[name] += counters.get(name, 0)
            in_flight[uid] = in_flight.get(uid, 0) + counters.get("in_flight", 0)
            lowest[uid] = min(lowest.get(uid, counters["watermark_ms"]), counters["watermark_ms"])
            entries = states.setdefault(uid, {})
            for name, count in counters["state"].items():
                entries[name] = entries.get(name, 0) + count
    for uid, watermark_ms in lowest.items():
        total = status.steps[uid]
        total["watermark_ms"] = max(total["watermark_ms"], watermark_ms)  # a source without rows says nothing new
        total["state"] = states[uid]
        total["in_flight"] = in_flight[uid]
    if not any(in_flight.values()):
        status.aligned_epoch = epoch


def _fresh_counters() -> dict[str, Any]:
    counts = {"rows_in": 0, "rows_out": 0, "late_dropped": 0, "dead_letters": 0, "in_flight": 0}
    return {**counts, "watermark_ms": MIN_TIMESTAMP, "state": {}}
