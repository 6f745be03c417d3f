"""The local engine: for tests, notebooks and examples. See `LocalJob`."""

from __future__ import annotations

from headwater.job.engine import Settings
from headwater.local.job import LocalJob
from headwater.plan.plan import JobPlan


class LocalEngine:
    """Starts jobs in threads of this process."""

    def start(self, plan: JobPlan, settings: Settings) -> LocalJob:
        return LocalJob(plan, settings).launch()
