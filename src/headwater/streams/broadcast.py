"""The handles on a broadcast stream, and on a stream that is connected to one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from headwater.data.schema import SchemaLike
from headwater.descriptors import MapState
from headwater.errors import GraphError
from headwater.functions import BroadcastFunction
from headwater.graph.connected import Broadcast
from headwater.graph.nodes import BroadcastProcessNode

if TYPE_CHECKING:
    from headwater.streams.stream import Step, Stream


class BroadcastStream:
    """A stream that goes to every subtask, and the map states that its rows are kept in. It is given to `connect`."""

    def __init__(self, stream: Stream, states: Sequence[MapState[Any, Any]]) -> None:
        self.stream, self._broadcast = stream, Broadcast(stream._flow, tuple(states))

    def connect(self, other: object) -> NoReturn:
        """Refuse: the stream with the data comes first."""
        raise GraphError.bad_argument(
            "connect", "needs the data on the left", self, "write data.connect(rules.broadcast(...))"
        )


class BroadcastConnectedStreams:
    """A stream, keyed or not, and a broadcast stream beside it."""

    def __init__(self, data: Stream, broadcast: BroadcastStream) -> None:
        self._data, self._broadcast = data, broadcast._broadcast

    def process(self, function: BroadcastFunction, schema: SchemaLike, *, name: str | None = None) -> Step:
        """A `KeyedBroadcastFunction` over a keyed stream, a `BroadcastFunction` over any other."""
        data = self._data
        return data._add(
            BroadcastProcessNode.of(data._flow, self._broadcast, function=function, schema=schema, name=name)
        )
