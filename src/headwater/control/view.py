"""A job as its folder tells it, whether it runs or not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headwater.epoch.offset import BySplit
from headwater.job.analysis_text import analysis_text
from headwater.job.checkpoints.history import EpochLine, read_history
from headwater.job.layout import JobLayout
from headwater.job.lock import Owner
from headwater.job.reading import JobReader
from headwater.job.splits import Splits
from headwater.job.status import JobStatus, RestartReason, StepStatus

DEAD, STARTING, UNKNOWN = "dead", "starting", "unknown"


@dataclass(frozen=True)
class JobView:
    """A job at a moment. Ask again to see what came after."""

    job_dir: Path
    name: str
    job_id: str
    owner: Owner | None
    """The process that runs the job: its `pid` and `host`; None when none does."""
    status: JobStatus
    """As its driver last wrote it; its state is 'unknown' where no driver has. A job that was killed says no more."""
    published: int
    """The newest epoch that every sink has; -1 before the first."""
    positions: BySplit
    """Per source uid and split: up to where what was read is published."""
    planned: int
    """The newest epoch that the engine began."""
    committed: int
    """The newest epoch that the engine finished."""
    restarts: tuple[RestartReason, ...] = field(repr=False)
    """Why the job was started again, oldest first."""

    def __repr__(self) -> str:
        newest = "no epoch yet" if self.committed < 0 else f"epoch={self.committed} published={self.published}"
        return f"<JobView {self.name} {self.state}, {newest}, in {self.job_dir}>"

    @property
    def is_running(self) -> bool:
        """Whether a process runs the job now."""
        return self.owner is not None

    @property
    def state(self) -> str:
        """What the status says; but 'dead' when the process that said it is gone, and 'starting' when there is a new one."""
        is_alive = self.status.state in ("running", "restarting")
        if is_alive is self.is_running:
            return self.status.state
        return DEAD if is_alive else STARTING

    @property
    def steps(self) -> Mapping[str, StepStatus]:
        """Per step uid: rows in and out, its counters by name, its watermark and its state, of the last run."""
        return self.status.steps

    @property
    def splits(self) -> Splits:
        """Per source uid and split: its rows and watermark, whether it is idle, and when it last had rows, of the last run."""
        return self.status.splits

    def explain_analyze(self) -> str:
        """What each step does: its rows, its time, its state, and how they are spread over subtasks, of the last run."""
        return analysis_text(self.status)

    def epochs(self) -> dict[int, EpochLine]:
        """The newest epochs by number, oldest first: when and how long they were computed, and what steps did in them."""
        return read_history(JobLayout(self.job_dir).epochs)


def job(job_dir: str | os.PathLike[str]) -> JobView:
    """The job in a folder; refuses one that is not the `job_dir` of a job on Spark."""
    reader = JobReader(Path(job_dir))
    identity = reader.identity
    owner = reader.owner()  # first: what it writes before it ends is read after
    published, stored = reader.published(), reader.stored()
    return JobView(
        reader.path,
        identity.name,
        identity.job_id,
        owner,
        reader.status() or JobStatus(UNKNOWN),
        published.epoch,
        published.positions,
        max(stored.logged(), default=-1) + identity.first_epoch,
        max(stored.committed(), default=-1) + identity.first_epoch,
        reader.restarts(),
    )


def job_folders(folder: str | os.PathLike[str]) -> list[Path]:
    """Where the folders of jobs are, in a folder or below it, in the order of their paths."""
    found = []
    for path, below, _ in os.walk(Path(folder).absolute()):
        if JobLayout(Path(path)).job.exists():
            found.append(Path(path))
            below.clear()
        below.sort()
    return found


def jobs(folder: str | os.PathLike[str]) -> list[JobView]:
    """The jobs whose folders are in a folder, or below it, in the order of their paths."""
    return [job(path) for path in job_folders(folder)]
