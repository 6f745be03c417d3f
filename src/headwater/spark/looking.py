"""State as the folder of a job has it, whether the job runs or not. The program says what its bytes mean."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from pyspark.sql import SparkSession

from headwater.errors import JobError
from headwater.job.checkpoints.listing import Checkpoints
from headwater.job.identity import differences, shape_of
from headwater.job.reading import JobReader
from headwater.job.state_view import StateView, level_of_state, view_of
from headwater.plan.plan import JobPlan, plan_job
from headwater.spark.session import job_session, local_session
from headwater.spark.stored import StoredEpoch


def plan_as_stored(job: JobReader, plan: JobPlan) -> JobPlan:
    """The plan with the sizes that the folder was written with; refuses a program that keeps something else."""
    note = job.identity
    stored = plan_job(plan.graph, note.parallelism, note.key_groups, plan.state_backend)
    found = differences(note.shape, shape_of(stored))
    if found:
        raise JobError.other_program(str(job.path), found)
    return stored


def committed_state(
    job_dir: Path,
    plan: JobPlan,
    place: tuple[str, str],
    *,
    epoch: int | None,
    spark: SparkSession | None,
    spark_config: dict[str, str],
) -> StateView:
    """A state, by its step and name, at the newest checkpoint or at one that is retained. The folder stays as it is."""
    job = JobReader(job_dir)
    stored = plan_as_stored(job, plan)
    uid, name = place
    level = level_of_state(stored, uid, name)
    checkpoints = Checkpoints(job.path)
    at = (checkpoints.latest if epoch is None else checkpoints[epoch]).epoch
    shared = spark or local_session(stored.parallelism, spark_config)
    session = job_session(shared, stored.parallelism, spark_config)
    batch = StoredEpoch(session, job.layout.checkpoint, at - job.identity.first_epoch)
    with closing(batch.level(stored, level)) as found:
        return view_of(found.hosts, uid, name, at)
