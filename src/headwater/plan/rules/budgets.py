"""Budgets of state: they are for steps that there are, and what is to move to disk can be there."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from headwater.errors import GraphError
from headwater.graph.holdings import holdings
from headwater.plan.choices import ON_DISK
from headwater.plan.rules.state import place_state

if TYPE_CHECKING:
    from headwater.plan.plan import JobPlan


def check_budgets(plan: JobPlan) -> None:
    """Refuse a budget for no step, for one that keeps nothing, and to spill the state of one that is in memory always."""
    on_disk = dataclasses.replace(plan, state_backend=ON_DISK, chosen=dict(plan.chosen))
    place_state(on_disk)
    stateful = {plan.graph.uid(node): node for node in plan.graph if holdings(node)}
    for uid, budget in plan.budgets.items():
        if uid not in stateful:
            raise GraphError.no_such_budget(uid, list(stateful))
        if budget.on_full == "spill" and on_disk.of(stateful[uid]).state != ON_DISK:
            raise GraphError.cannot_spill(uid, stateful[uid].operation)
