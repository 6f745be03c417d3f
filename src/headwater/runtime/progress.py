"""Task reports, and what the driver makes of them: the manifest's facts and the job's status."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from headwater.connectors.contract import Staged
from headwater.runtime.engine import JobStatus
from headwater.runtime.host import Outcome


def report(
    outcome: Outcome, staged: list[Staged], *, positions: dict[str, dict[str, int]] | None = None
) -> dict[str, Any]:
    """What a task tells the driver."""
    return {"staged": [asdict(s) for s in staged], "steps": outcome.steps, "positions": positions or {}}


def staged_files(reports: Iterable[dict[str, Any]]) -> list[Staged]:
    """Every file of the epoch, from the successful attempts."""
    return [Staged(**file) for one in reports for file in one["staged"]]


def positions_of(reports: Iterable[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Where every split stands after the epoch."""
    positions: dict[str, dict[str, int]] = {}
    for one in reports:
        for uid, splits in one["positions"].items():
            positions.setdefault(uid, {}).update(splits)
    return positions


def update_status(status: JobStatus, epoch: int, reports: Iterable[dict[str, Any]]) -> None:
    """Add an epoch's counters to the job's status; a step's watermark is the lowest of its subtasks."""
    reports = list(reports)
    status.epoch = epoch
    status.positions = positions_of(reports)
    seen: set[str] = set()
    for one in reports:
        for uid, counters in one["steps"].items():
            total = status.steps.setdefault(uid, {"rows_in": 0, "rows_out": 0, "watermark_ms": None, "state": {}})
            total["rows_in"] += counters["rows_in"]
            total["rows_out"] += counters["rows_out"]
            if uid not in seen:
                total["watermark_ms"], total["state"] = counters["watermark_ms"], dict(counters["state"])
                seen.add(uid)
            else:
                total["watermark_ms"] = min(total["watermark_ms"], counters["watermark_ms"])
                for name, entries in counters["state"].items():
                    total["state"][name] = total["state"].get(name, 0) + entries
