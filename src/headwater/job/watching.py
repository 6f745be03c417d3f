"""Who watches a job while it runs: told when it begins, of every step of its epochs, and when it has ended."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from headwater.epoch.steps import EpochStep, OnStep
from headwater.job.status import JobStatus


class Watched(Protocol):
    """A job, as far as it is watched."""

    name: str

    def status(self) -> JobStatus:
        """Where it stands."""


@runtime_checkable
class JobWatcher(Protocol):
    """Watches jobs, in the driver; what it is told of a step, it is told on the thread that made the step."""

    def begin(self, job: Watched) -> None:
        """A job is about to run; what is raised here keeps it from that."""

    def see(self, step: EpochStep, epoch: int) -> None:
        """A step was made. It must not fail, and not take long."""

    def end(self) -> None:
        """The job has ended, however it did."""


def watching(watchers: tuple[JobWatcher, ...], on_step: OnStep) -> OnStep:
    """A hook for the steps of epochs that tells watchers, and then calls `on_step`."""

    def watch(step: EpochStep, epoch: int) -> None:
        for watcher in watchers:
            watcher.see(step, epoch)
        on_step(step, epoch)

    return watch
