"""When sinks get the rows of an epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.plan.choices import AFTER_COMMIT, EARLY

if TYPE_CHECKING:
    from headwater.plan.plan import JobPlan


def choose_publication(plan: JobPlan) -> None:
    """Publish after the commit, or in a job that is at-least-once before it."""
    for node in plan.sinks():
        plan.choose(node, published=EARLY if plan.publishes_early else AFTER_COMMIT)
