"""How a plan gets to Python processes of Spark's, and how the driver and they let each other know.

Some of them only carry a job along, so this module imports little.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.durable import write_atomically
from headwater.errors import HeadwaterError
from headwater.spark.failures import Failure, marked

if TYPE_CHECKING:
    from headwater.job.folder import JobFolder
    from headwater.savepoints.origin import Origin


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


@dataclass(frozen=True)
class ShippedJob:
    """Where workers find a run's plan. They unpickle it once per process and run, not once per task.

    The plan travels in a file of the job folder because Spark cannot ship more than a megabyte to the planner of a
    stateful step. Its digest travels with the task, so that a worker unpickles what the driver wrote and nothing else.
    """

    job_id: str
    run_id: str
    outbox: str
    folder_version: int
    parallelism: int
    file: str
    digest: str
    origin: Origin | None

    @classmethod
    def of(cls, pickled: bytes, parallelism: int, folder: JobFolder, run_id: str) -> ShippedJob:
        file = folder.layout.outbox.plan(run_id)
        write_atomically(file, pickled, private=True)
        digest = hashlib.sha256(pickled).hexdigest()
        outbox = str(folder.layout.outbox.path)
        return cls(folder.job_id, run_id, outbox, folder.version, parallelism, str(file), digest, folder.origin)

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

    @property
    def is_over(self) -> bool:
        """Whether the run has come to its end: its driver has removed its files."""
        return not Path(self.file).exists()

    def remove(self) -> None:
        """Remove the run's files after it."""
        Path(self.file).unlink(missing_ok=True)
        self._failure.unlink(missing_ok=True)
        for what in Request:
            self.withdraw(what)

    def _file_of(self, what: Request) -> Path:
        return Path(self.file).with_suffix(f".{what.value}")
