"""A new job from a checkpoint of another job folder: the checkpoint becomes a savepoint inside the new folder."""

from __future__ import annotations

import shutil
from functools import partial

from pyspark.sql import SparkSession

from headwater.job.checkpoints.listing import Checkpoint
from headwater.job.folder import JobFolder
from headwater.job.reading import JobReader
from headwater.plan.plan import JobPlan
from headwater.savepoints.files import DESCRIPTION, Savepoint
from headwater.savepoints.origin import Origin
from headwater.savepoints.renaming import Renaming
from headwater.savepoints.taking import Epoch, take
from headwater.spark.looking import plan_as_stored
from headwater.spark.stored import StoredEpoch


def origin_of(checkpoint: Checkpoint, plan: JobPlan, folder: JobFolder, spark: SparkSession) -> Origin:
    """Where the job in `folder` goes on from. The program must be the one that wrote the checkpoint, at any parallelism."""
    path = folder.layout.origin
    if folder.is_claimed() and (path / DESCRIPTION).exists():  # a start that is made again
        return Origin.of(Savepoint.open(path), Renaming())
    shutil.rmtree(path, ignore_errors=True)
    job = JobReader(checkpoint.job_dir)
    note, before = job.identity, plan_as_stored(job, plan)
    stored = StoredEpoch(spark, job.layout.checkpoint, checkpoint.epoch - note.first_epoch)
    what = Epoch(before, note.job_id, checkpoint.epoch, stored.offset(), job.layout.sources)
    return Origin.of(take(path, what, partial(stored.write_parts, before)), Renaming())
