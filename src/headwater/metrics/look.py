"""What every way out of metrics has in common: the job that it looks at, and how long its epochs take."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from headwater.epoch.steps import EpochStep
from headwater.errors import JobError
from headwater.job.watching import Watched
from headwater.measures import Histogram, Measured
from headwater.metrics.catalogue import Seen

_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Look:
    """A look at the job that runs."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._job: Watched | None = None
        self._forget()

    def _forget(self) -> None:
        self._planned: dict[int, float] = {}
        self._epochs: Measured = Measured("histogram", bounds=_BUCKETS, buckets=[0] * (len(_BUCKETS) + 1))

    def begin(self, job: Watched) -> None:
        """Look at this job from now on."""
        with self._lock:
            if self._job is not None:
                raise JobError.not_supported(
                    f"a way out is for the metrics of one job at a time, and job {self._job.name!r} runs",
                    "make another one",
                )
            self._job = job
            self._forget()

    def see(self, step: EpochStep, epoch: int) -> None:
        """Take the time of epochs."""
        if step not in (EpochStep.PLANNED, EpochStep.PUBLISHED):
            return
        now_s = self._now_s()
        with self._lock:
            if step is EpochStep.PLANNED:
                self._planned[epoch] = now_s
            elif (planned_s := self._planned.pop(epoch, None)) is not None:  # else of an earlier driver
                took = Histogram("epochs", _BUCKETS)
                took.update(now_s - planned_s)
                self._epochs = self._epochs.then(took.take())

    def end(self) -> None:
        """The job has ended."""
        with self._lock:
            self._job = None

    def seen(self) -> Seen | None:
        """The job now; None when none runs."""
        with self._lock:
            return None if self._job is None else Seen(self._job.name, self._job.status(), self._epochs)
