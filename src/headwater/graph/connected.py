"""Two flows that one function reads."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from headwater.descriptors import MapState
from headwater.errors import GraphError, StateError
from headwater.graph.checks import check_keyed_alike
from headwater.graph.edges import RIGHT, Edge
from headwater.graph.flow import Flow


@dataclass(frozen=True)
class Connected:
    """Two flows, each with its own schema: both keyed by keys of one type, or neither keyed."""

    left: Flow
    right: Flow

    def __post_init__(self) -> None:
        check_keyed_alike(self.left, self.right, "connect")


@dataclass(frozen=True)
class Broadcast:
    """A flow whose rows are on every subtask, and the map states that they are kept in."""

    flow: Flow
    states: tuple[MapState[Any, Any], ...]

    def __post_init__(self) -> None:
        names: set[str] = set()
        for state in self.states:
            if not isinstance(state, MapState):
                raise GraphError.bad_argument("broadcast", "keeps map states", state, "pass hw.MapState declarations")
            if not state.name:
                raise GraphError.bad_argument(
                    "broadcast",
                    "needs states with a name",
                    "a hw.MapState without",
                    "put its name in front: hw.MapState('rules', 'string', 'double')",
                )
            if state.ttl is not None:
                raise GraphError.bad_argument(
                    "broadcast",
                    "keeps state that is the same on every subtask and belongs to no key, so it cannot expire",
                    f"{state.name} with a ttl",
                    "remove entries in process_broadcast, by rows that say so",
                )
            if state.name in names:
                raise StateError.declared_twice("broadcast", state.name)
            names.add(state.name)


def pair_edges(left: Flow, right: Flow) -> tuple[Edge, ...]:
    """The edges into a step with two inputs, which is on a level of its own."""
    return (*left.spread().edges, *(dataclasses.replace(edge, side=RIGHT) for edge in right.spread().edges))
