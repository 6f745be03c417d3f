"""Computations one behind the other become one: rows go through DuckDB once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.graph.graph import Graph
from headwater.graph.nodes import ComputeNode, Node

if TYPE_CHECKING:
    from headwater.plan.plan import JobPlan


def merge_computations(plan: JobPlan) -> None:
    """Merge every computation into the only step that reads it, if that is one too."""
    plan.graph = _merged(plan.graph)


def _merged(graph: Graph) -> Graph:
    inner = {node.id for node in graph if _reader(graph, node) is not None}
    if not inner:
        return graph
    whole = Graph(graph.name)
    places: dict[int, int] = {}
    """Where the output of each step is now."""
    waiting: dict[int, ComputeNode] = {}
    """Computations that go into their readers."""
    for node in graph:
        kept: Node = replace(node, uid=graph.uid(node))
        before = waiting.get(node.inputs[0].source) if len(node.inputs) == 1 else None
        if before is not None and isinstance(kept, ComputeNode):
            kept = kept.behind(before)
        if node.id in inner:
            assert isinstance(kept, ComputeNode)
            waiting[node.id] = kept
            continue
        edges = tuple(replace(edge, source=places[edge.source]) for edge in kept.inputs)
        places[node.id] = whole.add(replace(kept, inputs=edges)).origin
    return whole


def _reader(graph: Graph, node: Node) -> ComputeNode | None:
    """The only step that reads a computation, where rows stay in place and keep their time."""
    if not isinstance(node, ComputeNode) or node.timestamp is not None:
        return None
    readers = graph.consumers(node)
    if len(readers) != 1:
        return None
    reader, edge = readers[0]
    is_alone = len(reader.inputs) == 1 and not edge.exchange.moves and edge.tag is None
    return reader if isinstance(reader, ComputeNode) and is_alone else None
