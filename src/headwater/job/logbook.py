"""What a job tells of itself through `logging`, as `headwater.job`. What it fails with is raised, and not told here too."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from headwater.epoch.steps import EpochStep, OnStep
from headwater.job.durations import CLEAN, COMMIT, COMPUTE, MANIFEST, PUBLISH, DurationsFile
from headwater.job.engine import Settings
from headwater.job.status import JobStatus, RestartReason
from headwater.plan.plan import JobPlan
from headwater.savepoints.files import Savepoint

_LOG = logging.getLogger("headwater.job")
_SLOW_INTERVALS, _SLOW_S = 5, 10.0
"""An epoch is slow that takes so many checkpoint intervals, and so long: a pause of Java's or of a disk is shorter."""
_QUIET_S = 60.0
"""Between two warnings of slow epochs: one tells that there are some, and many would bury what else is told."""
_PHASES = {
    EpochStep.STAGED: COMPUTE,
    EpochStep.MANIFEST: MANIFEST,
    EpochStep.COMMITTED: COMMIT,
    EpochStep.PUBLISHING: PUBLISH,
    EpochStep.PUBLISHED: PUBLISH,
    EpochStep.CLEANED: CLEAN,
}
"""What an epoch has done when it reaches a step."""
_WORDS = {
    COMPUTE: "to compute",
    MANIFEST: "to write its manifest",
    COMMIT: "to be committed and to wait for the epochs before it",
    PUBLISH: "to publish",
}


@dataclass
class _Course:
    """The time that an epoch has taken so far."""

    began_s: float
    last_s: float
    phases: dict[str, float] = field(default_factory=dict)


class Logbook:
    """Told what happens to a job, by its driver."""

    def __init__(
        self,
        plan: JobPlan,
        settings: Settings,
        durations: DurationsFile | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Durations of epochs are written to a file, where there is a job folder."""
        self._job, self._settings, self._now_s = plan.graph.name, settings, now_s
        self._durations = durations
        self._sources = [plan.graph.uid(node) for node in plan.sources()]
        self._courses: dict[int, _Course] = {}
        self._epochs = 0
        self._warned_s = -_QUIET_S

    def watching(self, on_step: OnStep) -> OnStep:
        """A hook for the steps of epochs, which watches how long they take and then calls `on_step`."""

        def watch(step: EpochStep, epoch: int) -> None:
            self._see(step, epoch)
            on_step(step, epoch)

        return watch

    def begins(self, engine: str, after: int | None) -> None:
        """An attempt is made on an engine, after the epoch that every sink has."""
        self._courses = {}
        folder = "a temporary folder" if self._settings.job_dir is None else self._settings.job_dir
        since = "from the beginning" if after is None else f"after epoch {after}"
        _LOG.info("job %r starts on %s in %s, %s", self._job, engine, folder, since, extra=self._about(after))

    def starts_again(self, reason: RestartReason) -> None:
        first, *_ = reason.message.splitlines() or [""]
        _LOG.warning(
            "job %r failed and starts again in %s (restart %d): %s: %s",
            self._job,
            _seconds(reason.delay_ms / 1000),
            reason.attempt,
            reason.error,
            first,
            extra=self._about(step=reason.step),
        )

    def saved(self, savepoint: Savepoint, took_s: float) -> None:
        size_bytes = sum(file.stat().st_size for file in savepoint.path.rglob("*") if file.is_file())
        epoch = savepoint.description.epoch
        _LOG.info(
            "job %r saved epoch %d in %s: %s bytes in %s",
            self._job,
            epoch,
            savepoint.path,
            f"{size_bytes:,}",
            _seconds(took_s),
            extra=self._about(epoch),
        )

    def ended(self, status: JobStatus) -> None:
        rows = sum(status.steps[uid].rows_in for uid in self._sources if uid in status.steps)
        state = f"has {status.state}" if status.state != "stopped" else "was stopped"
        _LOG.info(
            "job %r %s: %d epochs and %s rows in this run",
            self._job,
            state,
            self._epochs,
            f"{rows:,}",
            extra=self._about(status.epoch if status.epoch >= 0 else None),
        )

    def _about(self, epoch: int | None = None, step: str | None = None) -> dict[str, str | int | None]:
        """What a record is about, for those who look for it."""
        return {"job": self._job, "epoch": epoch, "step": step}

    def _see(self, step: EpochStep, epoch: int) -> None:
        now_s = self._now_s()
        course = self._courses.setdefault(epoch, _Course(now_s, now_s))
        if step in _PHASES:
            phase = _PHASES[step]
            course.phases[phase] = course.phases.get(phase, 0.0) + now_s - course.last_s
        course.last_s = now_s
        if step is EpochStep.PUBLISHED:
            self._epochs += 1
            took = _seconds(course.last_s - course.began_s)
            _LOG.debug("job %r: epoch %d took %s", self._job, epoch, took, extra=self._about(epoch))
            self._warn_if_slow(epoch, course)
        if step is EpochStep.CLEANED:
            del self._courses[epoch]
            if self._durations is not None:
                self._durations.add(epoch, course.phases)

    def _warn_if_slow(self, epoch: int, course: _Course) -> None:
        took_s, interval_s = course.last_s - course.began_s, self._settings.checkpoint_interval_ms / 1000
        is_slow = not self._settings.ends and took_s >= max(_SLOW_S, _SLOW_INTERVALS * interval_s)
        if is_slow and course.last_s - self._warned_s >= _QUIET_S:
            self._warned_s = course.last_s
            phase = max(course.phases, key=lambda one: course.phases[one])
            _LOG.warning(
                "job %r: epoch %d took %s, %s of it %s; the checkpoint interval is %s",
                self._job,
                epoch,
                _seconds(took_s),
                _seconds(course.phases[phase]),
                _WORDS[phase],
                _seconds(interval_s),
                extra=self._about(epoch),
            )


def _seconds(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
