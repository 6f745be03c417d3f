"""Task reports, and what the driver makes of them: the manifest's facts and the job's status."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from headwater.batch import MIN_TIMESTAMP
from headwater.connectors.contract import Staged
from headwater.plan.levels import JobPlan
from headwater.runtime.alignment import Marks
from headwater.runtime.engine import JobStatus
from headwater.runtime.host import Outcome
from headwater.state.changelog import Written, sizes

Positions = dict[str, dict[str, int]]
"""Per source uid and split."""


def report(
    outcome: Outcome,
    staged: list[Staged],
    *,
    positions: Positions | None = None,
    starts: Positions | None = None,
    written: Written | None = None,
) -> dict[str, Any]:
    """What a task tells the driver; a source's task from where to where it read, a level's what it added to its state."""
    found = {"staged": [asdict(s) for s in staged], "steps": outcome.steps, "positions": positions or {}}
    if starts:
        found["starts"] = starts
    if written is not None:
        found["changelog"] = {"states": sizes(written.record), "stored_bytes": written.stored_bytes}
    return found


def staged_files(reports: Iterable[dict[str, Any]]) -> list[Staged]:
    """Every file of the epoch, from the successful attempts."""
    return [Staged(**file) for one in reports for file in one["staged"]]


def positions_of(reports: Iterable[dict[str, Any]], which: str = "positions") -> Positions:
    """Where every split stands after the epoch, or with "starts" before it."""
    positions: Positions = {}
    for one in reports:
        for uid, splits in one.get(which, {}).items():
            positions.setdefault(uid, {}).update(splits)
    return positions


def marks_of(reports: Iterable[dict[str, Any]]) -> Marks:
    """The watermark that every split made in the epoch."""
    marks: Marks = {}
    for one in reports:
        for uid, splits in one["positions"].items():
            marks.setdefault(uid, {}).update(dict.fromkeys(splits, one["steps"][uid]["watermark_ms"]))
    return marks


def backlog_of(reports: Iterable[dict[str, Any]]) -> float:
    """The most work that waits at a step on a subtask, in epochs: its rows in flight of its budget."""
    steps = [counters for one in reports for counters in one["steps"].values() if "in_flight" in counters]
    return max((counters["in_flight"] / counters["budget"] for counters in steps), default=0.0)


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


def tell_sources(plan: JobPlan, positions: Positions) -> None:
    """Let every source know how far what it gave is published."""
    for node in plan.sources():
        node.source.published(positions.get(plan.graph.uid(node), {}))
