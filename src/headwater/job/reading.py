"""A job folder as it is looked at: nothing is locked, created or changed, and no program is needed."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from headwater.epoch.manifest import Manifest, Published
from headwater.errors import JobError
from headwater.job.checkpoints.stored import StoredEpochs
from headwater.job.identity import JobIdentity
from headwater.job.layout import JobLayout
from headwater.job.lock import Owner, owner_of
from headwater.job.outline import JobOutline
from headwater.job.status import JobStatus, RestartReason

SHOWN_RESTARTS = 100
"""How many of the newest reasons are given; the folder keeps them all."""


class JobReader:
    """What the files of a job folder say at the moment of each call; the job may run meanwhile."""

    def __init__(self, path: Path) -> None:
        self.layout = JobLayout(path.absolute())

    @property
    def path(self) -> Path:
        """The job folder."""
        return self.layout.path

    @cached_property
    def identity(self) -> JobIdentity:
        """Which job it is; refuses a folder that is of none."""
        found = JobIdentity.read_if_there(self.layout.job)
        if found is None:
            raise JobError.no_job(str(self.path), is_there=self.path.is_dir())
        return found

    def published(self) -> Published:
        """The newest epoch that every sink has; before the first one, that of the job that this one started from."""
        return Published.read_if_there(self.layout.outbox.published) or Published(self.identity.first_epoch - 1)

    def is_staged(self, epoch: int) -> bool:
        """Whether an epoch waits to be published and all its files are there."""
        manifest = Manifest.read_if_there(self.layout.outbox.manifest(epoch))
        return manifest is not None and manifest.is_staged()

    def restarts(self) -> tuple[RestartReason, ...]:
        """Why the job was started again, the newest last."""
        return read_reasons(self.layout.restarts)

    def status(self) -> JobStatus | None:
        """Where the job stood when its driver last wrote it; None where no driver has."""
        return JobStatus.read_if_there(self.layout.status)

    def outline(self) -> JobOutline | None:
        """What the last run is; None where no driver has written it."""
        return JobOutline.read_if_there(self.layout.outline)

    def owner(self) -> Owner | None:
        """The process that runs the job; None when none does."""
        return owner_of(self.layout.lock)

    def stored(self) -> StoredEpochs:
        """What the engine keeps."""
        from headwater.spark.checkpoint_files import CheckpointFiles

        return CheckpointFiles(self.layout.checkpoint, self.identity.levels, self.identity.parallelism)


def read_reasons(file: Path) -> tuple[RestartReason, ...]:
    """The newest reasons in a file; a line that a crash cut off is passed over."""
    if not file.exists():
        return ()
    lines = file.read_text(errors="replace").split("\n")[:-1]
    return tuple(RestartReason.from_text(line, str(file)) for line in lines[-SHOWN_RESTARTS:])
