"""A job graph as text, one line a step."""

from __future__ import annotations

from headwater.graph.graph import Graph


def describe(graph: Graph) -> str:
    """The steps in order, each with where its rows come from and its schema."""
    lines = [f"job {graph.name}"]
    for node in graph:
        origins = []
        for edge in node.inputs:
            origin = graph.uid(graph.node(edge.source)) + (f"[{edge.tag}]" if edge.tag else "")
            origins.append(origin if not edge.exchange.moves else f"{origin} by {edge.exchange.describe()}")
        line = f"  {node.id:>2} {node.operation} {graph.uid(node)}"
        if origins:
            line += " <- " + " + ".join(origins)
        if not node.is_sink:
            line += f" : {node.schema}"
        if not node.changelog.is_append_only:
            line += f" ({node.changelog.describe()})"
        lines.append(line)
    return "\n".join(lines)
