"""The handle on two streams that one function reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.data.schema import SchemaLike
from headwater.functions import CoProcessFunction
from headwater.graph.connected import Connected
from headwater.graph.nodes import CoProcessNode

if TYPE_CHECKING:
    from headwater.streams.stream import Step, Stream


class ConnectedStreams:
    """Two streams, each with its own schema: both keyed by keys of one type, or neither keyed."""

    def __init__(self, left: Stream, right: Stream) -> None:
        self._left, self._right, self._connected = left, right, Connected(left._flow, right._flow)

    def __repr__(self) -> str:
        """Which streams."""
        return f"<{type(self).__name__} {self._left!r} and {self._right!r}>"

    def process(self, function: CoProcessFunction, schema: SchemaLike, *, name: str | None = None) -> Step:
        """A `CoProcessFunction`; over keyed streams it has state and timers per key."""
        return self._left._add(CoProcessNode.of(self._connected, function=function, schema=schema, name=name))
