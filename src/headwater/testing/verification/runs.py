"""One run of a program on the local engine: cut into epochs, crashed, saved and gone on from, as its course says."""

from __future__ import annotations

import logging
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headwater.epoch.steps import EpochStep
from headwater.job.engine import Job
from headwater.restart import RestartCount, RestartStrategy
from headwater.streams.environment import Environment
from headwater.streams.guarantees import GuaranteeWarning
from headwater.testing.verification.program import Build, Recorded, Scripts, program, with_other_ends

_BEGINS_MS = 1_767_225_600_000
"""2026-01-01 00:00: any time will do that is the same in all runs."""


@dataclass(frozen=True)
class Course:
    """How a run goes. `words` tell it to people."""

    words: str
    scripts: Scripts
    parallelism: int
    crash_at: EpochStep | None = None
    """The step at which every epoch crashes, once."""
    saved_after: int | None = None
    """The epoch after which the job is saved, and goes on from there on `goes_on_with` subtasks."""
    goes_on_with: int = 1


def outputs_of(build: Build, course: Course) -> dict[str, Recorded]:
    """Run a program; its sinks by uid, with all their rows."""
    env = program(build, course.parallelism)
    sinks = with_other_ends(env, course.scripts)
    if course.saved_after is None:
        _run(env, _Crashes(course.crash_at))
        return sinks
    with tempfile.TemporaryDirectory(prefix="headwater-verify-") as folder:
        savepoint = Path(folder, "savepoint")
        saves = _Saves(course.saved_after, savepoint)
        job = _run(env, saves)
        if not savepoint.exists():
            job.stop(savepoint=savepoint)  # which raises what kept it from being taken
        other = program(build, course.goes_on_with)
        with_other_ends(other, course.scripts, sinks)
        _run(other, _Crashes(None), from_=savepoint)
    return sinks


class _Crash(Exception):
    """What a driver dies of."""


class _Crashes(RestartStrategy):
    """Crashes every epoch once at a step, and lets the job start again after that alone."""

    def __init__(self, at: EpochStep | None) -> None:
        self._at, self._crashed = at, set[int]()
        self._is_crash = False

    def begins(self, job: Job) -> None:
        """The job was started."""

    def see(self, step: EpochStep, epoch: int) -> None:
        """The hook for the steps of epochs."""
        if step is self._at and epoch not in self._crashed:
            self._crashed.add(epoch)
            self._is_crash = True
            raise _Crash(f"{step.name} of epoch {epoch}")

    def begin(self) -> RestartCount:
        return _CrashCount(self)

    def describe(self) -> str:
        return "after a crash that was made"

    def take(self) -> bool:
        """Whether the last failure was a crash that was made; asked once for each."""
        was, self._is_crash = self._is_crash, False
        return was


class _CrashCount(RestartCount):
    def __init__(self, crashes: _Crashes) -> None:
        self._crashes = crashes

    def delay_ms(self, failed_ms: int) -> int | None:
        return 0 if self._crashes.take() else None


class _Saves(_Crashes):
    """Stops the job with a savepoint after an epoch."""

    def __init__(self, after: int, folder: Path) -> None:
        super().__init__(None)
        self._after, self._folder = after, folder
        self._started = threading.Event()
        self._job: Job

    def begins(self, job: Job) -> None:
        self._job = job
        self._started.set()

    def see(self, step: EpochStep, epoch: int) -> None:
        if step is EpochStep.CLEANED and epoch == self._after:
            self._started.wait()
            self._job.begin_stop(self._folder, drain=False)


def _run(env: Environment, events: _Crashes, from_: Path | None = None) -> Job:
    """Run a job to its end. Its clock moves by a millisecond an epoch: who asks it what time it is gets other answers."""
    env._restart = events
    with _quietly(env.name), warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)  # nothing of it is to outlive this run
        job = env.start(from_=from_, bounded=True, on_step=events.see, clock=lambda epoch: _BEGINS_MS + max(epoch, 0))
        events.begins(job)
        job.wait()
    return job


@contextmanager
def _quietly(job: str) -> Iterator[None]:
    """Keep what a job tells of its crashes out of the log."""
    log = logging.getLogger("headwater.job")

    def is_of_another(record: logging.LogRecord) -> bool:
        return record.threadName != f"headwater-{job}"

    log.addFilter(is_of_another)
    try:
        yield
    finally:
        log.removeFilter(is_of_another)


def epochs_of(scripts: Scripts) -> int:
    """How many epochs a run has."""
    return max((len(script.bounds) for splits in scripts.values() for script in splits), default=1)


def slices_text(scripts: Scripts) -> str:
    """Where rows come in which epoch, in words."""
    return "; ".join(
        f"{_splits_text([script.bounds for script in splits])} of {uid!r}" for uid, splits in scripts.items()
    )


def _splits_text(splits: Sequence[Sequence[int]]) -> str:
    return " and ".join(_sizes_text(bounds) for bounds in splits)


def _sizes_text(bounds: Sequence[int]) -> str:
    sizes = [end - start for start, end in zip([0, *bounds], bounds, strict=False)]
    shown = "+".join(map(str, sizes[:12]))
    return f"{shown}{'+…' if len(sizes) > 12 else ''} rows"
