"""How often rows take effect: for each source and sink of a graph, from what connectors and steps say of themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headwater.connectors.contract import Guarantee
from headwater.graph.graph import Graph
from headwater.graph.nodes import Node, SinkNode, SourceNode

_PUBLISHED_AGAIN = {
    Guarantee.EXACTLY_ONCE: "publishing an epoch again changes nothing",
    Guarantee.EFFECTIVELY_ONCE: "an epoch that is published again is written over itself",
    Guarantee.AT_LEAST_ONCE: "an epoch that is being published when the job fails is published again",
    Guarantee.AT_MOST_ONCE: "an epoch that is being published when the job fails may be missing",
    Guarantee.NONE: "an epoch that is being published when the job fails may be missing or published again",
}
_EARLY = "it gets an epoch before the epoch is committed, and again when it fails and is computed again"
_GONE = "what is published is gone with the process, and a new one does not publish it again"
_READ_AGAIN = "its rows can be read again"
_LOST = "its rows cannot be read again: those of an epoch that fails are lost"
_OTHER_ANSWERS = (
    "asks outside the job: an epoch that is computed again may get other answers; "
    "state and output hold those of one computation, once"
)
_ROUTED = "where rows are routed by an answer, an executor that dies in the middle of an epoch can lose or double some"

_LOSING = {Guarantee.AT_MOST_ONCE, Guarantee.NONE}
_DOUBLING = {Guarantee.AT_LEAST_ONCE, Guarantee.NONE}


@dataclass(frozen=True)
class PathGuarantee:
    """What holds for the rows of a source in a sink that they reach, on whatever ways, and why."""

    source: str
    """The uid of the source."""
    sink: str
    """The uid of the sink."""
    guarantee: Guarantee
    reasons: tuple[str, ...]
    """What the source, the steps in between that matter, and the sink add to it, in this order."""


def guarantees(graph: Graph, *, outlives_process: bool, publishes_early: bool = False) -> list[PathGuarantee]:
    """One for each source and each sink that its rows reach, in the order of the graph.

    `outlives_process` tells whether a new process goes on where one that died has been; `publishes_early`, whether sinks
    get an epoch before it is committed.
    """
    sources = [node for node in graph if isinstance(node, SourceNode)]
    sinks = [node for node in graph if isinstance(node, SinkNode)]
    return [
        _path(graph, source, sink, outlives_process=outlives_process, publishes_early=publishes_early)
        for source in sources
        for sink in sinks
        if graph.between(source, sink)
    ]


def explain_guarantees(job: str, after_failure: str, paths: Iterable[PathGuarantee]) -> str:
    """A line for each path, and below it its reasons."""
    lines = [f"job {job}", after_failure]
    for path in paths:
        lines.append(f"{path.source} -> {path.sink}: {path.guarantee}")
        lines += [f"  {reason}" for reason in path.reasons]
    return "\n".join(lines)


def _path(
    graph: Graph, source: SourceNode, sink: SinkNode, *, outlives_process: bool, publishes_early: bool
) -> PathGuarantee:
    reader, writer = source.source, sink.sink
    is_gone = outlives_process and not writer.outlives_process
    loses = not reader.replayable or is_gone or writer.guarantee in _LOSING
    doubles = publishes_early or writer.guarantee in _DOUBLING
    reasons = [f"source {graph.uid(source)} ({reader.describe()}): {_READ_AGAIN if reader.replayable else _LOST}"]
    for node in graph.between(source, sink):
        if node.asks_outside:
            caveats = [_OTHER_ANSWERS] + [_ROUTED] * _is_routed(graph, node, sink)
            reasons += [f"step {graph.uid(node)} ({node.operation}): {caveat}" for caveat in caveats]
    published = [_EARLY if publishes_early else _PUBLISHED_AGAIN[writer.guarantee], *([_GONE] if is_gone else [])]
    reasons.append(f"sink {graph.uid(sink)} ({writer.describe()}): {'; '.join(published)}")
    guarantee = _combined(writer.guarantee, loses=loses, doubles=doubles)
    return PathGuarantee(graph.uid(source), graph.uid(sink), guarantee, tuple(reasons))


def _combined(published: Guarantee, *, loses: bool, doubles: bool) -> Guarantee:
    if loses:
        return Guarantee.NONE if doubles else Guarantee.AT_MOST_ONCE
    return Guarantee.AT_LEAST_ONCE if doubles else published


def _is_routed(graph: Graph, step: Node, sink: Node) -> bool:
    """Whether rows move between subtasks on a way from a step to a sink."""
    passed = graph.between(step, sink)
    ids = {node.id for node in passed}
    return any(edge.exchange.moves for node in passed if node is not step for edge in node.inputs if edge.source in ids)
