"""How a plan gets to Python workers, and what a worker keeps of it between epochs."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from pyspark import cloudpickle

from headwater.durable import write_atomically
from headwater.errors import HeadwaterError, JobError
from headwater.job import program
from headwater.job.folder import JobFolder
from headwater.operators.user_code import not_copied
from headwater.plan.plan import JobPlan
from headwater.savepoints.origin import Origin
from headwater.spark.failures import Failure, marked
from headwater.task.closing import close_all
from headwater.task.host import LevelHost
from headwater.task.split import SplitHost


@dataclass
class _Worker:
    """What this process keeps of one run of a job."""

    plan: JobPlan
    hosts: dict[tuple[int, int], LevelHost] = field(default_factory=dict)
    splits: dict[tuple[int, str], SplitHost] = field(default_factory=dict)

    def close(self) -> None:
        close_all([*self.splits.values(), *self.hosts.values()])


class Request(Enum):
    """What the driver asks the source of a running query for, and what the source tells it."""

    STOP = "stop"
    """No further epoch."""
    DRAIN = "drain"
    """One more epoch, with which the input ends where it is."""
    ALIGNED_EPOCH = "aligned"
    """Epochs that leave nothing in flight."""
    CAUGHT_UP = "caught_up"
    """Told by the source: what the run was to read is read, and committed, and it plans no further epoch."""


_workers: dict[str, _Worker] = {}
"""By run; a worker process serves many tasks, one at a time."""


def local_dir() -> Path | None:
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
    origin: Origin | None

    @classmethod
    def of(cls, plan: JobPlan, folder: JobFolder, run_id: str) -> ShippedJob:
        pickled = pickled_plan(plan)
        file = folder.layout.outbox.plan(run_id)
        write_atomically(file, pickled, private=True)
        digest = hashlib.sha256(pickled).hexdigest()
        return cls(
            folder.job_id, run_id, str(folder.layout.outbox.path), plan.parallelism, str(file), digest, folder.origin
        )

    def request(self, what: Request) -> None:
        """Let the source know; it plans in another process, so the word is a file."""
        self._file_of(what).touch()

    def withdraw(self, what: Request) -> None:
        """Take a request back."""
        self._file_of(what).unlink(missing_ok=True)

    def is_requested(self, what: Request) -> bool:
        return self._file_of(what).exists()

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """An attempt at a task: Spark makes another after one that fails, whatever it fails with.

        So what would fail again is written down for the driver, and after that no task of the run does anything but fail
        with it.
        """
        with marked():
            told = self.failure()
            if told is not None:
                raise told
            try:
                yield
            except HeadwaterError as error:
                if not error.is_transient:
                    with suppress(OSError):  # it then travels as text, and Spark tries the task again
                        Failure.of(error).write(self._failure)
                raise

    def failure(self) -> HeadwaterError | None:
        """What a task of the run has failed with, if it always would."""
        told = Failure.read_if_there(self._failure)
        return None if told is None else told.made_again()

    @property
    def _failure(self) -> Path:
        return Path(self.file).with_suffix(".failure")

    def remove(self) -> None:
        """Remove the run's files after it."""
        Path(self.file).unlink(missing_ok=True)
        self._failure.unlink(missing_ok=True)
        for what in Request:
            self.withdraw(what)

    def _file_of(self, what: Request) -> Path:
        return Path(self.file).with_suffix(f".{what.value}")

    def plan(self) -> JobPlan:
        """The plan, in this process."""
        return self._worker().plan

    def host(self, level: int, subtask: int) -> LevelHost:
        """The working copy of a level's subtask in this process; perhaps new, perhaps behind."""
        worker = self._worker()
        place = (level, subtask)
        if place not in worker.hosts:
            worker.hosts[place] = LevelHost(worker.plan, level, subtask, local_dir=local_dir())
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
        try:
            plan: JobPlan = cloudpickle.loads(pickled)
        except ModuleNotFoundError as error:
            raise JobError.worker_lacks(error.name or str(error)) from None
        return plan


def pickled_plan(plan: JobPlan) -> bytes:
    """The plan as bytes; where that cannot be, which step keeps it from being so, and with what."""
    try:
        return _dumps(plan)
    except Exception:
        for node in plan.graph:
            for part in vars(node).values():
                try:
                    _dumps(part)
                except Exception as reason:
                    raise not_copied(part, plan.graph.uid(node), reason, _dumps) from None
        raise


def _dumps(value: object) -> bytes:
    if program.MODULE in sys.modules:
        cloudpickle.register_pickle_by_value(sys.modules[program.MODULE])  # type: ignore[no-untyped-call]
    pickled: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return pickled
