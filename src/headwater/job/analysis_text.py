"""What a running job does, as text: for each step rows, time, state, and how these are spread over subtasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.job.status_text import aligned, summary
from headwater.sizes import size_text

if TYPE_CHECKING:
    from headwater.job.status import JobStatus, StepStatus

_COLUMNS = ("step", "rows in", "rows/s", "rows out", "busy", "entries", "bytes", "skew of rows", "skew of state")
_NOTHING = "-"


def analysis_text(status: JobStatus) -> str:
    """A line for each step, over the run so far. A step without a time of its own runs within the one before it."""
    seconds = 0.0
    if status.now_ms is not None and status.since_ms is not None:
        seconds = (status.now_ms - status.since_ms) / 1000
    cells = [_COLUMNS, *(_cells(uid, step, seconds) for uid, step in status.steps.items())]
    return "\n".join([f"{summary(status)}, {seconds:.1f} s", *aligned(cells, numbers=range(1, len(_COLUMNS)))])


def _cells(uid: str, step: StepStatus, seconds: float) -> tuple[str, ...]:
    entries, work = sum(step.state.values()), step.work
    subtasks = work.get("subtasks", 1)
    return (
        uid,
        str(step.rows_in),
        f"{step.rows_in / seconds:.0f}" if seconds else _NOTHING,
        str(step.rows_out),
        f"{work['busy_us'] / 1_000_000:.3f} s" if work.get("busy_us") else _NOTHING,
        str(entries) if step.state else _NOTHING,
        size_text(work.get("state_bytes", 0)) if step.state else _NOTHING,
        _skew(work.get("busiest_rows", 0), step.rows_in, subtasks),
        _skew(work.get("largest_state", 0), entries, subtasks),
    )


def _skew(most: int, all_of_them: int, subtasks: int) -> str:
    """How much more the busiest subtask has than if all had the same."""
    return f"{most * subtasks / all_of_them:.2f}" if all_of_them and subtasks > 1 else _NOTHING
