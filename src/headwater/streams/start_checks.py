"""What a graph shows before it runs: windows that no event time would reach, and outputs that two sinks would share."""

from __future__ import annotations

from headwater.errors import GraphError
from headwater.graph.graph import Graph
from headwater.graph.nodes import Node, SinkNode, SourceNode


def check_event_time(graph: Graph) -> None:
    """Refuse windows and joins in event time over rows that have none, before the first row does."""
    for node in graph:
        if node.needs_times:
            for edge in node.inputs:
                source = _timeless(graph, graph.node(edge.source))
                if source is not None:
                    raise GraphError.needs_event_time(graph.uid(node), graph.uid(source), node.without_event_time)


def _timeless(graph: Graph, node: Node) -> Node | None:
    """A source whose rows come out of a step without a time; None where they have one, or may get one on the way."""
    if isinstance(node, SourceNode):
        return node if node.watermarks.column is None else None
    if node.sets_time or node.gives_times:
        return None
    found = (_timeless(graph, graph.node(edge.source)) for edge in node.inputs)
    return next((source for source in found if source is not None), None)


def check_outputs(graph: Graph) -> None:
    """Refuse two sinks that would write to one place, of which each thinks that it is its own."""
    writers: dict[str, Node] = {}
    for node in graph:
        if isinstance(node, SinkNode) and (output := node.sink.output) is not None:
            other = writers.setdefault(output, node)
            if other is not node:
                raise GraphError.shared_output(graph.uid(other), graph.uid(node), output)
