"""A plan as text: the levels, what enters them, what is fused behind, and what was chosen for each step."""

from __future__ import annotations

from collections.abc import Iterator

from headwater.graph.nodes import Node
from headwater.plan.choices import IN_MEMORY
from headwater.plan.plan import JobPlan

_MANY_LEVELS = 5
"""From so many levels on their cost is said."""
_LEVEL_S, _FIRST_LEVEL_S = 0.2, 2
"""What a level adds to an epoch on Spark, and to the first, measured with 20 of them on two cores."""


def explain(plan: JobPlan) -> str:
    """One block per level: entries with their state and how they run, and below each the steps fused into it."""
    lines = [f"job {plan.graph.name}: {plan.depth} level(s), parallelism {plan.parallelism}, {plan.groups} key groups"]
    if plan.depth >= _MANY_LEVELS:
        lines.append(
            f"on Spark each level adds about {_LEVEL_S} s to an epoch and {_FIRST_LEVEL_S} s to the first: here "
            f"{plan.depth * _LEVEL_S:.0f} s and {plan.depth * _FIRST_LEVEL_S} s; steps share a level unless one reads "
            "what another gives, so fewer exchanges one behind the other make fewer levels"
        )
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
    _explain_consumers(plan, node, lines)


def _explain_consumers(plan: JobPlan, node: Node, lines: list[str]) -> None:
    """What is fused behind a step, depth first; what is behind a step that several paths lead to stands there once."""
    graph = plan.graph
    shown = set()
    waiting = [(consumer, edge, 2) for consumer, edge in reversed(graph.consumers(node))]
    while waiting:
        consumer, edge, depth = waiting.pop()
        indent, tag = "  " * depth, f"[{edge.tag}] " if edge.tag else ""
        if edge.exchange.moves:
            level = plan.of(consumer).level
            lines.append(f"{indent}-> {tag}{edge.exchange.describe()} to {graph.uid(consumer)} (level {level})")
        elif consumer.id in shown:
            lines.append(f"{indent}-> {tag}{consumer.operation} {graph.uid(consumer)}, as above")
        else:
            shown.add(consumer.id)
            lines.append(f"{indent}-> {tag}{consumer.operation} {graph.uid(consumer)}{_chosen(plan, consumer)}")
            behind = reversed(graph.consumers(consumer))
            waiting += [(further, one, depth + 1) for further, one in behind]


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
