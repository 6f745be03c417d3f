"""The handle on a keyed stream: steps with state per key, windows and joins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.aggregates import result_fields
from headwater.descriptors import keyed_states
from headwater.durations import Duration
from headwater.errors import GraphError
from headwater.functions import KeyedProcessFunction, OutputTag, ProcessFunction, name_of
from headwater.graph.nodes import Edge, Key, KeyedProcessNode, RunningNode
from headwater.schema import Schema, SchemaLike
from headwater.streams.joins import add_interval_join, add_regular_join, add_temporal_join
from headwater.streams.stream import Step, Stream
from headwater.streams.windowed import WindowedStream
from headwater.windows import WindowAssigner

if TYPE_CHECKING:
    from headwater.streams.environment import Environment


class KeyedStream(Stream):
    """A stream on which rows of one key meet in one place."""

    def __init__(self, env: Environment, edges: tuple[Edge, ...], schema: Schema, key: Key) -> None:
        super().__init__(env, edges, schema)
        self.key = key

    def process(self, function: Any, schema: SchemaLike, *, name: str | None = None) -> Step:
        """A `KeyedProcessFunction`, with state and timers per key. Its uid is its class's name unless given."""
        step = name or name_of(function)
        if isinstance(function, ProcessFunction):
            return super().process(function, schema, name=name)
        if not isinstance(function, KeyedProcessFunction):
            raise GraphError.bad_argument("process", "needs a hw.KeyedProcessFunction", function, "pass an instance")
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

    def interval_join(
        self,
        other: KeyedStream,
        between: tuple[Duration, Duration],
        *,
        lower_inclusive: bool = True,
        upper_inclusive: bool = True,
        late_left: OutputTag | None = None,
        late_right: OutputTag | None = None,
        unmatched_left: OutputTag | None = None,
        unmatched_right: OutputTag | None = None,
        suffix: str = "_right",
        name: str = "interval_join",
    ) -> Step:
        """Pairs of rows of one key, where the other's event time is between these bounds relative to this one's.

        >>> env = Environment("doc", engine="local")
        >>> by_ts = hw.Watermarks.monotonous("ts")
        >>> orders = env.from_rows([(1, 1000)], "id long, ts long", by_ts, name="orders")
        >>> paid = env.from_rows([(1, 3000), (1, 9000)], "id long, ts long", by_ts, name="paid")
        >>> orders.key_by("id").interval_join(paid.key_by("id"), between=("0 s", "5 s")).collect()
        [Row(id=1, ts=1000, ts_right=3000)]

        A pair's time is the later of the two. Rows are kept until the watermark tells that nothing can meet them; those
        that met nothing then go to `unmatched_left` and `unmatched_right`. Rows behind the watermark are dropped and
        counted, or go to `late_left` and `late_right`. Rows whose key is null are left out.
        """
        return add_interval_join(
            self,
            other,
            between=between,
            inclusive=(lower_inclusive, upper_inclusive),
            tags={
                "late_left": late_left,
                "late_right": late_right,
                "unmatched_left": unmatched_left,
                "unmatched_right": unmatched_right,
            },
            suffix=suffix,
            name=name,
        )

    def window(self, windows: WindowAssigner) -> WindowedStream:
        """Windows per key: say when they fire and what becomes of late rows, then what to compute."""
        return WindowedStream(self, windows)

    def join_regular(
        self,
        other: KeyedStream,
        *,
        how: str = "inner",
        ttl: Duration | None = None,
        suffix: str = "_right",
        name: str = "join_regular",
    ) -> Step:
        """Pairs of all rows of one key so far, as a changelog: `row_kind` says what a row does to the result.

        >>> env = Environment("doc", engine="local")
        >>> users = env.from_rows([(1, "ann"), (2, "bob")], "id long, user string", name="users")
        >>> orders = env.from_rows([(1, 30)], "id long, amount long", name="orders")
        >>> changes = users.key_by("id").join_regular(orders.key_by("id"), how="left").collect()
        >>> [(row.user, row.amount, row.row_kind) for row in changes]
        [('ann', None, '+I'), ('bob', None, '+I'), ('ann', None, '-D'), ('ann', 30, '+I')]

        `how` is 'inner', 'left', 'right' or 'full'. An input with a column `row_kind` is read as a changelog. A row is
        kept for `ttl` of processing time after it came, or for ever. What a row gives has that row's event time.
        """
        return add_regular_join(self, other, how=how, ttl=ttl, suffix=suffix, name=name)

    def temporal_join(
        self,
        versions: KeyedStream,
        *,
        how: str = "inner",
        late: OutputTag | None = None,
        suffix: str = "_right",
        name: str = "temporal_join",
    ) -> Step:
        """Each row with the version of its key that was valid at the row's event time: the latest one not after it.

        >>> env = Environment("doc", engine="local")
        >>> by_ts = hw.Watermarks.monotonous("ts")
        >>> orders = env.from_rows([("eur", 15), ("eur", 25)], "c string, ts long", by_ts, name="orders")
        >>> rates = env.from_rows([("eur", 1.1, 10), ("eur", 1.2, 20)], "c string, rate double, ts long", by_ts)
        >>> orders.key_by("c").temporal_join(rates.key_by("c")).collect()
        [Row(c='eur', ts=15, rate=1.1, ts_right=10), Row(c='eur', ts=25, rate=1.2, ts_right=20)]

        A row comes out when the watermark has reached its time, with that time; without a version it is left out, or
        padded under how='left'. Rows that come after that are dropped and counted, or go to `late`. Versions with a
        column `row_kind` are a changelog: after '-D' or '-U' a key has no version until the next.
        """
        return add_temporal_join(self, versions, how=how, late=late, suffix=suffix, name=name)
