"""The plan of a job: its steps arranged in levels, so that any acyclic graph runs as one linear query.

A step whose input moves between subtasks is the entry of a level: one deeper than the deepest step it reads from. Steps
that are not entries are fused into whatever emits into them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headwater.connectors.contract import Sink
from headwater.graph.graph import Graph
from headwater.graph.nodes import Node, SinkNode, SourceNode

MEMORY, DISK = "memory", "disk"
"""The state backends."""


@dataclass
class JobPlan:
    """What the engines run. Rules fill it in, in the order of RULES."""

    graph: Graph
    parallelism: int
    groups: int
    state_backend: str = MEMORY
    """Where the working state of keyed steps lives; what is stored for recovery is the same."""
    keeps_unread: bool = False
    """Whether rows for side outputs that nobody reads are kept for whoever runs the plan by hand."""
    level_of_entry: dict[int, int] = field(default_factory=dict)
    """For each entry's node id, its level, counted from 1; sources are level 0."""

    @property
    def depth(self) -> int:
        return max(self.level_of_entry.values(), default=0)

    def entries(self, level: int) -> list[Node]:
        """The entries of a level in the order of the graph."""
        return [self.graph.node(n) for n, at in sorted(self.level_of_entry.items()) if at == level]

    def feeders(self, node: Node) -> set[str]:
        """The uids of the entries and sources that an entry hears from, past the steps that are fused into them."""
        found: set[str] = set()
        for edge in node.inputs:
            origin = self.graph.node(edge.source)
            is_place = origin.is_source or origin.id in self.level_of_entry
            found |= {self.graph.uid(origin)} if is_place else self.feeders(origin)
        return found

    def kept_by_step(self) -> dict[str, dict[str, Any]]:
        """What each entry is and keeps, in words, by its uid; one that is not stateful keeps nothing but event time."""
        entries = (self.graph.node(node) for node in sorted(self.level_of_entry))
        words = {
            self.graph.uid(node): {"operation": node.operation, **node.kept()} if node.is_stateful else {}
            for node in entries
        }
        return json.loads(json.dumps(words))  # type: ignore[no-any-return]  # as it is read back

    def sources(self) -> list[SourceNode]:
        return [node for node in self.graph if isinstance(node, SourceNode)]

    def source(self, node_id: int) -> SourceNode:
        node = self.graph.node(node_id)
        assert isinstance(node, SourceNode)
        return node

    def sinks_by_uid(self) -> dict[str, Sink]:
        return {self.graph.uid(node): node.sink for node in self.sinks()}

    def sinks(self) -> list[SinkNode]:
        return [node for node in self.graph if isinstance(node, SinkNode)]


Rule = Callable[[JobPlan], None]


def validate_graph(plan: JobPlan) -> None:
    """Refuse what must not run."""
    plan.graph.validate()


def assign_levels(plan: JobPlan) -> None:
    """Put every entry one level below the deepest step it reads from."""
    deepest: dict[int, int] = {}
    for node in plan.graph:
        at = 0
        for edge in node.inputs:
            origin = deepest[edge.source]
            if edge.exchange.moves:
                plan.level_of_entry[node.id] = max(plan.level_of_entry.get(node.id, 0), origin + 1)
            else:
                at = max(at, origin)
        deepest[node.id] = max(at, plan.level_of_entry.get(node.id, 0))


RULES: tuple[Rule, ...] = (validate_graph, assign_levels)


def plan_job(graph: Graph, parallelism: int, groups: int, state_backend: str = MEMORY) -> JobPlan:
    """Plan a graph by applying every rule in turn."""
    plan = JobPlan(graph, parallelism, groups, state_backend)
    for rule in RULES:
        rule(plan)
    return plan
