"""The fluent handle on a stream: each call adds a node to the graph and gives a handle on its output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

from headwater.descriptors import MapState
from headwater.durations import Duration
from headwater.errors import GraphError
from headwater.functions import OutputTag
from headwater.graph.edges import REBALANCE, Key, KeyPart
from headwater.graph.nodes import AsChangelogNode, AssignWatermarksNode, DeduplicateNode, WithRowKindNode
from headwater.graph.windowed import Windowed
from headwater.streams.broadcast import BroadcastConnectedStreams, BroadcastStream
from headwater.streams.connected import ConnectedStreams
from headwater.streams.joinable import Joinable
from headwater.streams.steps.columns import ColumnSteps
from headwater.streams.steps.ends import Ends
from headwater.streams.steps.rows import RowSteps
from headwater.streams.window_join import CoGroupedStreams, JoinedStreams
from headwater.streams.windowed import WindowedStream
from headwater.watermarks import Watermarks
from headwater.windows.assigners import WindowAssigner
from headwater.words import WindowJoinHow

if TYPE_CHECKING:
    from headwater.streams.keyed import KeyedStream
    from headwater.streams.table import Table


class Stream(RowSteps, ColumnSteps, Joinable, Ends):
    """A stream of rows. Handles are values: using one twice branches the stream."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say what is missing before what only a keyed stream can do."""
            from headwater.streams.keyed import KeyedStream

            if name.startswith("_") or name not in vars(KeyedStream):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            instead = ", or use .window_all(...) for windows over all rows" if name == "window" else ""
            raise GraphError.only_keyed(name, type(self).__name__, instead)

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

    def join(self, other: Stream, *, how: WindowJoinHow = "inner") -> JoinedStreams:
        """Pairs of rows of this stream and another that have a key and a window in common.

        >>> env = Environment("doc", engine="local")
        >>> times = hw.Watermarks.monotonous("t")
        >>> orders = env.from_rows([(1, "ann", 10)], "id long, user string, t long", times, name="orders")
        >>> visits = env.from_rows([("ann", "/home", 12)], "user string, page string, t long", times, name="visits")
        >>> pairs = orders.join(visits).where("user").equal_to("user").window(hw.tumbling("1 s"))
        >>> pairs.apply(lambda order, visit: (order.id, visit.page), "id long, page string").collect()
        [Row(id=1, page='/home')]

        `how` is 'inner', 'left', 'right' or 'full', which also show rows that met none in their window, when it fires; or
        'semi' or 'anti', which show the left rows that met some, or none.
        """
        self._check_meets(other, "join")
        return JoinedStreams(self, other, how=how)

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

    def assign_watermarks(self, watermarks: Watermarks, *, name: str = "assign_watermarks") -> Step:
        """Take event time anew, from a column, and let it move by this strategy; watermarks from above count no more.

        >>> env = Environment("doc", engine="local")
        >>> rows = env.from_rows([("a", 1, 10), ("b", 2, 30)], "k string, n long, paid long")
        >>> paid = rows.assign_watermarks(hw.Watermarks.bounded("paid", "5 ms"))
        >>> paid.key_by("k").window(hw.tumbling("20 ms")).agg(n=hw.sum("n")).select("k", "n").collect()
        [Row(k='a', n=1), Row(k='b', n=2)]

        For rows that come without event time, out of a running aggregate for example, and for those that get another one.
        The end of input still ends event time.
        """
        return self._add(AssignWatermarksNode.of(self._flow, watermarks=watermarks, name=name))

    def window_all(self, windows: WindowAssigner) -> WindowedStream:
        """Windows over all rows together, in one place."""
        return WindowedStream(self._env, Windowed(flow=self._flow.together(), assigner=windows))

    def deduplicate(self, by: str | Sequence[str], ttl: Duration | None = None, *, name: str = "deduplicate") -> Step:
        """The first row of each key, which is a column or several; others of that key are left out.

        With `ttl` a key is forgotten so long after the row that went on: in event time if rows have event time, else in
        processing time. Without it every key is kept for ever.

        >>> env = Environment("doc", engine="local")
        >>> rows = env.from_rows([(1, "a"), (2, "b"), (1, "c")], "id long, v string")
        >>> rows.deduplicate("id", ttl="1 h").collect()
        [Row(id=1, v='a'), Row(id=2, v='b')]
        """
        return self._add(DeduplicateNode.of(self._flow, by=by, ttl=ttl, name=name))

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
    def broadcast(self, state: MapState[Any, Any], /, *states: MapState[Any, Any]) -> BroadcastStream: ...

    def broadcast(self, *states: MapState[Any, Any]) -> Stream | BroadcastStream:
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

    def to_table(self, *, time: str | None = None) -> Table:
        """The stream as a table of SQL; `time` is the column that holds its event time.

        >>> env = Environment("doc", engine="local")
        >>> env.from_rows([(1,), (2,)], "n long").to_table().where("n > 1").collect()
        [Row(n=2)]
        """
        from headwater.sql.bind.scan import scanned
        from headwater.sql.declared import stream_table
        from headwater.streams.table import Table

        return Table(self._env, scanned(stream_table("stream", self._flow, time)))

    def with_row_kind(self) -> Step:
        """The changes as rows that are only added, with a last column `row_kind`: '+I', '-U', '+U' or '-D'."""
        return self._add(WithRowKindNode.of(self._flow))


class Step(Stream):
    """A stream that is the output of one step, which can be given a uid and whose side outputs can be read."""

    def with_uid(self, uid: str) -> Step:
        """Give the step its lasting identity: state, and the names of output files, belong to it."""
        self._env.graph.set_uid(self._flow.origin, uid)
        return self

    def side_output(self, tag: OutputTag) -> Stream:
        """The rows the step sends to a side output."""
        return Stream(self._env, self._env.graph.side_output(self._flow, tag))
