"""A plan as text: the levels, what enters them, and what is fused behind."""

from __future__ import annotations

from headwater.graph.nodes import Node
from headwater.plan.levels import MEMORY, JobPlan


def explain(plan: JobPlan) -> str:
    """One block per level: entries with their state, and below each the steps fused into it."""
    lines = [f"job {plan.graph.name}: {plan.depth} level(s), parallelism {plan.parallelism}, {plan.groups} key groups"]
    if plan.state_backend != MEMORY:
        lines.append(f"state of keyed steps: {plan.state_backend}")
    lines.append("level 0: sources")
    for source in plan.sources():
        _explain_from(plan, source, lines)
    for level in range(1, plan.depth + 1):
        lines.append(f"level {level}: one call per subtask and epoch")
        for node in plan.entries(level):
            _explain_from(plan, node, lines)
    return "\n".join(lines)


def _explain_from(plan: JobPlan, node: Node, lines: list[str]) -> None:
    graph = plan.graph
    moved = sorted({edge.exchange.describe() for edge in node.inputs if edge.exchange.moves})
    states = [f"{s.name}: {s.kind}" for s in getattr(node, "states", ())]
    states += [f"{s.name}: broadcast" for s in getattr(node, "broadcast_states", ())]
    line = f"  {node.operation} {graph.uid(node)}"
    line += f" by {', '.join(moved)}" if moved else ""
    line += f" keeps {', '.join(states)}" if states else ""
    lines.append(line)
    _explain_consumers(plan, node, lines, "    ")


def _explain_consumers(plan: JobPlan, node: Node, lines: list[str], indent: str) -> None:
    graph = plan.graph
    for consumer, edge in graph.consumers(node):
        tag = f"[{edge.tag}] " if edge.tag else ""
        if edge.exchange.moves:
            level = plan.level_of_entry[consumer.id]
            lines.append(f"{indent}-> {tag}{edge.exchange.describe()} to {graph.uid(consumer)} (level {level})")
        else:
            lines.append(f"{indent}-> {tag}{consumer.operation} {graph.uid(consumer)}")
            _explain_consumers(plan, consumer, lines, indent + "  ")
