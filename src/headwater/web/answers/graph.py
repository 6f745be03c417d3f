"""The graph of a job: levels and steps, how fast rows go through them, and where time goes."""

from __future__ import annotations

from typing import Any

from headwater.job.checkpoints.history import EpochLine
from headwater.job.outline import JobOutline
from headwater.job.status import StepStatus
from headwater.web.answers.summary import rate, recent, shown_mark
from headwater.web.watched import WatchedJob


def graph(job: WatchedJob) -> dict[str, Any]:
    """Every step, with where its rows come from and what it did in the newest epochs."""
    view, outline, lines = job.watch.view(), job.watch.outline(), recent(job)
    busy = {uid: _busy_us(lines, uid) for uid in view.steps}
    all_us = sum(busy.values()) or 1
    steps = [
        {
            **planned,
            **_did(view.steps.get(planned["uid"]), lines, planned["uid"]),
            "time_share": round(busy.get(planned["uid"], 0) / all_us, 4),
        }
        for planned in _planned(outline, view.steps)
    ]
    took_ms = sum(line.duration_ms for line in lines)
    return {
        "levels": 0 if outline is None else outline.levels,
        "epochs": len(lines),
        "took_ms": took_ms,
        "steps": steps,
    }


def _planned(outline: JobOutline | None, steps: Any) -> list[dict[str, Any]]:
    if outline is None:  # an older Headwater ran the job: its steps are known, and no more
        bare = {"operation": "", "level": 0, "inputs": [], "detail": "", "schema": "", "window": None}
        return [{"uid": uid, **bare, "is_source": False, "is_sink": False, "is_stateful": False} for uid in steps]
    return [
        {
            "uid": step.uid,
            "operation": step.operation,
            "level": step.level,
            "inputs": [{"step": one.step, "tag": one.tag, "exchange": one.exchange} for one in step.inputs],
            "detail": step.detail,
            "schema": step.schema,
            "window": None if step.window is None else step.window.text,
            "is_source": step.is_source,
            "is_sink": step.is_sink,
            "is_stateful": step.is_stateful,
        }
        for step in outline.steps
    ]


def _did(step: StepStatus | None, lines: list[EpochLine], uid: str) -> dict[str, Any]:
    told = [line for line in lines if uid in line.steps]
    rows_in, rows_out = (sum(getattr(line.steps[uid], name) for line in told) for name in ("rows_in", "rows_out"))
    status = step or StepStatus()
    return {
        "rows_in": status.rows_in,
        "rows_out": status.rows_out,
        "in_per_s": rate(rows_in, told),
        "out_per_s": rate(rows_out, told),
        "in_flight": status.in_flight,
        "watermark_ms": shown_mark(status.watermark_ms),
        "subtasks": status.work.get("subtasks"),
        "busy": _busy(told, uid),
        "skew": _skew(status),
        "state_entries": sum(status.state.values()),
        "state_bytes": status.work.get("state_bytes", 0),
        "late": status.counters.get("late_dropped", 0),
        "dead_letters": status.counters.get("dead_letters", 0),
    }


def _busy(lines: list[EpochLine], uid: str) -> float | None:
    """The part of the epochs' time in which a subtask of the step worked; how near it is to holding all others up."""
    took_us = sum(line.duration_ms * 1000 * max(line.steps[uid].work.get("subtasks", 1), 1) for line in lines)
    return round(min(_busy_us(lines, uid) / took_us, 1.0), 4) if took_us else None


def _busy_us(lines: list[EpochLine], uid: str) -> int:
    return sum(line.steps[uid].work.get("busy_us", 0) for line in lines if uid in line.steps)


def _skew(step: StepStatus) -> float | None:
    """The part of the rows that the busiest subtask got, beside an even share: 1 is even."""
    subtasks, busiest = step.work.get("subtasks", 0), step.work.get("busiest_rows", 0)
    return round(busiest * subtasks / step.rows_in, 2) if step.rows_in and subtasks > 1 else None
