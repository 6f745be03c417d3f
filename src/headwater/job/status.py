"""A job at a moment, as its driver knows it from the reports of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self

from headwater.data.batch import MIN_TIMESTAMP
from headwater.epoch.offset import BySplit
from headwater.epoch.reports import TaskReport, positions_of
from headwater.job.splits import Splits, SplitStatus, splits_after
from headwater.job.status_text import status_text, step_text
from headwater.late_rows import LateRow, late_rows_of, newest
from headwater.measures import Measured, Measures, beside, then
from headwater.task.counters import StepCounters
from headwater.versioned import Versioned

_ALWAYS_COUNTED = {"late_dropped": 0, "dead_letters": 0}
"""A look at them needs no question whether a step can count them."""


@dataclass(frozen=True)
class RestartReason(Versioned):
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


@dataclass(frozen=True, eq=False)
class StepStatus(Mapping[str, Any]):
    """A step, summed over its subtasks. Each fact is an attribute, and by its name an entry, as each counter is."""

    rows_in: int = 0
    rows_out: int = 0
    in_flight: int = 0
    """The rows that wait for the next epoch."""
    watermark_ms: int = MIN_TIMESTAMP
    """The lowest of its subtasks."""
    state: Mapping[str, int] = field(default_factory=dict)
    """How many entries each state has."""
    counters: Mapping[str, int] = field(default_factory=lambda: dict(_ALWAYS_COUNTED))
    """What the step counts itself, by name: `late_dropped` and `dead_letters` always, others where there are any."""
    changelog_bytes: Mapping[str, int] | None = None
    """What was written for each state, where an epoch is looked at."""
    outputs: Mapping[str, int] = field(default_factory=dict)
    """How many rows went to each side output, by tag; those of a step are among `rows_out`, those of a source are not."""
    work: Mapping[str, int] = field(default_factory=dict)
    """`busy_us` on all subtasks, `state_bytes`, about, and how work is spread: `subtasks`, `busiest_rows`, those that the
    busiest subtask of each epoch got, and `largest_state`, the entries of the one that has most."""
    state_bytes: Mapping[str, int] = field(default_factory=dict)
    """What each state takes, about, as columns and not compressed."""
    growth: Mapping[str, int] = field(default_factory=dict)
    """How its state grows, where enough was seen of that: `bytes_per_hour`, `day_bytes` and `week_bytes`, the forecasts."""

    late_rows: Sequence[LateRow] = ()
    """The newest late rows that the step dropped in this run, at most 20, the newest last: `.timestamp_ms`, `.late_by_ms`,
    `.key` and `.row` as JSON, cut where it is long."""

    metrics: Measures = field(default_factory=dict)
    """What its function measures, by name: `.value`, and of a histogram `.total` and `.buckets` too; of this run."""

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> StepStatus:
        """The reverse of `dict(step)`: what is no attribute is a counter."""
        counters = {name: count for name, count in facts.items() if name not in (*_FACTS, *_RECORDS)}
        own = {name: value for name, value in facts.items() if name in _FACTS}
        own["metrics"] = {name: Measured(**one) for name, one in facts.get("metrics", {}).items()}
        own["late_rows"] = late_rows_of(facts.get("late_rows", ()))
        return cls(**own, counters={**_ALWAYS_COUNTED, **counters})

    def __repr__(self) -> str:
        return f"<StepStatus {step_text(self)}>"

    def __getitem__(self, name: str) -> Any:
        return self._entries()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries())

    def __len__(self) -> int:
        return len(self._entries())

    def _entries(self) -> dict[str, Any]:
        facts = {name: value for name in _FACTS if (value := getattr(self, name)) is not None}
        metrics = {name: asdict(one) for name, one in self.metrics.items()}
        records = {"metrics": metrics, "late_rows": [asdict(row) for row in self.late_rows]}
        return {**self.counters, **facts, **{name: found for name, found in records.items() if found}}

    def after(self, parts: Iterable[StepCounters]) -> StepStatus:
        """The step after an epoch, of which its subtasks tell."""
        parts = list(parts)
        watermark_ms = min(part.watermark_ms for part in parts)
        return StepStatus(
            self.rows_in + sum(part.rows_in for part in parts),
            self.rows_out + sum(part.rows_out for part in parts),
            sum(part.in_flight for part in parts),
            max(self.watermark_ms, watermark_ms),  # a source without rows says nothing new
            _summed(part.state for part in parts),
            _summed([self.counters, *(part.counters for part in parts)]),
            self.changelog_bytes,
            _summed([self.outputs, *(part.outputs for part in parts)]),
            work={
                "busy_us": self.work.get("busy_us", 0) + sum(part.busy_us for part in parts),
                "state_bytes": sum(sum(part.state_bytes.values()) for part in parts),
                "subtasks": len(parts),
                "busiest_rows": self.work.get("busiest_rows", 0) + max(part.rows_in for part in parts),
                "largest_state": max(sum(part.state.values()) for part in parts),
            },
            state_bytes=_summed(part.state_bytes for part in parts),
            growth=self.growth,
            late_rows=newest(self.late_rows, (part.late_rows for part in parts)),
            metrics=then(self.metrics, beside(part.metrics for part in parts)),
        )


_RECORDS = ("metrics", "late_rows")
_FACTS = tuple(one.name for one in fields(StepStatus) if one.name not in ("counters", *_RECORDS))


@dataclass(frozen=True)
class JobStatus(Versioned):
    """A job at a moment: what is committed and published, and each step's counters summed over its subtasks."""

    state: str
    """'running', 'restarting' (waiting to be started again), 'finished', 'stopped' or 'failed'."""
    epoch: int = -1
    """The newest epoch that was computed."""
    published: int = -1
    """The newest epoch that every sink has."""
    aligned_epoch: int = -1
    """The newest epoch that was computed and left no row in flight: the one to take a savepoint of."""
    steps: Mapping[str, StepStatus] = field(default_factory=dict)
    """Per step uid: rows_in, rows_out, late_dropped, dead_letters and what else it counts, of this run; in_flight,
    watermark_ms, state by name."""
    positions: BySplit = field(default_factory=dict)
    """Per source uid and split: the position of the next row to read."""
    error: str | None = None
    restarts: tuple[RestartReason, ...] = ()
    """Why the job was started again, oldest first; those of earlier drivers too, where there is a job folder."""
    splits: Splits = field(default_factory=dict)
    """Per source uid and split: rows_in of this run, watermark_ms, is_idle, last_rows_ms."""
    now_ms: int | None = None
    """The time of the newest epoch."""
    since_ms: int | None = None
    """The time of the first epoch of this run."""
    level_us: int = 0
    """How long the tasks of levels took in this run, on all subtasks."""
    caught_up_us: int = 0
    """What of `level_us` went into bringing workers' copies of state up to date."""
    copies_behind: int = 0
    """How many times a copy was brought up to date: after a restart, and where the worker that had it is gone or has too
    many."""

    def __repr__(self) -> str:
        return status_text(self)

    def after(self, epoch: int, reports: Iterable[TaskReport], now_ms: int | None = None) -> JobStatus:
        """The job after an epoch, of which its tasks tell, and of its time."""
        reports = list(reports)
        parts: dict[str, list[StepCounters]] = {}
        for one in reports:
            for uid, counters in one.steps.items():
                parts.setdefault(uid, []).append(counters)
        told = {uid: self.steps.get(uid, StepStatus()).after(of_step) for uid, of_step in parts.items()}
        is_aligned = not any(step.in_flight for step in told.values())
        return replace(
            self,
            epoch=epoch,
            aligned_epoch=epoch if is_aligned else self.aligned_epoch,
            steps={**self.steps, **told},
            positions=positions_of(reports),
            splits=splits_after(self.splits, reports, now_ms),
            now_ms=now_ms,
            since_ms=now_ms if self.since_ms is None else self.since_ms,
            level_us=self.level_us + sum(one.level_us for one in reports),
            caught_up_us=self.caught_up_us + sum(one.caught_up_us for one in reports),
            copies_behind=self.copies_behind + sum(one.was_behind for one in reports),
        )

    def _content(self) -> dict[str, Any]:
        steps = {uid: dict(step) for uid, step in self.steps.items()}
        restarts = [reason.to_json() for reason in self.restarts]
        splits = {uid: {name: asdict(one) for name, one in found.items()} for uid, found in self.splits.items()}
        return {**super()._content(), "steps": steps, "restarts": restarts, "splits": splits}

    @classmethod
    def _of(cls, content: dict[str, Any], where: str) -> Self:
        steps = {uid: StepStatus.of(facts) for uid, facts in content["steps"].items()}
        restarts = tuple(RestartReason.from_json(reason, where) for reason in content["restarts"])
        told = content.get("splits", {})
        splits = {uid: {name: SplitStatus(**one) for name, one in found.items()} for uid, found in told.items()}
        return super()._of({**content, "steps": steps, "restarts": restarts, "splits": splits}, where)


def _summed(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum of counters, by name."""
    found: dict[str, int] = {}
    for part in parts:
        for name, count in part.items():
            found[name] = found.get(name, 0) + count
    return found
