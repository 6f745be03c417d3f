"""Fusion: steps to which rows come in place run inside of whatever emits into them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.plan.plan import JobPlan


def fuse_steps(plan: JobPlan) -> None:
    """Fuse every step, for the rows that do not move to it, into the sources and entries that they come from."""
    places: dict[int, set[int]] = {}
    for node in plan.graph:
        behind = {place for edge in node.inputs if not edge.exchange.moves for place in places[edge.source]}
        if behind:
            plan.choose(node, fused_into=tuple(sorted(behind)))
        is_place = node.is_source or plan.of(node).level is not None
        places[node.id] = behind | {node.id} if is_place else behind
