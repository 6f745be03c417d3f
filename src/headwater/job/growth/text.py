"""What is said of state, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.graph.holdings import Holding
from headwater.job.growth.forecast import HOUR_MS
from headwater.job.progress.durations_text import long_text
from headwater.job.status_text import aligned
from headwater.plan.choices import IN_MEMORY
from headwater.sizes import size_text

if TYPE_CHECKING:
    from headwater.job.growth.explanation import StateExplanation, StateSize, StepState
    from headwater.job.status import JobStatus

_COLUMNS = ("state", "entries", "bytes", "each", "an hour", "in a day", "in a week")
_UNKNOWN = "-"


def explanation_text(told: StateExplanation) -> str:
    """One block for each step that keeps something, and then the steps that grow."""
    head = f"job {told.job}"
    if not told.steps:
        return f"{head} keeps no state"
    lines = [head if told.measured is None else f"{head}, {told.measured}"]
    for step in told.steps.values():
        lines += _step_lines(step)
    for_ever = [step.uid for step in told.steps.values() if step.grows == "for ever"]
    so_far = [step for step in told.steps.values() if step.grows == "so far"]
    left = [step.uid for step in told.steps.values() if step.grows is None and step.is_left_to_function]
    lines += [f"grows for ever: {', '.join(for_ever)}"] if for_ever else []
    lines += [f"has only grown so far: {step.uid}; {'; or '.join(step.ways_out)}" for step in so_far]
    lines += [f"bounded if its function removes enough: {uid}" for uid in left]
    return "\n".join(lines if for_ever or so_far or left else [*lines, "all of it is bounded"])


def _step_lines(step: StepState) -> list[str]:
    place = "" if not step.place else ", in memory" if step.place == IN_MEMORY else f", on {step.place}"
    lines = [f"{step.uid}: {step.operation}{place}"]
    for held in step.keeps:
        lines += _kept_lines(held)
    if step.sizes:
        cells = [_COLUMNS, *(_cells(size) for size in step.sizes if size.entries or not size.name.startswith("@"))]
        lines += [f"  {line}" for line in aligned(cells, numbers=range(1, len(_COLUMNS)))]
        lines += _notes(step)
    if step.budget is not None:
        lines.append(f"  {budget_text(step)}")
    return lines


def _kept_lines(held: Holding) -> list[str]:
    size = f", about {held.entry_bytes} bytes each" if held.entry_bytes else ""
    lines = [f"  keeps {held.what}{size}", f"    per   {held.per}", f"    until {held.until}"]
    return [*lines, *(f"    way out: {way}" for way in held.ways_out if not held.is_bounded)]


def _cells(size: StateSize) -> tuple[str, ...]:
    now = (size.name, f"{size.entries:,}", size_text(size.size_bytes), size_text(round(size.entry_bytes)))
    if size.growth is None:
        return (*now, _UNKNOWN, _UNKNOWN, _UNKNOWN)
    growth = size.growth
    return (*now, signed_text(growth.bytes_per_hour), size_text(growth.day_bytes), size_text(growth.week_bytes))


def _notes(step: StepState) -> list[str]:
    notes = ["too little was seen to tell how it grows" if step.clock is None else f"growth by {step.clock} time"]
    level = [size.name for size in step.sizes if size.growth is not None and size.growth.is_level and size.entries]
    if level:
        notes.append(f"level, as the run is older than entries get: {', '.join(level)}")
    if step.expired:
        notes.append(f"expired in this run: {step.expired:,}")
    return [f"  {note}" for note in notes]


def budget_text(step: StepState) -> str:
    """How much of its budget a step has used, and when it will have used all of it."""
    assert step.budget is not None
    allowed, used = step.budget.size_bytes, step.size_bytes
    if not step.sizes:
        return f"budget {step.budget.describe()}"
    per_hour = sum(one.growth.bytes_per_hour for one in step.sizes if one.growth and not one.growth.is_level)
    full = ""
    if per_hour > 0 and used < allowed:
        full = f", full in {long_text(int((allowed - used) / per_hour * HOUR_MS))} if it goes on so"
    return f"budget {step.budget.describe()}: {100 * used // allowed} % used{full}"


def seen_text(status: JobStatus) -> str:
    """Of how long a run something is told."""
    if status.now_ms is None or status.since_ms is None:
        return "before its first epoch"
    return f"after {long_text(status.now_ms - status.since_ms)} of this run"


def growth_text(step: StepState) -> str:
    """How the state of a step goes on, to be added to a sentence."""
    known = [one.growth for one in step.sizes if one.growth is not None]
    if not known:
        return ""
    day, week = sum(one.day_bytes for one in known), sum(one.week_bytes for one in known)
    per_hour = signed_text(sum(one.bytes_per_hour for one in known))
    return f", {per_hour} an hour, so {size_text(day)} in a day and {size_text(week)} in a week"


def signed_text(count: float) -> str:
    """A size that was added or has gone."""
    return f"{'-' if count < 0 else '+'}{size_text(abs(round(count)))}"
