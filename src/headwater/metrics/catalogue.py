"""Every metric of a job: its name, its labels, what it says, and how it follows from the job's status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.job.status import JobStatus, StepStatus
from headwater.measures import Measured, Number

USER_PREFIX = "headwater_user_"
"""Stands before the names of what functions measure."""


@dataclass(frozen=True)
class Seen:
    """A job at the moment of a look."""

    job: str
    status: JobStatus
    epochs: Measured
    """How long epochs took, in seconds, as a histogram."""


Sample = tuple[tuple[str, ...], Number | Measured]
"""The values of labels, and the number; of a histogram all of it."""


@dataclass(frozen=True)
class Metric:
    """One name: what it counts or measures, and by which labels."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    words: str
    of: Callable[[Seen], Iterable[Sample]]


def _of_job(number: Callable[[Seen], Number | Measured | None]) -> Callable[[Seen], Iterable[Sample]]:
    def samples(seen: Seen) -> Iterator[Sample]:
        found = number(seen)
        if found is not None:
            yield (seen.job,), found

    return samples


def _of_steps(number: Callable[[Seen, StepStatus], Number | None]) -> Callable[[Seen], Iterable[Sample]]:
    def samples(seen: Seen) -> Iterator[Sample]:
        for uid, step in seen.status.steps.items():
            if (found := number(seen, step)) is not None:
                yield (seen.job, uid), found

    return samples


def _by_name(numbers: Callable[[StepStatus], Iterable[tuple[str, Number]]]) -> Callable[[Seen], Iterable[Sample]]:
    def samples(seen: Seen) -> Iterator[Sample]:
        for uid, step in seen.status.steps.items():
            for name, number in numbers(step):
                yield (seen.job, uid, name), number

    return samples


def _is_time(watermark_ms: int) -> bool:
    return watermark_ms not in (MIN_TIMESTAMP, MAX_TIMESTAMP)


def _watermark_s(_: Seen, step: StepStatus) -> float | None:
    return step.watermark_ms / 1000 if _is_time(step.watermark_ms) else None


def _lag_s(seen: Seen, step: StepStatus) -> float | None:
    now_ms = seen.status.now_ms
    return (now_ms - step.watermark_ms) / 1000 if now_ms is not None and _is_time(step.watermark_ms) else None


def _split_rows(seen: Seen) -> Iterator[Sample]:
    for uid, splits in seen.status.splits.items():
        for split, one in splits.items():
            yield (seen.job, uid, split), one.rows_in


def _split_idle(seen: Seen) -> Iterator[Sample]:
    for uid, splits in seen.status.splits.items():
        for split, one in splits.items():
            yield (seen.job, uid, split), int(one.is_idle)


def _split_watermarks(seen: Seen) -> Iterator[Sample]:
    for uid, splits in seen.status.splits.items():
        for split, one in splits.items():
            if _is_time(one.watermark_ms):
                yield (seen.job, uid, split), one.watermark_ms / 1000


def _positions(seen: Seen) -> Iterator[Sample]:
    for uid, splits in seen.status.positions.items():
        for split, position in splits.items():
            yield (seen.job, uid, split), position


_JOB, _STEP, _SPLIT = ("job_name",), ("job_name", "step"), ("job_name", "source", "split")
"""Not `job`: Prometheus gives that label to what it scrapes itself."""

CATALOGUE = (
    Metric(
        "headwater_job_running",
        "gauge",
        _JOB,
        "1 while the job runs, 0 while it waits to be started again after a failure",
        _of_job(lambda seen: int(seen.status.state == "running")),
    ),
    Metric(
        "headwater_job_restarts",
        "gauge",
        _JOB,
        "how often the job was started again after a failure; the newest ones are counted, as in its status",
        _of_job(lambda seen: len(seen.status.restarts)),
    ),
    Metric(
        "headwater_job_epoch",
        "gauge",
        _JOB,
        "the newest epoch that was computed",
        _of_job(lambda seen: seen.status.epoch),
    ),
    Metric(
        "headwater_job_published_epoch",
        "gauge",
        _JOB,
        "the newest epoch that every sink has",
        _of_job(lambda seen: seen.status.published),
    ),
    Metric(
        "headwater_job_epoch_seconds",
        "histogram",
        _JOB,
        "how long epochs took, from their plan until every sink had them",
        _of_job(lambda seen: seen.epochs),
    ),
    Metric(
        "headwater_step_rows_in_total",
        "counter",
        _STEP,
        "rows that came to a step",
        _of_steps(lambda _, step: step.rows_in),
    ),
    Metric(
        "headwater_step_rows_out_total",
        "counter",
        _STEP,
        "rows that a step gave",
        _of_steps(lambda _, step: step.rows_out),
    ),
    Metric(
        "headwater_step_side_rows_total",
        "counter",
        (*_STEP, "output"),
        "rows that a step gave to a side output",
        _by_name(lambda step: step.outputs.items()),
    ),
    Metric(
        "headwater_step_counted_total",
        "counter",
        (*_STEP, "counter"),
        "what a step counts itself: late_dropped, dead_letters and others",
        _by_name(lambda step: step.counters.items()),
    ),
    Metric(
        "headwater_step_busy_seconds_total",
        "counter",
        _STEP,
        "how long a step worked, on all subtasks together, with the steps behind it that run in the same call",
        _of_steps(lambda _, step: step.work.get("busy_us", 0) / 1_000_000),
    ),
    Metric(
        "headwater_step_in_flight_rows",
        "gauge",
        _STEP,
        "rows that wait at a step for the next epoch, where epochs are unaligned",
        _of_steps(lambda _, step: step.in_flight),
    ),
    Metric(
        "headwater_step_watermark_seconds",
        "gauge",
        _STEP,
        "event time at a step, in seconds since 1970; none before it begins and after it has ended",
        _of_steps(_watermark_s),
    ),
    Metric(
        "headwater_step_watermark_lag_seconds",
        "gauge",
        _STEP,
        "how far event time at a step is behind the time of the newest epoch",
        _of_steps(_lag_s),
    ),
    Metric(
        "headwater_step_state_entries",
        "gauge",
        (*_STEP, "state"),
        "entries of a state of a step",
        _by_name(lambda step: step.state.items()),
    ),
    Metric(
        "headwater_step_state_bytes",
        "gauge",
        _STEP,
        "about what the state of a step takes",
        _of_steps(lambda _, step: step.work.get("state_bytes", 0)),
    ),
    Metric(
        "headwater_source_rows_total",
        "counter",
        _SPLIT,
        "rows that were read of a split of a source",
        _split_rows,
    ),
    Metric(
        "headwater_source_position",
        "gauge",
        _SPLIT,
        "the position of the next row to read of a split",
        _positions,
    ),
    Metric(
        "headwater_source_watermark_seconds",
        "gauge",
        _SPLIT,
        "event time in a split, in seconds since 1970; none before it begins and after it has ended",
        _split_watermarks,
    ),
    Metric(
        "headwater_source_idle",
        "gauge",
        _SPLIT,
        "1 for a split that has been without rows for so long that nobody waits for it",
        _split_idle,
    ),
)


def user_metrics(seen: Seen) -> list[Metric]:
    """What functions of the job measure, in the order of names; those of one name and kind in several steps are one metric."""
    kinds: dict[str, list[str]] = {}
    for step in seen.status.steps.values():
        for name, one in step.metrics.items():
            if one.kind not in kinds.setdefault(name, []):
                kinds[name].append(one.kind)
    return [_user_metric(name, kind) for name in sorted(kinds) for kind in kinds[name]]


def _user_metric(name: str, kind: str) -> Metric:
    def samples(seen: Seen) -> Iterator[Sample]:
        for uid, step in seen.status.steps.items():
            one = step.metrics.get(name)
            if one is not None and one.kind == kind:
                yield (seen.job, uid), one if kind == "histogram" else one.value

    shown: dict[str, Literal["counter", "gauge", "histogram"]] = {"gauge": "gauge", "histogram": "histogram"}
    ending = "" if kind in shown else "_total"
    words = f"a {kind} of the job's own functions"
    return Metric(f"{USER_PREFIX}{name}{ending}", shown.get(kind, "counter"), _STEP, words, samples)


def cumulative(one: Measured) -> list[tuple[str, int]]:
    """The buckets of a histogram: how many values are at most as large as each bound says, the last one being none."""
    counts, below = [], 0
    for bound, count in zip([*map(str, map(float, one.bounds)), "+Inf"], one.buckets, strict=True):
        below += count
        counts.append((bound, below))
    return counts
