"""What an engine is given, and the running job it gives back."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from headwater.epoch.clock import Clock, wall_clock
from headwater.epoch.steps import OnStep, ignore_steps
from headwater.job.state_view import StateView
from headwater.job.status import JobStatus
from headwater.job.watching import JobWatcher
from headwater.plan.plan import JobPlan
from headwater.restart import MachineTime, RestartStrategy, RestartTime, none
from headwater.savepoints.origin import Origin
from headwater.savepoints.steps import OnSavepointStep, ignore_savepoint_steps
from headwater.task.entry import Stopwatch

if TYPE_CHECKING:
    from headwater.job.checkpoints.listing import Checkpoint, Checkpoints
    from headwater.job.growth.explanation import StateExplanation


@dataclass(frozen=True)
class Settings:
    """How to run a plan."""

    job_dir: Path | None
    """None for a job of which nothing is to survive."""
    checkpoint_interval_ms: int
    checkpoints_retained: int
    max_rows_per_epoch: int
    bounded: bool
    available_now: bool = False
    """Whether the run ends with what is there when it starts, and the input does not."""
    unaligned_ms: int | None = None
    """How long a step may work on rows in an unaligned epoch; None for a job whose epochs are aligned."""
    on_step: OnStep = ignore_steps
    watchers: tuple[JobWatcher, ...] = ()
    on_savepoint_step: OnSavepointStep = ignore_savepoint_steps
    clock: Clock = wall_clock
    restart: RestartStrategy = field(default_factory=none)
    restart_time: RestartTime = field(default_factory=MachineTime)
    origin: Origin | None = None
    """The savepoint to go on from."""
    checkpoint: Checkpoint | None = None
    """The checkpoint of another job folder to go on from, for the Spark engine."""
    stopwatch: Stopwatch = time.perf_counter
    """What the local engine measures the speed of steps with."""
    spark: Any = None
    """A SparkSession of the user's, for the Spark engine."""
    spark_config: dict[str, str] = field(default_factory=dict)

    @property
    def ends(self) -> bool:
        """Whether the run reads what is there when it starts, and then ends."""
        return self.bounded or self.available_now


class Job(Protocol):
    """A job that was started."""

    name: str
    given_up: str | None
    """Why an epoch was given up when the job stopped; None if none was. It is computed again when the job goes on."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job has ended; raises what it failed with. False when the timeout (seconds) came first."""

    def stop(self, *, savepoint: str | os.PathLike[str] | None = None, drain: bool = False) -> Path | None:
        """Stop after what is committed is published; the job can be started again from there.

        With `savepoint` the state at the end is saved in that folder, which is returned. With `drain` the input ends
        where it is, so that event time goes to its end and everything fires first; not for a job that is to go on later.
        """

    def begin_stop(self, savepoint: Path | None, *, drain: bool) -> None:
        """Let the job stop, as `stop` does, and return before it has."""

    def savepoint(self, path: str | os.PathLike[str]) -> Path:
        """Save the newest published epoch in a new folder, which is returned. The job does not wait for it."""

    def state(self, uid: str, name: str, *, epoch: int | None = None) -> StateView:
        """A state of a step as it was at the newest committed epoch, or at an earlier one that is retained."""

    def status(self) -> JobStatus:
        """Where the job stands."""

    def explain_analyze(self) -> str:
        """What each step does: its rows, its time, its state, and how they are spread over subtasks, of the run so far."""

    def explain_state(self) -> StateExplanation:
        """What each step keeps, until when, how much that is now, and how it has grown in this run: a day, a week ahead."""

    def checkpoints(self) -> Checkpoints:
        """The checkpoints that are retained now; for jobs on Spark."""


class Engine(Protocol):
    """Runs plans."""

    def start(self, plan: JobPlan, settings: Settings) -> Job:
        """Start a job; errors in the plan's sources and sinks are raised here."""
