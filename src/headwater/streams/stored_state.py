"""What the job folder of a program keeps, looked at without running it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.errors import JobError

if TYPE_CHECKING:
    from headwater.job.state_view import StateView
    from headwater.plan.plan import JobPlan


class StoredState(ABC):
    """What an environment has to look at the state of its job."""

    job_dir: Path | None
    _engine_name: str
    _spark: Any
    _spark_config: dict[str, str]

    @abstractmethod
    def plan(self) -> JobPlan:
        """The job as the engines run it."""

    def state(self, uid: str, name: str, *, epoch: int | None = None) -> StateView:
        """A state of a step as the job folder has it, also when the job has ended: at its newest epoch, or a retained one.

        It is read with Spark, on this machine; the folder stays as it is.
        """
        if self._engine_name != "spark" or self.job_dir is None:
            raise JobError.not_supported(
                "state outlives a job in its job folder, which jobs on Spark have", "give engine='spark' and a job_dir"
            )
        from headwater.spark.looking import committed_state

        place, config = (uid, name), self._spark_config
        return committed_state(self.job_dir, self.plan(), place, epoch=epoch, spark=self._spark, spark_config=config)
