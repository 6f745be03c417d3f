"""The job folder as the process that runs the job has it: locked, and taken for a plan."""

from __future__ import annotations

import uuid
from pathlib import Path

from headwater.durable import PRIVATE_FOLDER
from headwater.errors import JobError
from headwater.job import lock
from headwater.job.identity import JobIdentity, differences, shape_of
from headwater.job.layout import FORMAT, JobLayout
from headwater.job.requests import forget_requests
from headwater.plan.plan import JobPlan
from headwater.savepoints.origin import Origin


class JobFolder:
    """A folder that one process at a time runs a job in. `resumed` tells whether it held a job before."""

    def __init__(self, path: Path) -> None:
        self.layout = JobLayout(path.absolute())
        self.path = self.layout.path
        self.path.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        self.layout.outbox.path.mkdir(PRIVATE_FOLDER, exist_ok=True)
        self._lock = lock.take(self.layout.lock)
        forget_requests(self.layout.control)  # nobody can have asked this process yet
        self.job_id = ""
        self.resumed = False
        self.origin: Origin | None = None
        self.version = FORMAT

    @property
    def first_epoch(self) -> int:
        """The number of the job's first epoch."""
        return 0 if self.origin is None else self.origin.epoch + 1

    def claim(self, plan: JobPlan, origin: Origin | None = None) -> None:
        """Take the folder for a plan: note the plan and the origin in a new folder, compare them in an old one."""
        shape = shape_of(plan)
        known = JobIdentity.read_if_there(self.layout.job)
        if known is None:
            self.job_id, self.origin = uuid.uuid4().hex, origin
            JobIdentity(plan.graph.name, self.job_id, shape, origin).write(self.layout.job)
            return
        self.job_id, self.origin, self.version = known.job_id, known.origin, known.version
        if origin is not None:
            if self.origin is None or not self.origin.is_same(origin):
                raise JobError.has_a_job(str(self.path), origin.path)
            self.origin = origin  # its savepoint may have moved since
        if found := differences(known.shape, shape):
            raise JobError.other_program(str(self.path), found)
        self.resumed = True

    def is_claimed(self) -> bool:
        """Whether there is a job in it."""
        return self.layout.job.exists()

    def give_back(self) -> None:
        """Forget the job of a folder that was new when it was claimed and in which nothing was committed."""
        if not self.resumed:
            self.layout.job.unlink(missing_ok=True)

    def close(self) -> None:
        """Let another process have the folder."""
        lock.give_up(self._lock)
