"""The handle on a keyed stream: steps with state per key, and windows."""

from __future__ import annotations

from typing import Any

from headwater.data.schema import SchemaLike
from headwater.functions import OutputTag
from headwater.graph.nodes import RunningNode
from headwater.graph.nodes.process import process_node
from headwater.graph.windowed import Windowed
from headwater.streams.stream import Step, Stream
from headwater.streams.windowed import WindowedStream
from headwater.windows.assigners import WindowAssigner


class KeyedStream(Stream):
    """A stream on which rows of one key meet in one place."""

    def process(
        self, function: Any, schema: SchemaLike, *, name: str | None = None, failed_to: OutputTag | None = None
    ) -> Step:
        """A `KeyedProcessFunction`, with state and timers per key. Its uid is its class's name unless given.

        `failed_to` is for a `ProcessFunction` without state only.
        """
        return self._add(process_node(self._flow, function=function, schema=schema, name=name, failed_to=failed_to))

    def agg(self, **aggregates: Any) -> Step:
        """Built-in aggregates over all rows of a key so far: a row for each key that an epoch touches.

        >>> env = Environment("doc", engine="local")
        >>> rows = [{"k": "a", "n": 1}, {"k": "b", "n": 2}, {"k": "a", "n": 3}]
        >>> env.from_rows(rows, "k string, n long").key_by("k").agg(total=hw.sum("n")).collect()
        [Row(k='b', total=2), Row(k='a', total=4)]
        """
        return self._add(RunningNode.of(self._flow, aggregates=aggregates))

    def window(self, windows: WindowAssigner) -> WindowedStream:
        """Windows per key: say when they fire and what becomes of late rows, then what to compute."""
        return WindowedStream(self._env, Windowed(flow=self._flow, assigner=windows))
