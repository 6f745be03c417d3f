"""Joins by key, as methods of streams. The streams are keyed already, or `on` says by which columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.data.schema import SchemaLike
from headwater.durations import Duration
from headwater.functions import OutputTag
from headwater.graph.edges import On
from headwater.graph.flow import Flow, joined_on
from headwater.graph.nodes import IntervalJoinNode, LookupJoinNode, RegularJoinNode, TemporalJoinNode
from headwater.graph.nodes.lookup import Cache
from headwater.streams.steps.handle import Handle
from headwater.words import LookupJoinHow, RegularJoinHow, TemporalJoinHow, TimeDomain

if TYPE_CHECKING:
    from headwater.streams.stream import Step, Stream


class Joinable(Handle):
    """What a stream can be joined by."""

    def interval_join(  # noqa: PLR0913  each side has its own outputs
        self,
        other: Stream,
        between: tuple[Duration, Duration],
        *,
        on: On | None = None,
        time: TimeDomain = "event",
        lower_inclusive: bool = True,
        upper_inclusive: bool = True,
        late_left: OutputTag | None = None,
        late_right: OutputTag | None = None,
        unmatched_left: OutputTag | None = None,
        unmatched_right: OutputTag | None = None,
        suffix: str = "_right",
        name: str = "interval_join",
    ) -> Step:
        """Pairs of rows of one key, where the other's time is between these bounds relative to this one's.

        >>> env = Environment("doc", engine="local")
        >>> by_ts = hw.Watermarks.monotonous("ts")
        >>> orders = env.from_rows([(1, 1000)], "id long, ts long", by_ts, name="orders")
        >>> paid = env.from_rows([(1, 3000), (1, 9000)], "id long, ts long", by_ts, name="paid")
        >>> orders.interval_join(paid, between=("0 s", "5 s"), on="id").collect()
        [Row(id=1, ts=1000, ts_right=3000)]

        A pair's time is the later of the two. Rows are kept until the watermark tells that nothing can meet them; those
        that met nothing then go to `unmatched_left` and `unmatched_right`. Rows behind the watermark are dropped and
        counted, or go to `late_left` and `late_right`. Rows whose key is null are left out.

        With `time="processing"` a row's time is that of the epoch it comes in. Nothing is late, no watermark is needed, and
        a pair has the event time of the row that came last.
        """
        left, right = self._joined_on(other, on, name)
        return self._add(
            IntervalJoinNode.of(
                left,
                right,
                between=between,
                time=time,
                lower_inclusive=lower_inclusive,
                upper_inclusive=upper_inclusive,
                late_left=late_left,
                late_right=late_right,
                unmatched_left=unmatched_left,
                unmatched_right=unmatched_right,
                suffix=suffix,
                name=name,
            )
        )

    def join_regular(
        self,
        other: Stream,
        *,
        on: On | None = None,
        how: RegularJoinHow = "inner",
        ttl: Duration | tuple[Duration | None, Duration | None] | None = None,
        suffix: str = "_right",
        name: str = "join_regular",
    ) -> Step:
        """Pairs of all rows of one key so far, as a changelog: `row_kind` says what a row does to the result.

        >>> env = Environment("doc", engine="local")
        >>> users = env.from_rows([(1, "ann"), (2, "bob")], "id long, user string", name="users")
        >>> orders = env.from_rows([(1, 30)], "id long, amount long", name="orders")
        >>> changes = users.join_regular(orders, on="id", how="left").collect()
        >>> [(row.user, row.amount, row.row_kind) for row in changes]
        [('ann', None, '+I'), ('bob', None, '+I'), ('ann', None, '-D'), ('ann', 30, '+I')]

        `how` is 'inner', 'left', 'right' or 'full'. An input with a column `row_kind` is read as a changelog. A row is
        kept for `ttl` of processing time after it came, or for ever; a pair is for left and right rows. What a row gives
        has that row's event time.
        """
        left, right = self._joined_on(other, on, name)
        return self._add(RegularJoinNode.of(left, right, how=how, ttl=ttl, suffix=suffix, name=name))

    def temporal_join(
        self,
        versions: Stream,
        *,
        on: On | None = None,
        how: TemporalJoinHow = "inner",
        late: OutputTag | None = None,
        ttl: Duration | None = None,
        suffix: str = "_right",
        name: str = "temporal_join",
    ) -> Step:
        """Each row with the version of its key that was valid at the row's event time: the latest one not after it.

        >>> env = Environment("doc", engine="local")
        >>> by_ts = hw.Watermarks.monotonous("ts")
        >>> orders = env.from_rows([("eur", 15), ("eur", 25)], "c string, ts long", by_ts, name="orders")
        >>> rates = env.from_rows([("eur", 1.1, 10), ("eur", 1.2, 20)], "c string, rate double, ts long", by_ts)
        >>> orders.temporal_join(rates, on="c").collect()
        [Row(c='eur', ts=15, rate=1.1, ts_right=10), Row(c='eur', ts=25, rate=1.2, ts_right=20)]

        A row comes out when the watermark has reached its time, with that time; without a version it is left out, or
        padded under how='left'. Rows that come after that are dropped and counted, or go to `late`. Versions with a
        column `row_kind` are a changelog: after '-D' or '-U' a key has no version until the next. With `ttl` the versions
        of a key are forgotten when neither side has had a row of it for so long, in processing time.
        """
        left, right = self._joined_on(versions, on, name)
        return self._add(TemporalJoinNode.of(left, right, how=how, late=late, ttl=ttl, suffix=suffix, name=name))

    def lookup_join(
        self,
        table: Any,
        *,
        on: On,
        how: LookupJoinHow = "left",
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

    def _joined_on(self, other: Stream, on: On | None, step: str) -> tuple[Flow, Flow]:
        self._check_meets(other, step)
        return joined_on(self._flow, other._flow, on, step)
