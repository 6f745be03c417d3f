"""What a Python worker of Spark's keeps of a job between epochs: its plan, and the copies of its state.

The process that plans epochs needs the plan alone: what runs tasks is imported by them.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import cloudpickle

from headwater.errors import JobError
from headwater.plan.plan import JobPlan
from headwater.spark.shipped import ShippedJob
from headwater.task import garbage_collection

if TYPE_CHECKING:
    from headwater.spark.copies.held import Copies
    from headwater.task.split import SplitHost


@dataclass
class Worker:
    """What this process keeps of one run of a job. It serves many tasks, one at a time."""

    job: ShippedJob
    plan: JobPlan
    splits: dict[tuple[int, str], SplitHost] = field(default_factory=dict)

    @cached_property
    def copies(self) -> Copies:
        """The copies of state; imported by tasks of levels alone."""
        from headwater.spark.copies.held import Copies

        return Copies(self.job, self.plan, local_dir())

    def split(self, node: int, split: str) -> SplitHost:
        """The host of a source's split."""
        from headwater.task.split import SplitHost

        if (node, split) not in self.splits:
            self.splits[node, split] = SplitHost(self.plan, self.plan.source(node), split)
        return self.splits[node, split]

    def close(self) -> None:
        from headwater.task.closing import close_all

        copies = [self.copies] if "copies" in self.__dict__ else []
        close_all([*self.splits.values(), *copies])


_workers: dict[str, Worker] = {}
"""By run."""


def worker_of(job: ShippedJob) -> Worker:
    """What this process keeps of a job's run; read from its plan at the first call."""
    key = f"{job.job_id}/{job.run_id}"
    if key not in _workers:
        over = [run for run, kept in _workers.items() if kept.job.job_id == job.job_id or kept.job.is_over]
        for run in over:
            _workers.pop(run).close()
        if over:
            garbage_collection.look_at_everything()
        _workers[key] = Worker(job, _plan_of(job))
    return _workers[key]


def _plan_of(job: ShippedJob) -> JobPlan:
    try:
        pickled = Path(job.file).read_bytes()
    except OSError as error:
        raise JobError.not_supported(
            f"a worker cannot read the job folder: {error}", "put job_dir on a file system that every worker shares"
        ) from None
    if hashlib.sha256(pickled).hexdigest() != job.digest:
        raise JobError.corrupt(job.file, "it is not what the driver wrote")
    try:
        plan: JobPlan = cloudpickle.loads(pickled)
    except ModuleNotFoundError as error:
        raise JobError.worker_lacks(error.name or str(error)) from None
    return plan


def local_dir() -> Path | None:
    """Where Spark lets this worker keep files; it removes them when the executor ends."""
    folders = os.environ.get("SPARK_LOCAL_DIRS", "")
    return Path(folders.split(",")[0]) if folders else None
