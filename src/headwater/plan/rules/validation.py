"""What must not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.plan.plan import JobPlan


def validate_graph(plan: JobPlan) -> None:
    """Refuse what must not run."""
    plan.graph.validate()
