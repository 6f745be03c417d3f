"""The fluent handle on a stream: each call adds a node to the graph and gives a handle on its output."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from headwater.connectors.console import ConsoleSink
from headwater.connectors.contract import Sink
from headwater.connectors.dataframes import DataFrameSink
from headwater.data.schema import Schema, SchemaLike
from headwater.descriptors import MapState
from headwater.durations import Duration
from headwater.errors import GraphError
from headwater.functions import KeyedProcessFunction, OutputTag, name_of
from headwater.graph.changelog import Changelog
from headwater.graph.edges import REBALANCE, Key, KeyPart, On
from headwater.graph.flow import Flow
from headwater.graph.nodes import (
    AsChangelogNode,
    FilterNode,
    FlatMapNode,
    LookupJoinNode,
    MapAsyncNode,
    MapBatchesNode,
    MapNode,
    Node,
    SelectNode,
    SinkNode,
    WhereNode,
    WithRowKindNode,
)
from headwater.graph.nodes.lookup import Cache
from headwater.graph.nodes.process import process_node
from headwater.graph.windowed import Windowed
from headwater.retry import Retry
from headwater.streams.broadcast import BroadcastConnectedStreams, BroadcastStream
from headwater.streams.connected import ConnectedStreams
from headwater.streams.joinable import Joinable
from headwater.streams.window_join import CoGroupedStreams, JoinedStreams
from headwater.streams.windowed import WindowedStream
from headwater.windows.assigners import WindowAssigner

if TYPE_CHECKING:
    from headwater.streams.environment import Environment
    from headwater.streams.keyed import KeyedStream


class Stream(Joinable):
    """A stream of rows. Handles are values: using one twice branches the stream."""

    def __init__(self, env: Environment, flow: Flow) -> None:
        self._env, self._flow = env, flow

    @property
    def schema(self) -> Schema:
        """What the rows look like."""
        return self._flow.schema

    @property
    def changelog(self) -> Changelog:
        """What the rows do to the table they describe: only add to it, or also change it and take from it."""
        return self._flow.changelog

    # -- rows -------------------------------------------------------------------------------------------------------

    def map(
        self,
        function: Callable[[Any], Any],
        schema: SchemaLike | None = None,
        *,
        failed_to: OutputTag | None = None,
    ) -> Step:
        """One row for each row. A row for which the function fails fails the job, or goes to `failed_to` with the error.

        >>> env = Environment("doc", engine="local")
        >>> env.from_rows([{"n": 1}, {"n": 2}], "n long").map(lambda r: {"n": r.n * 10}).collect()
        [Row(n=10), Row(n=20)]
        """
        return self._add(MapNode.of(self._flow, function=function, schema=schema, failed_to=failed_to))

    def flat_map(
        self,
        function: Callable[[Any], Iterable[Any]],
        schema: SchemaLike | None = None,
        *,
        failed_to: OutputTag | None = None,
    ) -> Step:
        """Any number of rows for each row: the function yields them or returns a list. `failed_to` as for `map`."""
        return self._add(FlatMapNode.of(self._flow, function=function, schema=schema, failed_to=failed_to))

    def filter(self, function: Callable[[Any], bool], *, failed_to: OutputTag | None = None) -> Step:
        """The rows for which the function is true. `failed_to` as for `map`."""
        return self._add(FilterNode.of(self._flow, function=function, failed_to=failed_to))

    def process(
        self, function: Any, schema: SchemaLike, *, name: str | None = None, failed_to: OutputTag | None = None
    ) -> Step:
        """A `ProcessFunction`, which may write side outputs and have operator state.

        With state it runs on every subtask, and rows that no exchange brings there are dealt out evenly. `failed_to` is as
        for `map`, and for functions without state only: what a call that fails has written cannot be taken back.
        """
        if isinstance(function, KeyedProcessFunction):
            raise GraphError.needs_keyed(name or name_of(function), type(self).__name__)
        return self._add(process_node(self._flow, function=function, schema=schema, name=name, failed_to=failed_to))

    # -- batches ----------------------------------------------------------------------------------------------------

    def select(self, *expressions: str) -> Step:
        """Columns computed by SQL expressions in Spark's dialect, whole batches at a time.

        >>> env = Environment("doc", engine="local")
        >>> env.from_rows([{"n": 1}, {"n": 2}], "n long").select("n", "n * 2 as twice").collect()
        [Row(n=1, twice=2), Row(n=2, twice=4)]
        """
        return self._add(SelectNode.of(self._flow, expressions=expressions))

    def where(self, expression: str) -> Step:
        """The rows for which a SQL expression is true, whole batches at a time."""
        return self._add(WhereNode.of(self._flow, expression=expression))

    def map_batches(
        self,
        function: Callable[[pa.Table], pa.Table],
        schema: SchemaLike | None = None,
        *,
        timestamp: str | None = None,
    ) -> Step:
        """A function over Arrow tables, whose size means nothing. Name the time column when rows are added or dropped."""
        return self._add(MapBatchesNode.of(self._flow, function=function, schema=schema, timestamp=timestamp))

    # -- other systems ----------------------------------------------------------------------------------------------

    def map_async(
        self,
        function: Callable[[Any], Awaitable[Any]],
        schema: SchemaLike | None = None,
        *,
        capacity: int = 100,
        timeout: Duration | None = None,
        retry: Retry | None = None,
        ordered: bool = True,
        timeout_to: OutputTag | None = None,
        failed_to: OutputTag | None = None,
        name: str | None = None,
    ) -> Step:
        """One row, or None for no row, for each row, by a coroutine function; up to `capacity` calls at a time.

        `timeout` is for all attempts of a row; one that times out fails the job or goes to `timeout_to`. `failed_to` is as
        for `map`, after all attempts, also for rows that time out unless they have `timeout_to`.

        >>> async def double(row):
        ...     return {"n": row.n * 2}
        >>> env = Environment("doc", engine="local")
        >>> env.from_rows([{"n": 1}, {"n": 2}], "n long").map_async(double, timeout="5 s").collect()
        [Row(n=2), Row(n=4)]
        """
        return self._add(
            MapAsyncNode.of(
                self._flow,
                function=function,
                schema=schema,
                capacity=capacity,
                timeout=timeout,
                retry=retry,
                ordered=ordered,
                timeout_to=timeout_to,
                failed_to=failed_to,
                name=name or "map_async",
            )
        )

    def lookup_join(
        self,
        table: Any,
        *,
        on: On,
        how: str = "left",
        columns: Sequence[str] | None = None,
        suffix: str = "_right",
        schema: SchemaLike | None = None,
        cache: Cache = None,
        ttl: Duration | None = None,
        name: str | None = None,
    ) -> Step:
        """Each row with the columns that a table outside the job holds for its key, as it is at this moment.

        `table` is a pyarrow Table, a DataFrame, a `hw.connectors.PostgresTable`, or a function that gets a list of keys
        and gives a dict of rows of `schema`. `on` names columns of both, or is a dict of the stream's to the table's.
        `cache` is how many keys are kept, or 'full' for the whole table, for `ttl` of processing time.

        >>> env = Environment("doc", engine="local")
        >>> users = pa.table({"id": [1, 2], "name": ["ann", "bob"]})
        >>> env.from_rows([(2,), (3,)], "user long").lookup_join(users, on={"user": "id"}).collect()
        [Row(user=2, name='bob'), Row(user=3, name=None)]
        """
        return self._add(
            LookupJoinNode.of(
                self._flow,
                table=table,
                on=on,
                how=how,
                columns=columns,
                suffix=suffix,
                schema=schema,
                cache=cache,
                ttl=ttl,
                name=name or "lookup_join",
            )
        )

    # -- shape ------------------------------------------------------------------------------------------------------

    def union(self, *others: Stream) -> Stream:
        """This stream and others of the same schema as one."""
        for other in others:
            self._check_meets(other, "union")
        return Stream(self._env, self._flow.union(*(other._flow for other in others)))

    def key_by(self, *key: KeyPart, type: str | None = None) -> KeyedStream:  # noqa: A002
        """Key the stream by columns, or by a function together with the DDL type of its result.

        `key_by("user")`, `key_by("country", "city")`, `key_by(lambda e: e.url[:8], type="string")`
        """
        from headwater.streams.keyed import KeyedStream  # which is itself a stream

        return KeyedStream(self._env, self._flow.keyed(Key.of(self.schema, key, type)))

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

    def join(self, other: Stream) -> JoinedStreams:
        """Pairs of rows of this stream and another that have a key and a window in common.

        >>> env = Environment("doc", engine="local")
        >>> times = hw.Watermarks.monotonous("t")
        >>> orders = env.from_rows([(1, "ann", 10)], "id long, user string, t long", times, name="orders")
        >>> visits = env.from_rows([("ann", "/home", 12)], "user string, page string, t long", times, name="visits")
        >>> pairs = orders.join(visits).where("user").equal_to("user").window(hw.tumbling("1 s"))
        >>> pairs.apply(lambda order, visit: (order.id, visit.page), "id long, page string").collect()
        [Row(id=1, page='/home')]
        """
        self._check_meets(other, "join")
        return JoinedStreams(self, other)

    def cogroup(self, other: Stream) -> CoGroupedStreams:
        """The rows of this stream and of another by key and window, also where one of them has none.

        >>> env = Environment("doc", engine="local")
        >>> times = hw.Watermarks.monotonous("t")
        >>> ordered = env.from_rows([("ann", 10), ("bob", 11)], "user string, t long", times, name="ordered")
        >>> paid = env.from_rows([("ann", 12)], "user string, t long", times, name="paid")
        >>> groups = ordered.cogroup(paid).where("user").equal_to("user").window(hw.tumbling("1 s"))
        >>> groups.apply(lambda o, p, ctx: [(ctx.key, len(o) - len(p))], "user string, open int").collect()
        [Row(user='ann', open=0), Row(user='bob', open=1)]
        """
        self._check_meets(other, "cogroup")
        return CoGroupedStreams(self, other)

    def window_all(self, windows: WindowAssigner) -> WindowedStream:
        """Windows over all rows together, in one place."""
        return WindowedStream(self._env, Windowed(flow=self._flow.together(), assigner=windows))

    def rebalance(self) -> Stream:
        """Deal the rows out evenly over the subtasks, in turn: what evens out splits or keys of uneven size."""
        return Stream(self._env, self._flow.moved(REBALANCE))

    def partition_custom(
        self,
        partitioner: Callable[[Any, int], int],
        by: str | Sequence[str] | Callable[[Any], Any],
        *,
        type: str | None = None,  # noqa: A002
    ) -> Stream:
        """Send each row to the subtask that `partitioner(key, parallelism)` gives, counted from 0.

        `by` says what the key is, as for `key_by`: a column, several, or a function with the type of its result. The
        partitioner is called once for each key of a batch, and must give the same for a key wherever it runs.

        `partition_custom(lambda shard, n: shard % n, by="shard")`
        """
        given = tuple(by) if isinstance(by, list | tuple) else (by,)
        key = Key.of(self.schema, given, type, step="partition_custom")
        return Stream(self._env, self._flow.partitioned(key, partitioner))

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
        everywhere = Stream(self._env, self._flow.everywhere())
        return BroadcastStream(everywhere, states) if states else everywhere

    def global_(self) -> Stream:
        """Send every row to the first subtask."""
        return Stream(self._env, self._flow.together())

    # -- changelogs -------------------------------------------------------------------------------------------------

    def as_changelog(self, *, key: str | Sequence[str] | None = None, name: str = "as_changelog") -> Step:
        """Read the rows as changes of a table: the string column `row_kind` says what each does, and is taken away.

        Without `key`, what goes is told whole, by '-U' or '-D'. With `key`, a row replaces the one with its key, and '-D'
        takes it away; if there is no column `row_kind`, every row replaces another.

        >>> env = Environment("doc", engine="local")
        >>> rows = [("ann", 3, "+I"), ("bob", 4, "+I"), ("ann", 3, "-D")]
        >>> votes = env.from_rows(rows, "user string, n long, row_kind string").as_changelog()
        >>> votes.select("n", "user != 'ann' as counts").key_by("counts").agg(total=hw.sum("n")).collect()
        [Row(counts=True, total=4, row_kind='+I')]
        """
        return self._add(AsChangelogNode.of(self._flow, key=key, name=name))

    def with_row_kind(self) -> Step:
        """The changes as rows that are only added, with a last column `row_kind`: '+I', '-U', '+U' or '-D'."""
        return self._add(WithRowKindNode.of(self._flow))

    # -- ends -------------------------------------------------------------------------------------------------------

    def sink(self, sink: Sink, *, name: str = "sink") -> Step:
        """Hand the rows to a sink."""
        return self._add(SinkNode.of(self._flow, sink=sink, name=name))

    def to_dataframe_sink(
        self, write: Callable[[Any, int], None], *, idempotent: bool = False, name: str = "dataframe"
    ) -> Step:
        """Call `write(frame, epoch)` with the rows of each committed epoch as a DataFrame of Spark, in the driver.

        After a failure it may be called again with an epoch and the same rows; if that changes nothing, say
        `idempotent=True`.
        """
        return self.sink(DataFrameSink(write, idempotent=idempotent), name=name)

    def print(self) -> Step:
        """Print the rows of each committed epoch."""
        return self.sink(ConsoleSink(), name="print")

    def collect(self) -> list[Any]:
        """Run this stream's part of the job over what input there is, to the end, and give its rows."""
        return self._env._collect(self)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _add(self, node: Node) -> Step:
        return Step(self._env, self._env.graph.add(node))

    def _check_meets(self, other: object, step: str) -> None:
        """Only streams of one job can meet."""
        if not isinstance(other, Stream):
            raise GraphError.bad_argument(step, "needs another stream", other, "pass a stream")
        if other._env is not self._env:
            raise GraphError.other_environment(step)


class Step(Stream):
    """A stream that is the output of one step, which can be given a uid and whose side outputs can be read."""

    def with_uid(self, uid: str) -> Step:
        """Give the step its lasting identity: state, and the names of output files, belong to it."""
        self._env.graph.set_uid(self._flow.origin, uid)
        return self

    def side_output(self, tag: OutputTag) -> Stream:
        """The rows the step sends to a side output."""
        return Stream(self._env, self._env.graph.side_output(self._flow, tag))
