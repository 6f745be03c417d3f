"""The handle on a keyed stream: steps with state per key, and windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headwater.data.schema import SchemaLike
from headwater.durations import Duration
from headwater.functions import OutputTag
from headwater.graph.nodes import ReduceNode, RunningNode, TopNNode
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

    def reduce(self, function: Callable[[Any, Any], Any], *, name: str = "reduce") -> Step:
        """The rows of a key so far as one row, after each of them: `function(so far, row)` gives a row of the same schema.

        >>> env = Environment("doc", engine="local")
        >>> rows = env.from_rows([("a", 1), ("b", 2), ("a", 3)], "k string, n long")
        >>> rows.key_by("k").reduce(lambda so_far, row: {"k": row.k, "n": so_far.n + row.n}).collect()
        [Row(k='a', n=1), Row(k='b', n=2), Row(k='a', n=4)]
        """
        return self._add(ReduceNode.of(self._flow, function=function, name=name))

    def top_n(
        self,
        n: int,
        *,
        by: str | Sequence[str],
        descending: bool | Sequence[bool] = True,
        rank: str = "rank",
        ttl: Duration | None = None,
        name: str = "top_n",
    ) -> Step:
        """The `n` rows of each key that come first in an order, as a changelog by key and rank.

        >>> env = Environment("doc", engine="local")
        >>> rows = env.from_rows([("a", 3), ("a", 7), ("a", 5), ("b", 1)], "shop string, price long")
        >>> top = rows.key_by("shop").top_n(2, by="price").collect()
        >>> [(row.shop, row.rank, row.price, row.row_kind) for row in top]
        [('a', 1, 7, '+I'), ('a', 2, 5, '+I'), ('b', 1, 1, '+I')]

        It is SQL's `ROW_NUMBER() OVER (PARTITION BY key ORDER BY by DESC) <= n`. The largest come first unless
        `descending=False`; rows that are equal in order go by arrival. An epoch tells each rank that has changed, once.
        With `ttl` a row is forgotten that long after it came, by the clock, and what was told of it stays.
        """
        return self._add(TopNNode.of(self._flow, n=n, by=by, descending=descending, rank=rank, ttl=ttl, name=name))

    def window(self, windows: WindowAssigner) -> WindowedStream:
        """Windows per key: say when they fire and what becomes of late rows, then what to compute."""
        return WindowedStream(self._env, Windowed(flow=self._flow, assigner=windows))
