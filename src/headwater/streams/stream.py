"""The fluent handle on a stream: each call adds a node to the graph and gives a handle on its output."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from headwater.aggregates import result_fields
from headwater.clock.event_time import is_time_type
from headwater.connectors.contract import Sink
from headwater.descriptors import MapState, declared_states
from headwater.durations import Duration
from headwater.errors import GraphError, SchemaError, StateError
from headwater.expressions import compile_select, compile_where
from headwater.functions import KeyedProcessFunction, OutputTag, ProcessFunction, name_of
from headwater.graph.nodes import (
    FORWARD,
    NO_KEY,
    Edge,
    Exchange,
    FilterNode,
    FlatMapNode,
    Key,
    KeyedProcessNode,
    MapBatchesNode,
    MapNode,
    Node,
    ProcessNode,
    RunningNode,
    SelectNode,
    SinkNode,
    WhereNode,
)
from headwater.schema import Schema, SchemaLike, parse_type
from headwater.state.keys import is_key_type
from headwater.streams.broadcast import BroadcastConnectedStreams, BroadcastStream
from headwater.streams.connected import ConnectedStreams
from headwater.streams.joins import add_interval_join
from headwater.streams.windowed import WindowedStream
from headwater.windows import WindowAssigner

if TYPE_CHECKING:
    from headwater.streams.environment import Environment


class Stream:
    """A stream of rows. Handles are values: using one twice branches the stream."""

    key: Key = NO_KEY

    def __init__(self, env: Environment, edges: tuple[Edge, ...], schema: Schema) -> None:
        self._env, self._edges, self.schema = env, edges, schema

    # -- rows -------------------------------------------------------------------------------------------------------

    def map(self, function: Callable[[Any], Any], schema: SchemaLike | None = None) -> Step:
        """One row for each row.

        >>> env = Environment("doc", engine="local")
        >>> env.from_rows([{"n": 1}, {"n": 2}], "n long").map(lambda r: {"n": r.n * 10}).collect()
        [Row(n=10), Row(n=20)]
        """
        return self._add(MapNode, "map", self._or_same(schema), function=_callable("map", function))

    def flat_map(self, function: Callable[[Any], Iterable[Any]], schema: SchemaLike | None = None) -> Step:
        """Any number of rows for each row: the function yields them or returns a list."""
        return self._add(FlatMapNode, "flat_map", self._or_same(schema), function=_callable("flat_map", function))

    def filter(self, function: Callable[[Any], bool]) -> Step:
        """The rows for which the function is true."""
        return self._add(FilterNode, "filter", self.schema, function=_callable("filter", function))

    def process(self, function: Any, schema: SchemaLike, *, name: str | None = None) -> Step:
        """A `ProcessFunction`, which may write side outputs."""
        if isinstance(function, KeyedProcessFunction):
            raise GraphError.needs_keyed(name or name_of(function), type(self).__name__)
        if not isinstance(function, ProcessFunction):
            raise GraphError.bad_argument(
                "process",
                "needs a hw.ProcessFunction (hw.KeyedProcessFunction on a keyed stream)",
                function,
                "pass an instance",
            )
        return self._add(ProcessNode, name or name_of(function), Schema.of(schema), function=function)

    # -- batches ----------------------------------------------------------------------------------------------------

    def select(self, *expressions: str) -> Step:
        """Columns computed by SQL expressions in Spark's dialect, whole batches at a time.

        >>> env = Environment("doc", engine="local")
        >>> env.from_rows([{"n": 1}, {"n": 2}], "n long").select("n", "n * 2 as twice").collect()
        [Row(n=1, twice=2), Row(n=2, twice=4)]
        """
        query, schema = compile_select(expressions, self.schema, "select")
        return self._add(SelectNode, "select", schema, expressions=expressions, query=query)

    def where(self, expression: str) -> Step:
        """The rows for which a SQL expression is true, whole batches at a time."""
        query = compile_where(expression, self.schema, "where")
        return self._add(WhereNode, "where", self.schema, expression=expression, query=query)

    def map_batches(
        self,
        function: Callable[[pa.Table], pa.Table],
        schema: SchemaLike | None = None,
        *,
        timestamp: str | None = None,
    ) -> Step:
        """A function over Arrow tables, whose size means nothing. Name the time column when rows are added or dropped."""
        result = self._or_same(schema)
        if timestamp is not None and not is_time_type(result.field(timestamp).type):
            raise GraphError.bad_argument(
                "map_batches", "needs a timestamp or bigint column for event time", timestamp, f"choose from {result}"
            )
        function = _callable("map_batches", function)
        return self._add(MapBatchesNode, "map_batches", result, function=function, timestamp=timestamp)

    # -- shape ------------------------------------------------------------------------------------------------------

    def union(self, *others: Stream) -> Stream:
        """This stream and others of the same schema as one."""
        edges = self._edges
        for other in others:
            self._check_meets(other, "union")
            if other.schema != self.schema:
                raise SchemaError.does_not_fit(
                    "union", f"schemas differ: '{self.schema}' and '{other.schema}'", "select or map one of them first"
                )
            edges += other._edges
        return Stream(self._env, edges, self.schema)

    def key_by(self, *key: str | Callable[[Any], Any], type: str | None = None) -> KeyedStream:  # noqa: A002
        """Key the stream by columns, or by a function together with the DDL type of its result.

        `key_by("user")`, `key_by("country", "city")`, `key_by(lambda e: e.url[:8], type="string")`
        """
        columns = tuple(k for k in key if isinstance(k, str))
        functions = [k for k in key if not isinstance(k, str)]
        if not key or (functions and (columns or len(functions) > 1)):
            raise GraphError.bad_argument("key_by", "needs column names or one function", key, "write key_by('user')")
        if functions:
            if type is None:
                raise GraphError.bad_argument(
                    "key_by",
                    "needs the type of a function's result",
                    functions[0],
                    "add type='string' or another DDL type",
                )
            spec = Key((), _callable("key_by", functions[0]), parse_type(type))
        else:
            fields = [self.schema.field(column) for column in columns]
            dtype = fields[0].type if len(fields) == 1 else pa.struct([pa.field(f.name, f.type) for f in fields])
            spec = Key(columns, None, dtype)
        if not is_key_type(spec.type):
            raise StateError.bad_key_type("key_by", spec.type)
        return KeyedStream(self._env, self._moved(Exchange("key", spec)), self.schema, spec)

    @overload
    def connect(self, other: Stream) -> ConnectedStreams: ...

    @overload
    def connect(self, other: BroadcastStream) -> BroadcastConnectedStreams: ...

    def connect(self, other: Stream | BroadcastStream) -> ConnectedStreams | BroadcastConnectedStreams:
        """This stream and another, of any schema, for one function to read: both keyed, or neither, or the other broadcast.

        >>> env = Environment("doc", engine="local")
        >>> orders = env.from_rows([{"id": 1}], "id long", name="orders").key_by("id")
        >>> prices = env.from_rows([(1, 2.5)], "id long, price double", name="prices").key_by("id")
        >>> class Either(hw.CoProcessFunction):
        ...     def process_left(self, order, ctx):
        ...         yield {"saw": f"order {order.id}"}
        ...
        ...     def process_right(self, price, ctx):
        ...         yield {"saw": f"price {price.price}"}
        >>> orders.connect(prices).process(Either(), "saw string").collect()
        [Row(saw='order 1'), Row(saw='price 2.5')]
        """
        if isinstance(other, BroadcastStream):
            self._check_meets(other.stream, "connect")
            return BroadcastConnectedStreams(self, other)
        self._check_meets(other, "connect")
        return ConnectedStreams(self, other)

    def window_all(self, windows: WindowAssigner) -> WindowedStream:
        """Windows over all rows together, in one place."""
        edges = self._moved(Exchange("global"))
        return WindowedStream(KeyedStream(self._env, edges, self.schema, NO_KEY), windows)

    def rebalance(self) -> Stream:
        """Spread the rows evenly over the subtasks."""
        return Stream(self._env, self._moved(Exchange("rebalance")), self.schema)

    @overload
    def broadcast(self) -> Stream: ...

    @overload
    def broadcast(self, state: MapState, /, *states: MapState) -> BroadcastStream: ...

    def broadcast(self, *states: MapState) -> Stream | BroadcastStream:
        """Send every row to every subtask. With map states, named ones, give the stream that keeps its rows in them.

        >>> env = Environment("doc", engine="local")
        >>> limits = hw.MapState("limits", "string", "long")
        >>> class Over(hw.BroadcastFunction):
        ...     def process_broadcast(self, row, ctx):
        ...         ctx.broadcast_state(limits).put(row.what, row.limit)
        ...
        ...     def process(self, row, ctx):
        ...         if row.n > ctx.broadcast_state(limits).get(row.what, 0):
        ...             yield row
        >>> rules = env.from_rows([("cpu", 90)], "what string, limit long", name="rules").broadcast(limits)
        >>> readings = env.from_rows([("cpu", 95), ("cpu", 40)], "what string, n long", name="readings")
        >>> readings.connect(rules).process(Over(), "what string, n long").collect()
        [Row(what='cpu', n=95)]
        """
        everywhere = Stream(self._env, self._moved(Exchange("broadcast")), self.schema)
        return BroadcastStream(everywhere, states) if states else everywhere

    def global_(self) -> Stream:
        """Send every row to the first subtask."""
        return Stream(self._env, self._moved(Exchange("global")), self.schema)

    # -- ends -------------------------------------------------------------------------------------------------------

    def sink(self, sink: Sink, *, name: str = "sink") -> Step:
        """Hand the rows to a sink."""
        if not isinstance(sink, Sink):
            raise GraphError.bad_argument("sink", "needs a sink", sink, "use one of hw.connectors")
        return self._add(SinkNode, name, self.schema, sink=sink)

    def print(self) -> Step:
        """Print the rows of each committed epoch."""
        from headwater.connectors.console import ConsoleSink

        return self.sink(ConsoleSink(), name="print")

    def collect(self) -> list[Any]:
        """Run this stream's part of the job over what input there is, to the end, and give its rows."""
        return self._env._collect(self)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _or_same(self, schema: SchemaLike | None) -> Schema:
        return self.schema if schema is None else Schema.of(schema)

    def _moved(self, exchange: Exchange) -> tuple[Edge, ...]:
        return tuple(dataclasses.replace(edge, exchange=exchange) for edge in self._edges)

    def _check_meets(self, other: object, step: str) -> None:
        """Only streams of one job can meet."""
        if not isinstance(other, Stream):
            raise GraphError.bad_argument(step, "needs another stream", other, "pass a stream")
        if other._env is not self._env:
            raise GraphError.other_environment(step)

    def _add(
        self, cls: type[Node], name: str, schema: Schema, edges: tuple[Edge, ...] | None = None, **settings: Any
    ) -> Step:
        graph = self._env.graph
        node = graph.add(cls(graph.next_id(), name, edges or self._edges, schema, **settings))
        return Step(self._env, (Edge(node.id, None, FORWARD),), schema)


class Step(Stream):
    """A stream that is the output of one step, which can be given a uid and whose side outputs can be read."""

    def with_uid(self, uid: str) -> Step:
        """Give the step its lasting identity: state, and the names of output files, belong to it."""
        self._env.graph.set_uid(self._edges[0].source, uid)
        return self

    def side_output(self, tag: OutputTag) -> Stream:
        """The rows the step sends to a side output."""
        source = self._edges[0].source
        self._env.graph.add_output(source, tag.name, tag.schema)
        return Stream(self._env, (Edge(source, tag.name, FORWARD),), tag.schema)


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
        states = tuple(declared_states(function, step))
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


def _callable(step: str, function: Any) -> Any:
    if not callable(function):
        raise GraphError.bad_argument(step, "needs a function", function, "pass a function or lambda")
    return function
