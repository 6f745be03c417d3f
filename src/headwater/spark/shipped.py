"""How a plan gets to Python workers, and what a worker keeps of it between epochs."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from pyspark import cloudpickle

from headwater.durable import write_atomically
from headwater.errors import JobError
from headwater.plan.levels import JobPlan
from headwater.runtime.closing import close_all
from headwater.runtime.host import LevelHost
from headwater.runtime.split import SplitHost


@dataclass
class _Worker:
    """What this process keeps of one run of a job."""

    plan: JobPlan
    hosts: dict[tuple[int, int], LevelHost] = field(default_factory=dict)
    splits: dict[tuple[int, str], SplitHost] = field(default_factory=dict)

    def close(self) -> None:
        close_all([*self.splits.values(), *self.hosts.values()])


_workers: dict[str, _Worker] = {}
"""By run; a worker process serves many tasks, one at a time."""


def _local_dir() -> Path | None:
    """Where Spark lets this worker keep files; it removes them when the executor ends."""
    folders = os.environ.get("SPARK_LOCAL_DIRS", "")
    return Path(folders.split(",")[0]) if folders else None


@dataclass(frozen=True)
class ShippedJob:
    """Where workers find a run's plan. They unpickle it once per process and run, not once per task.

    The plan travels in a file of the job folder because Spark cannot ship more than a megabyte to the planner of a
    stateful step. Its digest travels with the task, so that a worker unpickles what the driver wrote and nothing else.
    """

    job_id: str
    run_id: str
    outbox: str
    parallelism: int
    file: str
    digest: str

    @classmethod
    def of(cls, plan: JobPlan, job_id: str, run_id: str, outbox: Path) -> ShippedJob:
        pickled = cloudpickle.dumps(plan)  # type: ignore[no-untyped-call]
        file = outbox / f"plan-{run_id}.pickle"
        write_atomically(file, pickled)
        return cls(job_id, run_id, str(outbox), plan.parallelism, str(file), hashlib.sha256(pickled).hexdigest())

    def request_stop(self) -> None:
        """Let the source plan no further epoch; it runs in another process, so the word is a file."""
        self._stop_file().touch()

    def is_stop_requested(self) -> bool:
        """Whether no further epoch is wanted."""
        return self._stop_file().exists()

    def remove(self) -> None:
        """Remove the run's files after it."""
        Path(self.file).unlink(missing_ok=True)
        self._stop_file().unlink(missing_ok=True)

    def _stop_file(self) -> Path:
        return Path(self.file).with_suffix(".stop")

    def plan(self) -> JobPlan:
        """The plan, in this process."""
        return self._worker().plan

    def host(self, level: int, subtask: int) -> LevelHost:
        """The working copy of a level's subtask in this process; perhaps new, perhaps behind."""
        worker = self._worker()
        place = (level, subtask)
        if place not in worker.hosts:
            worker.hosts[place] = LevelHost(worker.plan, level, subtask, _local_dir())
        return worker.hosts[place]

    def split(self, node: int, split: str) -> SplitHost:
        """The host of a source's split in this process."""
        worker = self._worker()
        if (node, split) not in worker.splits:
            worker.splits[node, split] = SplitHost(worker.plan, worker.plan.source(node), split)
        return worker.splits[node, split]

    def _worker(self) -> _Worker:
        key = f"{self.job_id}/{self.run_id}"
        if key not in _workers:
            for old in [k for k in _workers if k.startswith(f"{self.job_id}/")]:
                _workers.pop(old).close()  # an earlier run of this job is over
            _workers[key] = _Worker(self._read())
        return _workers[key]

    def _read(self) -> JobPlan:
        try:
            pickled = Path(self.file).read_bytes()
        except OSError as error:
            raise JobError.not_supported(
                f"a worker cannot read the job folder: {error}", "put job_dir on a file system that every worker shares"
            ) from None
        if hashlib.sha256(pickled).hexdigest() != self.digest:
            raise JobError.corrupt(self.file, "it is not what the driver wrote")
        plan: JobPlan = cloudpickle.loads(pickled)
        return plan
