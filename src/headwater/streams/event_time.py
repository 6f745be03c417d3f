"""Event time that cannot move: a warning when a job starts whose steps would wait for it for ever."""

from __future__ import annotations

import warnings

from headwater.graph.graph import Graph
from headwater.graph.nodes import Node, SourceNode


class EventTimeWarning(UserWarning):
    """A step of a job without end waits for event time, and a source that it reads from has no watermarks."""


def warn_of_event_time(graph: Graph) -> None:
    """Warn of every step that waits for event time behind a source without any that does not end."""
    for node in graph:
        source = _without_watermarks(graph, node) if node.waits_for_event_time else None
        if source is not None:
            warnings.warn(
                f"step {graph.uid(node)!r} waits for event time, which never moves: source {graph.uid(source)!r} has no "
                "watermarks and no end; give it watermarks, as hw.Watermarks.bounded('ts', '5 s'), or use processing time",
                EventTimeWarning,
                stacklevel=4,
            )


def _without_watermarks(graph: Graph, node: Node) -> Node | None:
    """A source above a step that keeps event time where it is."""
    if isinstance(node, SourceNode):
        return node if node.watermarks.column is None and not node.source.bounded else None
    if node.sets_time:
        return None
    above = (_without_watermarks(graph, graph.node(edge.source)) for edge in node.inputs)
    return next((source for source in above if source is not None), None)
