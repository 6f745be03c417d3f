"""Where state lives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.plan.choices import IN_MEMORY

if TYPE_CHECKING:
    from headwater.plan.plan import JobPlan


def place_state(plan: JobPlan) -> None:
    """Keep the state of steps that leave it to a backend where the job's backend is, that of others in memory."""
    for node in plan.graph:
        if node.is_stateful:
            plan.choose(node, state=plan.state_backend if node.uses_backend else IN_MEMORY)
