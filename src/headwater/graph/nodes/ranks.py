"""Steps that choose among the rows of a key: the first, or those that come first in an order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pyarrow as pa

from headwater.data.schema import Schema, type_ddl
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.graph.changelog import APPEND_OR_RETRACT, Changelog, ChangelogMode, Modes
from headwater.graph.checks import check_keyed
from headwater.graph.edges import Key
from headwater.graph.flow import Flow
from headwater.graph.nodes.core import Node


@dataclass(frozen=True, kw_only=True)
class DeduplicateNode(Node):
    """Lets the first row of each key through, and for a time no other."""

    operation: ClassVar[str] = "deduplicate"
    is_stateful: ClassVar[bool] = True
    passes_times: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True

    key: Key
    ttl_ms: int | None

    @classmethod
    def of(cls, flow: Flow, *, by: str | Sequence[str], ttl: Duration | None = None, name: str = "deduplicate") -> Self:
        """By one column or several. Without `ttl` a key is known for ever."""
        columns = (by,) if isinstance(by, str) else tuple(by)
        if not columns or not all(isinstance(column, str) for column in columns):
            raise GraphError.bad_argument(name, "needs columns to tell rows by", by, "write deduplicate('id')")
        ttl_ms = None if ttl is None else duration_ms(ttl, what=f"the ttl of step {name!r}")
        if ttl_ms == 0:
            raise GraphError.bad_argument(name, "needs a ttl of more than nothing", ttl, "leave it out for ever")
        key = Key.of(flow.schema, columns, step=name)
        return cls(name=name, inputs=flow.keyed(key).edges, schema=flow.schema, key=key, ttl_ms=ttl_ms)

    @property
    def grows(self) -> str | None:
        return "every key of its input" if self.ttl_ms is None else None

    def kept(self) -> dict[str, Any]:
        return {"key": self.key.typed()}


@dataclass(frozen=True, kw_only=True)
class TopNNode(Node):
    """Of each key the rows that come first in an order, each with its rank, as a changelog by key and rank."""

    operation: ClassVar[str] = "top_n"
    is_stateful: ClassVar[bool] = True
    passes_times: ClassVar[bool] = True
    taken: ClassVar[Modes] = APPEND_OR_RETRACT

    key: Key
    rows: Schema
    n: int
    order: Mapping[str, bool]
    """The columns that rows are ordered by, each with whether the largest come first."""
    takes_back: bool
    """Whether rows may be taken back, so that all of them are kept."""

    @classmethod
    def of(
        cls,
        flow: Flow,
        *,
        n: int,
        by: str | Sequence[str],
        descending: bool | Sequence[bool] = True,
        rank: str = "rank",
        name: str = "top_n",
    ) -> Self:
        """The rank is counted from 1, in a last column of that name. Rows that are equal in order go by arrival."""
        check_keyed(flow, name)
        if flow.key.function is not None:
            raise GraphError.bad_argument(
                name,
                "gives a changelog by key and rank, so the key must be columns",
                flow.key.describe(),
                "compute the key as a column first, with with_column or map",
            )
        if type(n) is not int or n < 1:
            raise GraphError.bad_argument(name, "needs a number of rows of 1 or more", n, "write top_n(3, by='price')")
        if rank in flow.schema.names or not isinstance(rank, str):
            raise GraphError.bad_argument(name, "shows ranks in a new column", rank, "give another name as rank=")
        return cls(
            name=name,
            inputs=flow.edges,
            schema=Schema.of(flow.schema.arrow.append(pa.field(rank, pa.int64()))),
            changelog=Changelog(ChangelogMode.UPSERT, (*flow.key.columns, rank), keeps_times=False),
            key=flow.key,
            rows=flow.schema,
            n=n,
            order=_order(flow, by, name, descending=descending),
            takes_back=not flow.changelog.is_append_only,
        )

    @property
    def sends_before(self) -> bool:
        """Whether a row comes with the one whose place it takes."""
        return self.changelog.mode is ChangelogMode.RETRACT

    def kept(self) -> dict[str, Any]:
        words = {"key": self.key.typed(), "rows": self.rows.ddl(), "n": self.n, "order": dict(self.order)}
        return {**words, "takes back": True} if self.takes_back else words


def _order(flow: Flow, by: str | Sequence[str], step: str, *, descending: bool | Sequence[bool]) -> dict[str, bool]:
    columns = (by,) if isinstance(by, str) else tuple(by)
    falling = (descending,) * len(columns) if isinstance(descending, bool) else tuple(descending)
    if not columns or len(columns) != len(falling):
        raise GraphError.bad_argument(
            step, "needs columns to order by, and for each whether it is descending", (by, descending), "name them"
        )
    for column in columns:
        dtype = flow.schema.field(column).type
        if pa.types.is_nested(dtype) or pa.types.is_null(dtype):
            raise GraphError.bad_argument(
                step,
                "orders by values that are less or greater",
                f"{column} {type_ddl(dtype)}",
                "choose another column",
            )
    return dict(zip(columns, falling, strict=True))
