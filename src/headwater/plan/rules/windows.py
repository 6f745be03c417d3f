"""How windows are computed: by slices, count, runs or bursts where that can be, which is by columns; else by element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.aggregates.declared import is_in_any_order
from headwater.graph.nodes import WindowJoinNode, WindowNode
from headwater.graph.nodes.windows import BY_BURSTS, BY_COUNT, BY_ELEMENT, BY_RUNS, BY_SLICES
from headwater.windows.assigners import Global, InProcessingTime, Session, SlicedAssigner, assigns_as
from headwater.windows.triggers import EventTimeTrigger

if TYPE_CHECKING:
    from headwater.plan.plan import JobPlan


def choose_ways(plan: JobPlan) -> None:
    """Choose how each window is computed. Pairs by slices are a node of their own, since they keep something else."""
    for node in plan.graph:
        if isinstance(node, WindowJoinNode):
            plan.choose(node, way=BY_SLICES)
        elif isinstance(node, WindowNode):
            plan.choose(node, way=way_of(node))


def way_of(node: WindowNode) -> str:
    """How a window step is computed."""
    if node.is_counted:
        return BY_COUNT
    if _is_sliced(node):
        return BY_SLICES
    if node.aggregates is None or node.evictor is not None or node.process is not None or not node.trigger.takes_rows():
        return BY_ELEMENT
    assigner = node.assigner.inner if isinstance(node.assigner, InProcessingTime) else node.assigner
    if assigns_as(assigner, SlicedAssigner) or assigns_as(assigner, Global):
        return BY_RUNS
    return BY_BURSTS if assigns_as(assigner, Session) and node.trigger.waits_for_time else BY_ELEMENT


def _is_sliced(node: WindowNode) -> bool:
    """Whether a window step can be computed by slices, which do not keep the order of arrival among each other."""
    if not assigns_as(node.assigner, SlicedAssigner) or node.aggregates is None:
        return False
    return (
        node.assigner.has_wide_slices
        and (node.assigner.slices == 1 or is_in_any_order(node.aggregates))
        and type(node.trigger) is EventTimeTrigger
        and node.evictor is None
        and node.process is None
        and node.panes.mode == "accumulating"
        and not node.panes.has_info
        and not node.panes.has_empty
    )
