"""The status of a job as text."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

from headwater.job.watermark_text import mark_text

if TYPE_CHECKING:
    from headwater.job.status import JobStatus, StepStatus

_COLUMNS = ("step", "rows in", "rows out", "watermark", "")


def summary(status: JobStatus) -> str:
    """The state and the epochs, in a line."""
    if status.epoch < 0:
        return f"{status.state}, no epoch yet"
    return f"{status.state} epoch={status.epoch} published={'none' if status.published < 0 else status.published}"


def status_text(status: JobStatus) -> str:
    """A few lines: the summary, why it failed or was started again, and a line for each step."""
    lines = summary_lines(status)
    if status.steps:
        lines += aligned(status_rows(status), numbers=(1, 2))
    return "\n".join(lines)


def summary_lines(status: JobStatus) -> list[str]:
    """The summary, and why it failed or was started again."""
    lines = [summary(status)]
    if status.error is not None:
        lines.append(f"error: {_first_line(status.error)}")
    if status.restarts:
        last = status.restarts[-1]
        lines.append(
            f"started again {len(status.restarts)} times, last after {last.error}: {_first_line(last.message)}"
        )
    return lines


def status_rows(status: JobStatus) -> list[tuple[str, ...]]:
    """A table: its head, and a row for each step."""
    return [_COLUMNS, *(_cells(uid, step) for uid, step in status.steps.items())]


def step_text(step: StepStatus) -> str:
    """A step in a line."""
    return f"rows_in={step.rows_in} rows_out={step.rows_out} watermark={mark_text(step.watermark_ms)}{_more(step, ' ')}"


def _cells(uid: str, step: StepStatus) -> tuple[str, ...]:
    return uid, str(step.rows_in), str(step.rows_out), mark_text(step.watermark_ms), _more(step)


def _more(step: StepStatus, before: str = "") -> str:
    """What else there is to tell: what waits, what went to side outputs, counters and state that are not zero."""
    facts: list[tuple[str, Mapping[str, int | float]]] = [
        ("", {"in_flight": step.in_flight}),
        ("to ", step.outputs),
        ("", step.counters),
        ("", {name: one.value for name, one in step.metrics.items()}),
        ("state ", step.state),
    ]
    said = [f"{what}{name}={count}" for what, counts in facts for name, count in counts.items() if count]
    return before + ", ".join(said) if said else ""


def aligned(cells: Sequence[tuple[str, ...]], numbers: Container[int]) -> list[str]:
    """Rows of a table as lines: names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(_padded(row, widths, numbers)).rstrip() for row in cells]


def _padded(row: tuple[str, ...], widths: list[int], numbers: Container[int]) -> list[str]:
    return [
        f"{cell:>{width}}" if place in numbers else f"{cell:<{width}}"
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
