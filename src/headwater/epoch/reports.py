"""Task reports, and what the driver makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from headwater.connectors.contract import Staged
from headwater.epoch.alignment import Marks
from headwater.plan.levels import JobPlan
from headwater.state.changelog import Written, sizes
from headwater.task.host import Outcome

Positions = dict[str, dict[str, int]]
"""Per source uid and split."""


def task_report(
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


def tell_sources(plan: JobPlan, positions: Positions) -> None:
    """Let every source know how far what it gave is published."""
    for node in plan.sources():
        node.source.published(positions.get(plan.graph.uid(node), {}))
