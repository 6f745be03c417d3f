"""The handle on a keyed stream: steps with state per key, and windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.aggregates import result_fields
from headwater.data.schema import Schema, SchemaLike
from headwater.descriptors import keyed_states
from headwater.errors import GraphError
from headwater.functions import KeyedProcessFunction, OutputTag, ProcessFunction, name_of
from headwater.graph.nodes import Edge, Key, KeyedProcessNode, RunningNode
from headwater.streams.failed_rows import refuse_with_state
from headwater.streams.stream import Step, Stream
from headwater.streams.windowed import WindowedStream
from headwater.windows.assigners import WindowAssigner

if TYPE_CHECKING:
    from headwater.streams.environment import Environment


class KeyedStream(Stream):
    """A stream on which rows of one key meet in one place."""

    def __init__(self, env: Environment, edges: tuple[Edge, ...], schema: Schema, key: Key) -> None:
        super().__init__(env, edges, schema)
        self.key = key

    def process(
        self, function: Any, schema: SchemaLike, *, name: str | None = None, failed_to: OutputTag | None = None
    ) -> Step:
        """A `KeyedProcessFunction`, with state and timers per key. Its uid is its class's name unless given.

        `failed_to` is for a `ProcessFunction` without state only.
        """
        step = name or name_of(function)
        if isinstance(function, ProcessFunction):
            return super().process(function, schema, name=name, failed_to=failed_to)
        if not isinstance(function, KeyedProcessFunction):
            raise GraphError.bad_argument("process", "needs a hw.KeyedProcessFunction", function, "pass an instance")
        refuse_with_state(step, failed_to)
        states = tuple(keyed_states(function, step))
        return self._add(KeyedProcessNode, step, Schema.of(schema), function=function, states=states, key=self.key)

    def agg(self, **aggregates: Any) -> Step:
        """Built-in aggregates over all rows of a key so far: a row for each key that an epoch touches.

        >>> env = Environment("doc", engine="local")
        >>> rows = [{"k": "a", "n": 1}, {"k": "b", "n": 2}, {"k": "a", "n": 3}]
        >>> env.from_rows(rows, "k string, n long").key_by("k").agg(total=hw.sum("n")).collect()
        [Row(k='b', total=2), Row(k='a', total=4)]
        """
        fields = [*self._key_fields(), *result_fields(aggregates, self.schema, "agg")]
        schema = Schema.of(pa.schema(fields))
        return self._add(RunningNode, "agg", schema, key=self.key, input_schema=self.schema, aggregates=aggregates)

    def _key_fields(self) -> list[pa.Field]:
        """The columns in which results show the key: its own, or `key` for a function's result."""
        if self.key.function is not None:
            return [pa.field("key", self.key.type)]
        return [self.schema.field(column) for column in self.key.columns]

    def window(self, windows: WindowAssigner) -> WindowedStream:
        """Windows per key: say when they fire and what becomes of late rows, then what to compute."""
        return WindowedStream(self, windows)
