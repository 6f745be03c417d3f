"""What every step is: a frozen node, checked when made, asked for properties and never for its class."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from headwater.aggregates import Aggregate
from headwater.data.schema import Schema, type_ddl
from headwater.descriptors import StateDeclaration
from headwater.durations import duration_text
from headwater.expiry import Ttl
from headwater.graph.changelog import APPEND, APPEND_ONLY, Changelog, Modes
from headwater.graph.edges import Edge

TTLS = "ttls"
"""The fact of a step that says how long its states last. State fits also where it differs."""
FORGETS = "forgets"
"""The fact of a step of the library that says that times are kept besides. State may come from, and go to, one without."""
NOWHERE = -1
"""The id of a node that no graph has taken yet."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A step. Each of its inputs, one or two, is one or several edges (a union).

    Every kind has a constructor `of`, or several that begin with it, which takes the flows it reads and its settings,
    refuses what makes no sense, and derives the schema. `Graph.add` gives the node its id.
    """

    name: str
    inputs: tuple[Edge, ...]
    schema: Schema
    outputs: Mapping[str, Schema] = field(default_factory=dict)
    """The side outputs that somebody reads, or that the step is set to write, by tag."""
    changelog: Changelog = APPEND_ONLY
    """What the main output carries; side outputs are append-only."""
    id: int = NOWHERE
    uid: str | None = None

    operation: ClassVar[str] = ""
    is_source: ClassVar[bool] = False
    is_sink: ClassVar[bool] = False
    is_stateful: ClassVar[bool] = False
    uses_backend: ClassVar[bool] = False
    """Whether its state lives where the job's state backend keeps it; that of other steps is in memory."""
    sets_time: ClassVar[bool] = False
    """Whether event time is the step's own from here on, whatever watermarks come before it."""
    passes_times: ClassVar[bool] = False
    """Whether, though it has state, rows have no other times after it than they had before."""
    without_event_time: ClassVar[str] = "use hw.processing_time(...)"
    """What to do with it where rows have no event time."""
    waits_by_side: ClassVar[bool] = False
    """Whether event time is taken over two inputs, each as a whole, and not over all channels alike."""

    taken: ClassVar[Modes] = APPEND
    """What every input takes, unless `takes` says otherwise."""

    def takes(self, side: int) -> Modes:
        """What an input takes; the graph refuses to add a step to anything else."""
        return self.taken

    def reads_versions(self, side: int) -> bool:
        """Whether an input must be told every row that a key had, also those that were replaced within an epoch."""
        return False

    @property
    def is_remembered(self) -> bool:
        """Whether something is stored under the step's uid, so that the uid must not depend on other steps."""
        return self.is_stateful or self.is_source or self.sets_time

    def lasting(self, ttl_ms: int) -> Self:
        """The step with a ttl for all that it keeps by key, where it can have one and was given none."""
        return self

    def kept(self) -> dict[str, Any]:
        """What a stateful step keeps, in words; state fits as long as these are the same."""
        return {}

    @property
    def is_silent(self) -> bool:
        """Whether the step never gives a result."""
        return False

    @property
    def grows(self) -> str | None:
        """What the step keeps for ever, in words, so that its state grows with its input."""
        return None

    @property
    def needs_times(self) -> bool:
        """Whether every row must have a time of its own."""
        return False

    @property
    def gives_times(self) -> bool:
        """Whether rows may have a time after it that they did not have before."""
        return self.is_stateful and not self.passes_times

    @property
    def waits_for_event_time(self) -> bool:
        """Whether, as far as can be seen, it does what it does only when event time moves."""
        return False

    @property
    def asks_outside(self) -> bool:
        """Whether what the step gives depends on something beyond its rows and its state, so that it may differ on replay."""
        return False


def declared(states: Sequence[StateDeclaration]) -> dict[str, list[str]]:
    """States in words. Whether one has a ttl, and by which clock, is part of it; how long it is may change."""
    return {
        state.name: [
            state.kind,
            *(type_ddl(dtype) for _, dtype in state.own_columns()),
            *([] if state.ttl is None else [f"with times of {state.ttl.clock} time"]),
        ]
        for state in states
    }


def ttls_of(states: Sequence[StateDeclaration]) -> dict[str, Any]:
    """How long states last, where they expire: a fact that state need not fit."""
    return ttls({state.name: None if state.ttl is None else state.ttl.describe() for state in states})


def ttls(by_state: Mapping[str, str | None]) -> dict[str, Any]:
    """The same of states that steps of the library keep."""
    found = {name: words for name, words in by_state.items() if words is not None}
    return {TTLS: found} if found else {}


def lasts(ttl_ms: int | None, since: str) -> str | None:
    """How long something lasts, in words, if it does not last for ever."""
    return None if ttl_ms is None else f"{duration_text(ttl_ms)} of processing time after {since}"


def forgets(state: str, ttl_ms: int | None, since: str = "the last row of its key") -> dict[str, Any]:
    """That a step forgets keys, if it does."""
    return {} if ttl_ms is None else {FORGETS: True, **ttls({state: lasts(ttl_ms, since)})}


def with_ttl(states: Sequence[StateDeclaration], ttl_ms: int) -> tuple[StateDeclaration, ...]:
    """The states, those without a ttl with one."""
    found = []
    for state in states:
        lasting = copy.copy(state)
        lasting.ttl = state.ttl or Ttl(ttl_ms)
        found.append(lasting)
    return tuple(found)


def named(aggregates: Mapping[str, Aggregate]) -> dict[str, str]:
    """Aggregates in words."""
    return {name: str(aggregate) for name, aggregate in aggregates.items()}
