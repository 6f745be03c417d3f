"""Combiners: before rows move to a window, those of one key and slice become one accumulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.aggregates.declared import is_in_any_order
from headwater.graph.nodes import WindowNode
from headwater.graph.nodes.windows import BY_SLICES
from headwater.windows.assigners import Sliding, WindowAssigner

if TYPE_CHECKING:
    from headwater.plan.plan import JobPlan


def choose_combiners(plan: JobPlan) -> None:
    """Combine rows before a window by slices; late rows that go to a side output must come as they are."""
    for node in plan.graph:
        if isinstance(node, WindowNode) and plan.of(node).way == BY_SLICES:
            is_wanted = node.late is None and not _has_gaps(node.assigner)
            plan.choose(node, is_combined=is_wanted and is_in_any_order(node.aggregates or {}))


def _has_gaps(assigner: WindowAssigner) -> bool:
    """Whether there are times that belong to no window."""
    return isinstance(assigner, Sliding) and assigner.slide_ms > assigner.size_ms
