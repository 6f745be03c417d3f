"""Steps that give the rows of a key that come first in an order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import pyarrow as pa

from headwater.data.schema import Schema, type_ddl
from headwater.durations import Duration
from headwater.errors import GraphError
from headwater.graph.changelog import APPEND_OR_RETRACT, Changelog, ChangelogMode, Modes
from headwater.graph.checks import check_keyed, check_time_column, checked_ttl
from headwater.graph.edges import Key
from headwater.graph.flow import Flow
from headwater.graph.nodes.core import Node, lasts, ttls


@dataclass(frozen=True)
class Ranking:
    """Which of the rows of a key are given: those of the ranks from `first` to `n` in an order, counted from 1."""

    n: int
    order: Mapping[str, bool]
    """The columns that rows are ordered by, each with whether the largest come first."""
    first: int = 1
    nulls_flipped: tuple[str, ...] = ()
    """The columns in which null is not the least value, but the greatest."""

    @classmethod
    def of(
        cls,
        rows: Schema,
        *,
        n: int,
        by: str | Sequence[str],
        descending: bool | Sequence[bool],
        nulls_first: bool | Sequence[bool] | None,
        first: int,
        step: str,
    ) -> Self:
        if type(n) is not int or n < 1:
            raise GraphError.bad_argument(step, "needs a number of rows of 1 or more", n, "write top_n(3, by='price')")
        if type(first) is not int or not 1 <= first <= n:
            raise GraphError.bad_argument(step, f"gives ranks from 1 or more to {n}", first, "choose a smaller one")
        order = _order(rows, by, step, descending=descending)
        nulls = [nulls_first] * len(order) if nulls_first is None or isinstance(nulls_first, bool) else [*nulls_first]
        if len(nulls) != len(order):
            raise GraphError.bad_argument(
                step, "says for each column whether nulls come first", nulls_first, f"give {len(order)}"
            )
        flipped = [name for (name, falls), ahead in zip(order.items(), nulls, strict=True) if ahead is falls]
        return cls(n, order, first, tuple(flipped))

    def kept(self) -> dict[str, Any]:
        """In words; those that users seldom say are left out where they did not."""
        words: dict[str, Any] = {"n": self.n, "order": dict(self.order)}
        words |= {"first": self.first} if self.first != 1 else {}
        return {**words, "nulls flipped": list(self.nulls_flipped)} if self.nulls_flipped else words


@dataclass(frozen=True, kw_only=True)
class TopNNode(Node):
    """Of each key the rows that come first in an order, as a changelog: each with its rank, or without."""

    operation: ClassVar[str] = "top_n"
    is_stateful: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True
    passes_times: ClassVar[bool] = True
    taken: ClassVar[Modes] = APPEND_OR_RETRACT

    key: Key
    rows: Schema
    ranking: Ranking
    takes_back: bool
    """Whether rows may be taken back, so that all of them are kept."""
    has_rank: bool = True
    """Whether rows are given with their rank, as the last column."""
    ttl_ms: int | None = None
    """For how long a row is kept, by the clock, if not for ever."""

    @classmethod
    def of(
        cls,
        flow: Flow,
        *,
        n: int,
        by: str | Sequence[str],
        partition_by: Sequence[str] | None = None,
        descending: bool | Sequence[bool] = True,
        nulls_first: bool | Sequence[bool] | None = None,
        first: int = 1,
        rank: str | None = "rank",
        ttl: Duration | None = None,
        name: str = "top_n",
    ) -> Self:
        """The rank is counted from 1, in a last column of that name, if any. Rows that are equal in order go by arrival.

        The key is that of the flow, or the columns in `partition_by`; with none of these, all rows have one key. Null is
        the least value, unless `nulls_first` says for columns where nulls come.
        """
        keyed = _partitioned(flow, partition_by, name)
        ranking = Ranking.of(
            flow.schema, n=n, by=by, descending=descending, nulls_first=nulls_first, first=first, step=name
        )
        return cls(
            name=name,
            inputs=keyed.edges,
            schema=_shown(flow.schema, rank, name),
            changelog=_told(keyed.key.columns, rank, n),
            key=keyed.key,
            rows=flow.schema,
            ranking=ranking,
            takes_back=not flow.changelog.is_append_only,
            has_rank=rank is not None,
            ttl_ms=checked_ttl(ttl, name),
        )

    def lasting(self, ttl_ms: int) -> Self:
        return replace(self, ttl_ms=self.ttl_ms or ttl_ms)

    @property
    def sends_before(self) -> bool:
        """Whether a row comes with the one whose place it takes."""
        return self.changelog.mode is ChangelogMode.RETRACT

    @property
    def tells_places(self) -> bool:
        """Whether a row takes the place of the one of its key and rank; else rows only come and go."""
        return self.has_rank or self.ranking.n == 1

    def kept(self) -> dict[str, Any]:
        words = {"key": self.key.typed(), "rows": self.rows.ddl(), **self.ranking.kept()}
        words |= ttls({"rows": lasts(self.ttl_ms, "it came")})
        return {**words, "takes back": True} if self.takes_back else words


def _told(key: Sequence[str], rank: str | None, n: int) -> Changelog:
    """With a rank, of a key and a rank there is one row at a time; without, of a key if there is one rank."""
    if rank is not None:
        return Changelog(ChangelogMode.UPSERT, (*key, rank), keeps_times=False)
    if n == 1 and key:
        return Changelog(ChangelogMode.UPSERT, tuple(key), keeps_times=False)
    return Changelog(ChangelogMode.RETRACT, keeps_times=False)


@dataclass(frozen=True, kw_only=True)
class WindowTopNNode(Node):
    """Of each window and key the rows that come first in an order, given when the window is over.

    Windows are those of steps before, whose rows have the end of theirs in a column.
    """

    operation: ClassVar[str] = "window_top_n"
    is_stateful: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True

    key: Key
    rows: Schema
    window_end: str
    ranking: Ranking
    has_rank: bool = True

    @classmethod
    def of(
        cls,
        flow: Flow,
        *,
        window_end: str,
        n: int,
        by: str | Sequence[str],
        partition_by: Sequence[str] = (),
        descending: bool | Sequence[bool] = True,
        nulls_first: bool | Sequence[bool] | None = None,
        first: int = 1,
        rank: str | None = "rank",
        name: str = "window_top_n",
    ) -> Self:
        """The window belongs to the key in any case; see `TopNNode.of` for the rest."""
        check_time_column(flow.schema, window_end, name)
        columns = (window_end, *(column for column in partition_by if column != window_end))
        keyed = _partitioned(flow, columns, name)
        ranking = Ranking.of(
            flow.schema, n=n, by=by, descending=descending, nulls_first=nulls_first, first=first, step=name
        )
        return cls(
            name=name,
            inputs=keyed.edges,
            schema=_shown(flow.schema, rank, name),
            key=keyed.key,
            rows=flow.schema,
            window_end=window_end,
            ranking=ranking,
            has_rank=rank is not None,
        )

    @property
    def waits_for_event_time(self) -> bool:
        return True

    def kept(self) -> dict[str, Any]:
        words = {"key": self.key.typed(), "rows": self.rows.ddl(), "window end": self.window_end}
        return {**words, **self.ranking.kept()}


def _partitioned(flow: Flow, columns: Sequence[str] | None, step: str) -> Flow:
    """The rows by the columns of a partition, or all together; without a word, by the key that they have."""
    if columns is not None:
        return flow.keyed(Key.of(flow.schema, tuple(columns), step=step)) if columns else flow.together()
    check_keyed(flow, step)
    if flow.key.function is not None:
        raise GraphError.bad_argument(
            step,
            "gives a changelog by key and rank, so the key must be columns",
            flow.key.describe(),
            "compute the key as a column first, with with_column or map",
        )
    return flow


def _shown(rows: Schema, rank: str | None, step: str) -> Schema:
    if rank is None:
        return rows
    if rank in rows.names or not isinstance(rank, str):
        raise GraphError.bad_argument(step, "shows ranks in a new column", rank, "give another name as rank=")
    return Schema.of(rows.arrow.append(pa.field(rank, pa.int64())))


def _order(rows: Schema, by: str | Sequence[str], step: str, *, descending: bool | Sequence[bool]) -> dict[str, bool]:
    columns = (by,) if isinstance(by, str) else tuple(by)
    falling = (descending,) * len(columns) if isinstance(descending, bool) else tuple(descending)
    if not columns or len(columns) != len(falling):
        raise GraphError.bad_argument(
            step, "needs columns to order by, and for each whether it is descending", (by, descending), "name them"
        )
    for column in columns:
        dtype = rows.field(column).type
        if pa.types.is_nested(dtype) or pa.types.is_null(dtype):
            raise GraphError.bad_argument(
                step,
                "orders by values that are less or greater",
                f"{column} {type_ddl(dtype)}",
                "choose another column",
            )
    return dict(zip(columns, falling, strict=True))
