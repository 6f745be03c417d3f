"""What `job.json` says of a job, for those who look at its folder without its program."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.epoch.outbox import Outbox
from headwater.epoch.steps import ignore_steps
from headwater.errors import JobError
from headwater.job.checkpoints.files import CheckpointFiles
from headwater.job.folder import CHECKPOINT, OUTBOX


@dataclass(frozen=True)
class JobNote:
    """The sizes of a job, and where its epochs begin."""

    job_dir: Path
    job_id: str
    shape: dict[str, Any]
    """What the job keeps, and on how many subtasks."""
    levels: int
    parallelism: int
    key_groups: int
    first_epoch: int
    """Spark counts its batches from 0; a job that began with the state of another goes on with that one's epochs."""

    @classmethod
    def read(cls, job_dir: Path) -> JobNote:
        path = job_dir / "job.json"
        try:
            known = json.loads(path.read_text())
            shape = known["shape"]
            levels = max((step["level"] for step in shape["steps"].values()), default=0)
            first_epoch = known["origin"]["epoch"] + 1 if "origin" in known else 0
            sizes = (levels, int(shape["parallelism"]), int(shape["key groups"]))
            return cls(job_dir, known["id"], shape, *sizes, first_epoch)
        except FileNotFoundError:
            raise JobError.no_job(str(job_dir)) from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise JobError.corrupt(str(path), str(error)) from None

    def files(self) -> CheckpointFiles:
        """The job's checkpoint folder."""
        return CheckpointFiles(self.job_dir / CHECKPOINT, self.levels, self.parallelism)

    def outbox(self) -> Outbox:
        """The job's outbox, to look at: without sinks it publishes nothing."""
        return Outbox(self.job_dir / OUTBOX, {}, ignore_steps, self.first_epoch)
