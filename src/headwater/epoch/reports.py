"""Task reports, and what the driver makes of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from headwater.connectors.contract import Staged
from headwater.epoch.alignment import Marks
from headwater.epoch.offset import BySplit
from headwater.plan.plan import JobPlan
from headwater.state.changelog import Written
from headwater.task.counters import StepCounters
from headwater.task.outcome import Outcome
from headwater.task.payload import decode_report, encode_report
from headwater.versioned import Versioned

Positions = dict[str, dict[str, int]]
"""Per source uid and split."""


@dataclass(frozen=True)
class TaskReport(Versioned):
    """What a task tells the driver of an epoch."""

    staged: tuple[Staged, ...]
    """The files it has written for sinks."""
    steps: Mapping[str, StepCounters]
    positions: BySplit = field(default_factory=dict)
    """Of a source's task: how far it read."""
    starts: BySplit = field(default_factory=dict)
    """Of a source's task: from where."""
    idle: bool = False
    """Of a source's task: whether nobody waits for its split."""
    end: bool = False
    """Whether the input ends with the epoch, as a source's task knows."""
    now_ms: int = 0
    """The epoch's time, as a source's task knows it."""
    changelog_bytes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Of a level's task: what it added to each state of each step."""
    stored_bytes: int = 0
    """Of a level's task: what is to be read to bring its state back."""
    caught_up_us: int = field(default=0, compare=False)
    """Of a level's task: how long it took to bring the worker's copy of the state up to date."""
    level_us: int = field(default=0, compare=False)
    """Of a level's task: how long it took in all."""
    was_behind: bool = field(default=False, compare=False)
    """Of a level's task: whether no worker had a current copy of its state, so that one was brought up to date."""

    def to_bytes(self) -> bytes:
        """As it travels among the payloads."""
        return encode_report(self.to_json())

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The reverse of `to_bytes`."""
        return cls.from_json(decode_report(data), "the report of a task")

    def _content(self) -> dict[str, Any]:
        staged, steps = [asdict(file) for file in self.staged], {uid: asdict(one) for uid, one in self.steps.items()}
        return {**super()._content(), "staged": staged, "steps": steps}

    @classmethod
    def _of(cls, content: dict[str, Any], where: str) -> Self:
        staged = tuple(Staged(**file) for file in content["staged"])
        steps = {uid: StepCounters.of(one) for uid, one in content["steps"].items()}
        return super()._of({**content, "staged": staged, "steps": steps}, where)


def level_report(outcome: Outcome, staged: Iterable[Staged], written: Written | None = None) -> TaskReport:
    """What a level's task tells; an engine that stores what it has written tells that too."""
    if written is None:
        return TaskReport(tuple(staged), outcome.steps)
    return TaskReport(
        tuple(staged), outcome.steps, changelog_bytes=written.added_bytes, stored_bytes=written.stored_bytes
    )


class LevelTimes:
    """How long a level's task takes, of which a part goes into bringing the worker's copy up to date."""

    def __init__(self) -> None:
        self._started = self._caught_up = time.perf_counter()

    def caught_up(self) -> None:
        """The copy is up to date."""
        self._caught_up = time.perf_counter()

    def told_by(self, report: TaskReport) -> TaskReport:
        """The report of a task that is done, with its times."""
        now = time.perf_counter()
        return replace(
            report,
            caught_up_us=round((self._caught_up - self._started) * 1_000_000),
            level_us=round((now - self._started) * 1_000_000),
        )


def staged_files(reports: Iterable[TaskReport]) -> list[Staged]:
    """Every file of the epoch, from the successful attempts."""
    return [file for one in reports for file in one.staged]


def positions_of(reports: Iterable[TaskReport]) -> Positions:
    """Where every split stands after the epoch."""
    return _joined(one.positions for one in reports)


def starts_of(reports: Iterable[TaskReport]) -> Positions:
    """Where every split stood before the epoch."""
    return _joined(one.starts for one in reports)


def _joined(parts: Iterable[BySplit]) -> Positions:
    found: Positions = {}
    for part in parts:
        for uid, splits in part.items():
            found.setdefault(uid, {}).update(splits)
    return found


def marks_of(reports: Iterable[TaskReport]) -> Marks:
    """The watermark that every split made in the epoch."""
    marks: Marks = {}
    for one in reports:
        for uid, splits in one.positions.items():
            marks.setdefault(uid, {}).update(dict.fromkeys(splits, one.steps[uid].watermark_ms))
    return marks


def backlog_of(reports: Iterable[TaskReport]) -> float:
    """The most work that waits at a step on a subtask, in epochs: its rows in flight of its budget."""
    steps = [step for one in reports for step in one.steps.values()]
    return max((step.in_flight / step.budget for step in steps if step.budget is not None), default=0.0)


def tell_sources(plan: JobPlan, positions: BySplit) -> None:
    """Let every source know how far what it gave is published."""
    for node in plan.sources():
        node.source.published(dict(positions.get(plan.graph.uid(node), {})))
