"""Levels: any acyclic graph runs as one linear query.

A step whose input moves between subtasks is the entry of a level: one deeper than the deepest step it reads from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.plan.plan import JobPlan


def assign_levels(plan: JobPlan) -> None:
    """Put every entry one level below the deepest step it reads from."""
    deepest: dict[int, int] = {}
    for node in plan.graph:
        level, in_place = 0, 0
        for edge in node.inputs:
            if edge.exchange.moves:
                level = max(level, deepest[edge.source] + 1)
            else:
                in_place = max(in_place, deepest[edge.source])
        deepest[node.id] = max(level, in_place)
        if level:
            plan.choose(node, level=level)
