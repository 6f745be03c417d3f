"""How a plan gets to Python workers, and what a worker keeps of it between epochs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pyspark import cloudpickle

from headwater.plan.levels import JobPlan
from headwater.runtime.host import LevelHost


@dataclass
class _Worker:
    """What this process keeps of one run of a job."""

    plan: JobPlan
    hosts: dict[tuple[int, int], LevelHost] = field(default_factory=dict)


_workers: dict[str, _Worker] = {}
"""By run; a worker process serves many tasks, one at a time."""


@dataclass(frozen=True)
class ShippedJob:
    """A plan as bytes. User code is unpickled once per worker process and run, not once per task."""

    job_id: str
    run_id: str
    outbox: str
    parallelism: int
    pickled_plan: bytes

    @classmethod
    def of(cls, plan: JobPlan, job_id: str, run_id: str, outbox: Path) -> ShippedJob:
        return cls(job_id, run_id, str(outbox), plan.parallelism, cloudpickle.dumps(plan))  # type: ignore[no-untyped-call]

    def plan(self) -> JobPlan:
        """The plan, in this process."""
        return self._worker().plan

    def host(self, level: int, subtask: int) -> LevelHost:
        """The working copy of a level's subtask in this process; perhaps new, perhaps behind."""
        worker = self._worker()
        place = (level, subtask)
        if place not in worker.hosts:
            worker.hosts[place] = LevelHost(worker.plan, level, subtask)
        return worker.hosts[place]

    def _worker(self) -> _Worker:
        key = f"{self.job_id}/{self.run_id}"
        if key not in _workers:
            for old in [k for k in _workers if k.startswith(f"{self.job_id}/")]:
                del _workers[old]  # an earlier run of this job is over
            _workers[key] = _Worker(cloudpickle.loads(self.pickled_plan))
        return _workers[key]
