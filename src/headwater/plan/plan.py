"""The plan of a job: the graph, and what rules have chosen for each step."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.budgets import Budget
from headwater.connectors.contract import Sink
from headwater.graph.graph import Graph
from headwater.graph.nodes import Node, SinkNode, SourceNode
from headwater.plan.choices import IN_MEMORY, STATE_MEMORY_BYTES, Chosen
from headwater.plan.rules.budgets import check_budgets
from headwater.plan.rules.changelogs import fit_changelogs
from headwater.plan.rules.combiner import choose_combiners
from headwater.plan.rules.computations import merge_computations
from headwater.plan.rules.fusion import fuse_steps
from headwater.plan.rules.levels import assign_levels
from headwater.plan.rules.publication import choose_publication
from headwater.plan.rules.reading import read_less
from headwater.plan.rules.state import place_state
from headwater.plan.rules.validation import validate_graph
from headwater.plan.rules.windows import choose_ways

_NOTHING = Chosen()

Feeder = tuple[str, str | None]
"""The uid of a source or entry, and that of the step that has set event time anew on the way from there, if one has."""


@dataclass
class JobPlan:
    """What the engines run. Rules fill it in, in the order of RULES."""

    graph: Graph
    parallelism: int
    groups: int
    state_backend: str = IN_MEMORY
    """Where the working state is to live of the steps that leave it to a backend."""
    state_memory_bytes: int = STATE_MEMORY_BYTES
    """What a worker may hold in memory of state that is on disk."""
    publishes_early: bool = False
    """Whether sinks get an epoch before it is committed, and so perhaps again: the job is at-least-once."""
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    """How much state steps may keep, by uid."""
    keeps_unread: bool = False
    """Whether rows for side outputs that nobody reads are kept for whoever runs the plan by hand."""
    chosen: dict[int, Chosen] = field(default_factory=dict)
    """What was chosen, by node id."""

    def of(self, node: Node) -> Chosen:
        """What was chosen for a step."""
        return self.chosen.get(node.id, _NOTHING)

    def choose(self, node: Node, **choices: Any) -> None:
        """Note what a rule has chosen for a step."""
        self.chosen[node.id] = dataclasses.replace(self.of(node), **choices)

    @property
    def level_of_entry(self) -> dict[int, int]:
        """For each entry's node id, its level, counted from 1; sources are level 0."""
        return {number: chosen.level for number, chosen in sorted(self.chosen.items()) if chosen.level is not None}

    @property
    def depth(self) -> int:
        return max(self.level_of_entry.values(), default=0)

    def entries(self, level: int) -> list[Node]:
        """The entries of a level in the order of the graph."""
        return [self.graph.node(n) for n, at in self.level_of_entry.items() if at == level]

    def feeders(self, node: Node) -> set[Feeder]:
        """What an entry hears from, past the steps that are fused into it."""
        behind: dict[int, set[Feeder]] = {}
        """What those hear from that read a step's output."""
        for above in self.graph:
            found = {feeder for e in above.inputs if not e.exchange.moves for feeder in behind[e.source]}
            if above.is_source or self.of(above).level is not None:
                found.add((self.graph.uid(above), None))
            behind[above.id] = {(place, self.graph.uid(above)) for place, _ in found} if above.sets_time else found
        return {feeder for edge in node.inputs for feeder in behind[edge.source]}

    def kept_by_step(self) -> dict[str, dict[str, Any]]:
        """What each entry is and keeps, in words, by its uid; one that is not stateful keeps nothing but event time."""
        entries = (self.graph.node(node) for node in self.level_of_entry)
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

RULES: tuple[Rule, ...] = (
    validate_graph,
    fit_changelogs,  # before anything is chosen for a node by its id, since it may put in more nodes
    read_less,  # as the one before
    merge_computations,  # as both before
    assign_levels,
    fuse_steps,
    choose_ways,
    choose_combiners,
    place_state,
    check_budgets,
    choose_publication,
)
"""Each is a function in a file of its own, and may rely on what those before it have chosen."""


def plan_job(
    graph: Graph,
    parallelism: int,
    groups: int,
    state_backend: str = IN_MEMORY,
    *,
    state_memory_bytes: int = STATE_MEMORY_BYTES,
    publishes_early: bool = False,
    budgets: Mapping[str, Budget] | None = None,
) -> JobPlan:
    """Plan a graph by applying every rule in turn."""
    plan = JobPlan(graph, parallelism, groups, state_backend, state_memory_bytes, publishes_early, budgets or {})
    for rule in RULES:
        rule(plan)
    return plan
