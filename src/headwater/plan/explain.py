"""A plan as text: the levels, what enters them, what is fused behind, and what was chosen for each step."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.graph.nodes import Node
from headwater.plan.choices import IN_MEMORY
from headwater.plan.plan import JobPlan


def explain(plan: JobPlan) -> str:
    """One block per level: entries with their state and how they run, and below each the steps fused into it."""
    lines = [f"job {plan.graph.name}: {plan.depth} level(s), parallelism {plan.parallelism}, {plan.groups} key groups"]
    lines.append("level 0: sources")
    for source in plan.sources():
        _explain_from(plan, source, lines)
    for level in range(1, plan.depth + 1):
        lines.append(f"level {level}: one call per subtask and epoch")
        for node in plan.entries(level):
            _explain_from(plan, node, lines)
    return "\n".join(lines)


def _explain_from(plan: JobPlan, node: Node, lines: list[str]) -> None:
    moved = sorted({edge.exchange.describe() for edge in node.inputs if edge.exchange.moves})
    states = [f"{s.name}: {s.kind}" for s in getattr(node, "states", ())]
    states += [f"{s.name}: broadcast" for s in getattr(node, "broadcast_states", ())]
    line = f"  {node.operation} {plan.graph.uid(node)}"
    line += f" by {', '.join(moved)}" if moved else ""
    line += f" keeps {', '.join(states)}" if states else ""
    lines.append(line + _chosen(plan, node))
    _explain_consumers(plan, node, lines, "    ")


def _explain_consumers(plan: JobPlan, node: Node, lines: list[str], indent: str) -> None:
    graph = plan.graph
    for consumer, edge in graph.consumers(node):
        tag = f"[{edge.tag}] " if edge.tag else ""
        if edge.exchange.moves:
            level = plan.of(consumer).level
            lines.append(f"{indent}-> {tag}{edge.exchange.describe()} to {graph.uid(consumer)} (level {level})")
        else:
            lines.append(f"{indent}-> {tag}{consumer.operation} {graph.uid(consumer)}{_chosen(plan, consumer)}")
            _explain_consumers(plan, consumer, lines, indent + "  ")


def _chosen(plan: JobPlan, node: Node) -> str:
    words = list(_words(plan, node))
    return f"; {', '.join(words)}" if words else ""


def _words(plan: JobPlan, node: Node) -> Iterator[str]:
    chosen = plan.of(node)
    if not node.changelog.is_append_only:
        yield f"gives a changelog ({node.changelog.describe()})"
    if chosen.way is not None:
        yield f"computed {chosen.way}"
    if chosen.is_combined:
        yield "rows combined on the way"
    if chosen.state is not None:
        yield "state in memory" if chosen.state == IN_MEMORY else f"state on {chosen.state}"
    if chosen.published is not None:
        yield f"published {chosen.published}"


def explain_changes(plan: JobPlan) -> str:
    """For each step what its rows do to the table that they describe."""
    lines = [f"job {plan.graph.name}"]
    lines += [
        f"{plan.graph.uid(node)}: {node.changelog.describe()}{_why(plan, node)}"
        for node in plan.graph
        if not node.is_sink
    ]
    return "\n".join(lines)


def _why(plan: JobPlan, node: Node) -> str:
    """Where changes begin."""
    before = [plan.graph.carried(edge).is_append_only for edge in node.inputs]
    return ", changes begin here" if not node.changelog.is_append_only and all(before) else ""
