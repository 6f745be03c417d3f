"""The budgets of state, watched: a warning when one is nearly used, and what its policy says when it is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from headwater.budgets import Budget
from headwater.epoch.reports import TaskReport
from headwater.errors import HeadwaterError, StateBudgetExceeded
from headwater.graph.holdings import holdings
from headwater.graph.nodes import Node
from headwater.plan.choices import ON_DISK
from headwater.plan.plan import JobPlan
from headwater.sizes import size_text

_LOG = logging.getLogger("headwater.state")
_NEARLY = 0.8
"""From this part of a budget on there is a warning: late enough to be serious, early enough to do something."""


class StateMoves(HeadwaterError):
    """Ends an attempt whose steps have come to keep more than they may in memory; the next one has them on disk."""

    def __init__(self, steps: list[str]) -> None:
        super().__init__(f"the working state of {', '.join(map(repr, steps))} moves to disk")
        self.steps = steps


class BudgetWatch:
    """Looks at every epoch before it is committed, and has it fail if a step has come to keep more than it may."""

    def __init__(self, plan: JobPlan, forecast: Callable[[str], str]) -> None:
        """`forecast` says how the state of a step will go on."""
        self._plan, self._forecast = plan, forecast
        self._told: dict[str, float] = {}
        """Of which part of its budget it was told last, for each step that has used so much."""

    def admit(self, epoch: int, reports: Iterable[TaskReport]) -> None:
        """Let an epoch pass, or raise what becomes of it."""
        if not self._plan.budgets:
            return
        used = dict.fromkeys(self._plan.budgets, 0)
        for report in reports:
            for uid in used.keys() & report.steps.keys():
                used[uid] += sum(report.steps[uid].state_bytes.values())
        moving = []
        for uid, budget in self._plan.budgets.items():
            self._warn(uid, used[uid], budget)
            if used[uid] <= budget.size_bytes:
                continue
            if budget.on_full == "fail":
                raise StateBudgetExceeded.of(uid, epoch, used[uid], budget.size_bytes, self._ways(uid))
            if budget.on_full == "spill" and not self._is_on_disk(uid):
                moving.append(uid)
        if moving:
            raise StateMoves(moving)

    def spill(self, used: Mapping[str, int]) -> None:
        """Have the state of those steps on disk from now on that had more than they may hold in memory."""
        for uid, budget in self._plan.budgets.items():
            if budget.on_full == "spill" and used.get(uid, 0) > budget.size_bytes:
                self.move([uid])

    def move(self, steps: Iterable[str]) -> None:
        """Have the state of steps on disk from now on; what is stored is the same."""
        for uid in steps:
            self._plan.choose(self._node(uid), state=ON_DISK)

    def _warn(self, uid: str, used_bytes: int, budget: Budget) -> None:
        part = used_bytes / budget.size_bytes
        passed = 1.0 if part > 1 else _NEARLY if part >= _NEARLY else 0.0
        before, self._told[uid] = self._told.get(uid, 0.0), passed
        if passed > before and not (passed == 1.0 and budget.on_full == "fail"):  # which is told when it is raised
            then = f"; {self._on_full(uid, budget)}" if passed == 1.0 else ""
            ways = self._ways(uid)
            _LOG.warning(
                "step %r has used %d %% of its state budget: %s of %s%s%s%s",
                uid,
                round(100 * part),
                size_text(used_bytes),
                size_text(budget.size_bytes),
                self._forecast(uid),
                then,
                f"; to bound it: {'; or '.join(ways)}" if ways else "",
            )

    def _on_full(self, uid: str, budget: Budget) -> str:
        if budget.on_full == "warn" or self._is_on_disk(uid):
            return "the job goes on"
        return "its working state moves to the workers' disks, and the job goes on from its last committed epoch"

    def _ways(self, uid: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(way for held in holdings(self._node(uid)) for way in held.ways_out))

    def _is_on_disk(self, uid: str) -> bool:
        return self._plan.of(self._node(uid)).state == ON_DISK

    def _node(self, uid: str) -> Node:
        return next(node for node in self._plan.graph if self._plan.graph.uid(node) == uid)
