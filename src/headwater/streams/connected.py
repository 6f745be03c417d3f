"""The handle on two streams that one function reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.data.schema import Schema, SchemaLike
from headwater.descriptors import keyed_states
from headwater.errors import GraphError
from headwater.functions import CoProcessFunction, name_of
from headwater.graph.nodes import CoProcessNode
from headwater.streams.pairs import add_pair, check_keyed_alike

if TYPE_CHECKING:
    from headwater.streams.stream import Step, Stream


class ConnectedStreams:
    """Two streams, each with its own schema: both keyed by keys of one type, or neither keyed."""

    def __init__(self, left: Stream, right: Stream) -> None:
        check_keyed_alike(left, right, "connect")
        self._left, self._right = left, right

    def process(self, function: CoProcessFunction, schema: SchemaLike, *, name: str | None = None) -> Step:
        """A `CoProcessFunction`; over keyed streams it has state and timers per key."""
        if not isinstance(function, CoProcessFunction):
            raise GraphError.bad_argument("process", "needs a hw.CoProcessFunction", function, "pass an instance")
        left, right = self._left, self._right
        step = name or name_of(function)
        states = tuple(keyed_states(function, step))
        if states and left.key.is_nothing:
            raise GraphError.bad_argument(
                step, "keeps state per key, so it needs keyed streams", "streams without key", "use key_by on both"
            )
        settings = {"function": function, "states": states, "key": left.key, "right_key": right.key}
        return add_pair(left, right, CoProcessNode, step, Schema.of(schema), **settings)
