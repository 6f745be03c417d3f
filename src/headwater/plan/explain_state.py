"""A plan's state as text: for each step what is kept, per what, until when, and what can be done where it grows."""

from __future__ import annotations

from headwater.graph.holdings import Holding, holdings
from headwater.graph.nodes import Node
from headwater.plan.choices import IN_MEMORY
from headwater.plan.plan import JobPlan


def explain_state(plan: JobPlan) -> str:
    """One block for each step that keeps something."""
    lines = [f"job {plan.graph.name}"]
    for node in plan.graph:
        kept = holdings(node)
        if kept:
            lines += [f"{plan.graph.uid(node)}: {node.operation}{_place(plan, node)}", *_lines(kept)]
    if len(lines) == 1:
        return f"{lines[0]} keeps no state"
    growing = [plan.graph.uid(node) for node in plan.graph if not all(held.is_bounded for held in holdings(node))]
    ends = f"grows for ever: {', '.join(growing)}" if growing else "all of it is bounded"
    return "\n".join([*lines, ends])


def _place(plan: JobPlan, node: Node) -> str:
    state = plan.of(node).state
    return "" if state is None else ", in memory" if state == IN_MEMORY else f", on {state}"


def _lines(kept: tuple[Holding, ...]) -> list[str]:
    lines = []
    for held in kept:
        size = f", about {held.entry_bytes} bytes each" if held.entry_bytes else ""
        lines.append(f"  keeps {held.what}{size}")
        lines.append(f"    per   {held.per}")
        lines.append(f"    until {held.until}")
        lines += [f"    way out: {way}" for way in held.ways_out if not held.is_bounded]
    return lines
