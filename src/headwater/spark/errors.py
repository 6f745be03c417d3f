"""What a user can meet because a job runs on Spark, beside the errors of every engine."""

from __future__ import annotations

from typing import Self

from headwater.errors import JobError


class DiskFull(JobError):
    """A disk without room for what an epoch writes. It passes when there is room again."""

    @classmethod
    def of(cls, job: str, folder: str, free_bytes: int) -> Self:
        return cls(
            f"job {job!r} stopped: no space left on device; the disk of the job folder {folder} has {free_bytes:,} bytes free; "
            f"make room there, or where the outputs and Spark's local files are; nothing is lost, and the job goes on from "
            f"its last committed epoch when it is started again"
        )


class EngineGone(JobError):
    """Spark's JVM has died under the driver."""

    is_final = True

    @classmethod
    def of(cls, job: str) -> Self:
        return cls(
            f"job {job!r} stopped: Spark's JVM has died, and there is one in the life of a Python process; start the program "
            f"again: the job goes on from its last committed epoch"
        )
