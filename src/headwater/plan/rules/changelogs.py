"""Changelogs: upserts are completed for those who must know what goes, and sinks are shown what rows do."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.graph.changelog import ChangelogMode
from headwater.graph.edges import Edge
from headwater.graph.graph import Graph
from headwater.graph.nodes import AsChangelogNode, Node, NormalizeNode, SinkNode, WithRowKindNode

if TYPE_CHECKING:
    from headwater.plan.plan import JobPlan

UPSERT = ChangelogMode.UPSERT


def fit_changelogs(plan: JobPlan) -> None:
    """Put in what makes changelogs fit those who read them; a graph in which that is done stays as it is."""
    plan.graph = _fitted(plan.graph)


def _fitted(graph: Graph) -> Graph:
    """The graph with what is put in; the same one if that is nothing."""
    completed = _completed(graph)
    shown = {node.id for node in graph if isinstance(node, SinkNode) and _gets_changes(graph, node)}
    if not completed and not shown:
        return graph
    versions = _read_as_versions(graph)
    whole = Graph(graph.name)
    places: dict[int, int] = {}
    """Where the main output of each step is now."""
    for node in graph:
        edges = tuple(_moved(edge, places) for edge in node.inputs)
        kept = replace(node, inputs=edges, uid=graph.uid(node))
        if node.id in shown:
            kept = _told(whole, kept)
        elif node.id in completed and not isinstance(node, AsChangelogNode):
            kept = replace(kept, changelog=node.changelog.retracting())
        flow = whole.add(kept)
        if node.id in completed and isinstance(node, AsChangelogNode):
            name = f"{kept.uid}.normalized"
            tells_versions = node.id in versions
            flow = whole.add(replace(NormalizeNode.of(flow, tells_versions=tells_versions, name=name), uid=name))
        places[node.id] = flow.origin
    return whole


def _completed(graph: Graph) -> set[int]:
    """The steps whose upserts somebody reads who must know what goes, by whatever steps pass them on."""
    found: set[int] = set()
    for node in reversed(list(graph)):
        sides: dict[int, list[Edge]] = defaultdict(list)
        for edge in node.inputs:
            sides[edge.side].append(edge)
        for side, edges in sides.items():
            tells_all = len(edges) > 1 or UPSERT not in node.takes(side) or node.id in found
            found |= {edge.source for edge in edges if tells_all and graph.carried(edge).mode is UPSERT}
    return found


def _read_as_versions(graph: Graph) -> set[int]:
    """The steps whose rows somebody reads as versions of their keys, by whatever steps pass them on."""
    found: set[int] = set()
    for node in reversed(list(graph)):
        passes_on = node.id in found and not node.is_stateful
        found |= {edge.source for edge in node.inputs if passes_on or node.reads_versions(edge.side)}
    return found


def _gets_changes(graph: Graph, node: Node) -> bool:
    return not all(graph.carried(edge).is_append_only for edge in node.inputs)


def _told(graph: Graph, sink: Node) -> Node:
    """A sink behind a step that puts what rows do into their last column."""
    uid = f"{sink.uid}.changes"
    flow = graph.add(WithRowKindNode(name=uid, uid=uid, inputs=sink.inputs, schema=sink.schema))
    return replace(sink, inputs=flow.edges)


def _moved(edge: Edge, places: dict[int, int]) -> Edge:
    return replace(edge, source=places[edge.source])
