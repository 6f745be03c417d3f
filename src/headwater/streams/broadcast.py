"""The handles on a broadcast stream, and on a stream that is connected to one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from headwater.data.schema import Schema, SchemaLike
from headwater.descriptors import MapState, keyed_states
from headwater.errors import GraphError, StateError
from headwater.functions import BroadcastFunction, KeyedBroadcastFunction, name_of
from headwater.graph.nodes import BroadcastProcessNode
from headwater.streams.pairs import add_pair

if TYPE_CHECKING:
    from headwater.streams.stream import Step, Stream


class BroadcastStream:
    """A stream that goes to every subtask, and the map states that its rows are kept in. It is given to `connect`."""

    def __init__(self, stream: Stream, states: Sequence[MapState]) -> None:
        names: set[str] = set()
        for state in states:
            if not isinstance(state, MapState):
                raise GraphError.bad_argument("broadcast", "keeps map states", state, "pass hw.MapState declarations")
            if not state.name:
                raise GraphError.bad_argument(
                    "broadcast",
                    "needs states with a name",
                    "a hw.MapState without",
                    "put its name in front: hw.MapState('rules', 'string', 'double')",
                )
            if state.name in names:
                raise StateError.declared_twice("broadcast", state.name)
            names.add(state.name)
        self.stream, self.states = stream, tuple(states)

    def connect(self, other: object) -> NoReturn:
        """Refuse: the stream with the data comes first."""
        raise GraphError.bad_argument(
            "connect", "needs the data on the left", self, "write data.connect(rules.broadcast(...))"
        )


class BroadcastConnectedStreams:
    """A stream, keyed or not, and a broadcast stream beside it."""

    def __init__(self, data: Stream, broadcast: BroadcastStream) -> None:
        self._data, self._broadcast = data, broadcast

    def process(self, function: BroadcastFunction, schema: SchemaLike, *, name: str | None = None) -> Step:
        """A `KeyedBroadcastFunction` over a keyed stream, a `BroadcastFunction` over any other."""
        data, states = self._data, self._broadcast.states
        step = name or name_of(function)
        _check_fits(function, step, is_keyed=not data.key.is_nothing)
        declared = tuple(keyed_states(function, step))
        if declared and data.key.is_nothing:
            raise GraphError.bad_argument(
                step, "keeps state per key", declared[0].name, "make it a hw.KeyedBroadcastFunction on a keyed stream"
            )
        for state in declared:
            if any(state.name == other.name for other in states):
                raise GraphError.bad_argument(
                    step,
                    "needs keyed and broadcast states of different names",
                    state.name,
                    "rename one, or declare the broadcast state outside of the class",
                )
        settings = {"function": function, "states": declared, "broadcast_states": states, "key": data.key}
        return add_pair(data, self._broadcast.stream, BroadcastProcessNode, step, Schema.of(schema), **settings)


def _check_fits(function: object, step: str, *, is_keyed: bool) -> None:
    """A function knows keys if and only if its stream has them."""
    knows_keys = isinstance(function, KeyedBroadcastFunction)
    if knows_keys and not is_keyed:
        raise GraphError.needs_keyed(step, "a stream without key")
    if not isinstance(function, BroadcastFunction) or knows_keys != is_keyed:
        needed = "hw.KeyedBroadcastFunction on a keyed stream" if is_keyed else "hw.BroadcastFunction"
        raise GraphError.bad_argument(
            "process", f"beside a broadcast stream needs a {needed}", function, "pass an instance"
        )
