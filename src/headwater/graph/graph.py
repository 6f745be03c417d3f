"""The job graph: nodes in the order they were added, which is a topological order, and what follows what."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from headwater.connectors.contract import Sink, Source
from headwater.data.schema import Schema
from headwater.errors import GraphError
from headwater.functions import OutputTag
from headwater.graph.changelog import APPEND_ONLY, Changelog, together
from headwater.graph.edges import FORWARD, LEFT, Edge
from headwater.graph.flow import Flow
from headwater.graph.nodes import Node, SinkNode, SourceNode

_UID = re.compile(r"[A-Za-z0-9_.-]{1,100}")


class Graph:
    """A growing acyclic graph. A node can only refer to nodes that are already in it."""

    def __init__(self, name: str, state_ttl_ms: int | None = None) -> None:
        """With `state_ttl_ms` steps that are added forget what they keep by key, unless they say when themselves."""
        self.name = name
        self._state_ttl_ms = state_ttl_ms
        self._nodes: list[Node] = []

    def add(self, node: Node) -> Flow:
        """Take a node in, under the next id; gives the flow of what it emits."""
        if self._state_ttl_ms is not None:
            node = node.lasting(self._state_ttl_ms)
        node = dataclasses.replace(node, id=len(self._nodes))
        self._check_changelogs(node)
        self._nodes.append(node)
        return self._flow(node, None, node.schema)

    def side_output(self, flow: Flow, tag: OutputTag) -> Flow:
        """The rows that the step a flow comes from sends to a side output."""
        node = self.node(flow.origin)
        known = node.outputs.get(tag.name)
        if known is not None and known != tag.schema:
            raise GraphError.bad_argument(
                self.uid(node),
                f"has a side output {tag.name!r} of schema '{known}'",
                str(tag.schema),
                "use one OutputTag for it",
            )
        self._nodes[node.id] = dataclasses.replace(node, outputs={**node.outputs, tag.name: tag.schema})
        return self._flow(node, tag.name, tag.schema)

    def _flow(self, node: Node, tag: str | None, schema: Schema) -> Flow:
        heard = (self.node(node_id) for node_id in sorted(self._heard(node.id)))
        untimed = tuple(n.name for n in heard if isinstance(n, SourceNode) and n.is_untimed)
        edge = Edge(node.id, tag, FORWARD)
        return Flow(edges=(edge,), schema=schema, changelog=self.carried(edge), untimed=untimed)

    def carried(self, edge: Edge) -> Changelog:
        """What the rows on an edge do to the table they describe."""
        return APPEND_ONLY if edge.tag else self.node(edge.source).changelog

    def _check_changelogs(self, node: Node) -> None:
        """Refuse a step that would make something wrong of what its inputs carry."""
        for side in {edge.side for edge in node.inputs}:
            carried = together([self.carried(edge) for edge in node.inputs if edge.side == side])
            if not carried.fits(node.takes(side)):
                raise GraphError.takes_no_changes(node.name, carried.describe())

    def node(self, node_id: int) -> Node:
        return self._nodes[node_id]

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def set_uid(self, node_id: int, uid: object) -> None:
        """Give a step its lasting identity; state belongs to uids."""
        if not isinstance(uid, str) or not _UID.fullmatch(uid):
            raise GraphError.bad_uid(uid)
        for other in self._nodes:
            if other.uid == uid and other.id != node_id:
                raise GraphError.duplicate_uid(uid, self.title(other), self.title(self.node(node_id)))
        self._nodes[node_id] = dataclasses.replace(self._nodes[node_id], uid=uid)

    def copy(self) -> Graph:
        """The same nodes in a graph of their own."""
        return self.with_nodes(lambda node: node)

    def with_own_sources(self) -> Graph:
        """The same for one job: a source may hold what it remembers for the job that reads it."""
        return self.with_nodes(
            lambda node: (
                dataclasses.replace(node, source=copy.copy(node.source)) if isinstance(node, SourceNode) else node
            )
        )

    def with_nodes(self, changed: Callable[[Node], Node]) -> Graph:
        """The same graph with other nodes in the places of these, which read from and give to the same ones."""
        other = Graph(self.name, self._state_ttl_ms)
        other._nodes = [changed(node) for node in self._nodes]
        return other

    def between_ends(self, sources: Mapping[str, Source], sink: Sink) -> Graph:
        """The same steps, some of them reading other sources, by uid, and all that goes out going into one sink."""

        def changed(node: Node) -> Node:
            if isinstance(node, SourceNode) and self.uid(node) in sources:
                return dataclasses.replace(node, source=sources[self.uid(node)])
            return dataclasses.replace(node, sink=sink) if isinstance(node, SinkNode) else node

        return self.with_nodes(changed)

    def above(self, node_ids: Iterable[int]) -> set[int]:
        """These nodes and all they read from."""
        wanted = set(node_ids)
        for node in reversed(self._nodes):
            if node.id in wanted:
                wanted.update(edge.source for edge in node.inputs)
        return wanted

    def _heard(self, node_id: int) -> set[int]:
        """This node and those whose watermarks come to it."""
        heard = {node_id}
        for node in reversed(self._nodes):
            if node.id in heard and not node.sets_time:
                heard.update(edge.source for edge in node.inputs)
        return heard

    def between(self, first: Node, last: Node) -> list[Node]:
        """The nodes that rows pass on any way from one node to another, both included; none if there is no way."""
        below = {first.id}
        for node in self._nodes:
            if any(edge.source in below for edge in node.inputs):
                below.add(node.id)
        wanted = below & self.above([last.id]) if last.id in below else set()
        return [node for node in self._nodes if node.id in wanted]

    def upstream_of(self, node_id: int) -> Graph:
        """A graph with this node and what it reads from, under the same ids' order."""
        wanted = self.above([node_id])
        part = Graph(self.name, self._state_ttl_ms)
        new_ids: dict[int, int] = {}
        for node in self._nodes:
            if node.id in wanted:
                inputs = tuple(dataclasses.replace(e, source=new_ids[e.source]) for e in node.inputs)
                new_ids[node.id] = part.add(dataclasses.replace(node, inputs=inputs)).origin
        return part

    def uid(self, node: Node) -> str:
        """The step's uid, given or by default: its name, numbered from the second of that name on where nothing is stored."""
        if node.uid:
            return node.uid
        if node.is_remembered:
            return node.name
        taken = {n.uid for n in self._nodes if n.uid} | {n.name for n in self._nodes if n.is_remembered}
        earlier = sum(1 for n in self._nodes[: node.id] if not n.uid and not n.is_remembered and n.name == node.name)
        candidate = node.name if earlier == 0 else f"{node.name}-{earlier + 1}"
        while candidate in taken:
            candidate += "-x"
        return candidate

    def consumers(self, node: Node) -> list[tuple[Node, Edge]]:
        """Every edge that leaves the node, in the order the consuming steps were added."""
        return [(other, edge) for other in self._nodes for edge in other.inputs if edge.source == node.id]

    def edge_schema(self, edge: Edge) -> Schema:
        """The schema of the rows on an edge."""
        origin = self._nodes[edge.source]
        return origin.outputs[edge.tag] if edge.tag else origin.schema

    def input_schema(self, node: Node, side: int = LEFT) -> Schema:
        """The schema of one of a step's inputs; all its edges agree."""
        return self.edge_schema(next(edge for edge in node.inputs if edge.side == side))

    def input_schemas(self, node: Node) -> list[Schema]:
        """The schemas of a step's inputs, left first."""
        return [self.input_schema(node, side) for side in sorted({edge.side for edge in node.inputs})]

    def title(self, node: Node) -> str:
        return f"{node.operation} {node.name!r} (step {node.id})"

    def validate(self) -> None:
        """Refuse a graph that must not run: no sink, a step without input, or one uid for two steps."""
        if not any(node.is_sink for node in self._nodes):
            raise GraphError.nothing_to_run(self.name)
        seen: dict[str, Node] = {}
        for node in self._nodes:
            if not node.inputs and not node.is_source:
                raise GraphError.no_input(self.title(node))
            uid = self.uid(node)
            if uid in seen:
                raise GraphError.duplicate_uid(uid, self.title(seen[uid]), self.title(node))
            seen[uid] = node
