"""Two keyed inputs whose rows are put side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pyarrow as pa

from headwater.data.row_kinds import ROW_KIND
from headwater.data.schema import Schema, type_ddl
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.functions import OutputTag
from headwater.graph.checks import check_both_keyed, check_has_watermarks, check_tag
from headwater.graph.connected import pair_edges
from headwater.graph.edges import Key
from headwater.graph.flow import Flow
from headwater.graph.nodes.core import Node

SUFFIX = "_right"
"""What a right column is called by, beside its own name, when that is taken."""


@dataclass(frozen=True, kw_only=True)
class JoinNode(Node):
    """Two keyed inputs whose rows are put side by side: the left columns, then those of the right in `right_columns`."""

    is_stateful: ClassVar[bool] = True
    waits_by_side: ClassVar[bool] = True

    key: Key
    right_key: Key
    left_schema: Schema
    right_schema: Schema
    right_columns: tuple[str, ...]

    def kept(self) -> dict[str, Any]:
        return {
            "key": self.key.typed(),
            "right key": self.right_key.describe(),
            "left rows": self.left_schema.ddl(),
            "right rows": self.right_schema.ddl(),
        }


@dataclass(frozen=True, kw_only=True)
class IntervalJoinNode(JoinNode):
    """Pairs of rows with `left time + lower <= right time <= left time + upper`."""

    operation: ClassVar[str] = "interval_join"

    lower_ms: int
    upper_ms: int
    late_left: OutputTag | None
    late_right: OutputTag | None
    unmatched_left: OutputTag | None
    unmatched_right: OutputTag | None

    @classmethod
    def of(  # noqa: PLR0913  each side has its own outputs
        cls,
        left: Flow,
        right: Flow,
        *,
        between: tuple[Duration, Duration],
        lower_inclusive: bool = True,
        upper_inclusive: bool = True,
        late_left: OutputTag | None = None,
        late_right: OutputTag | None = None,
        unmatched_left: OutputTag | None = None,
        unmatched_right: OutputTag | None = None,
        suffix: str = SUFFIX,
        name: str = "interval_join",
    ) -> Self:
        check_both_keyed(left, right, name)
        check_has_watermarks(left, right, name)
        lower, upper = _bounds(between, name)
        lower, upper = lower + (not lower_inclusive), upper - (not upper_inclusive)
        if lower > upper:
            raise GraphError.bad_argument(
                name, "needs a lower bound that is not above the upper one", between, "swap or widen them"
            )
        tags: dict[str, Any] = {
            "late_left": late_left,
            "late_right": late_right,
            "unmatched_left": unmatched_left,
            "unmatched_right": unmatched_right,
        }
        for what, tag in tags.items():
            check_tag(tag, (left if what.endswith("left") else right).schema, name, what)
        given = [tag.name for tag in tags.values() if tag is not None]
        if len(given) != len(set(given)):
            raise GraphError.bad_argument(name, "needs side outputs of different names", given, "rename one")
        schema, shown = side_by_side(left, right, suffix, name)
        return cls(
            schema=schema, lower_ms=lower, upper_ms=upper, **tags, **join_settings(left, right, name=name, shown=shown)
        )

    def kept(self) -> dict[str, Any]:
        marks = self.unmatched_left is not None or self.unmatched_right is not None
        words = {**super().kept(), "between": [self.lower_ms, self.upper_ms]}
        return {**words, "tells unmatched rows": True} if marks else words


@dataclass(frozen=True, kw_only=True)
class RegularJoinNode(JoinNode):
    """Pairs of all rows so far, and padded rows where `how` asks for them, as a changelog."""

    operation: ClassVar[str] = "regular_join"

    how: str
    ttl_ms: int | None

    @classmethod
    def of(
        cls,
        left: Flow,
        right: Flow,
        *,
        how: str = "inner",
        ttl: Duration | None = None,
        suffix: str = SUFFIX,
        name: str = "join_regular",
    ) -> Self:
        check_both_keyed(left, right, name)
        _check_how(how, ("inner", "left", "right", "full"), name)
        ttl_ms = None if ttl is None else duration_ms(ttl, what=f"ttl of {name}")
        if ttl_ms == 0:
            raise GraphError.bad_argument(
                name, "needs a ttl of at least 1 ms", ttl, "leave it out to keep rows for ever"
            )
        rows = _without_kind(left, name), _without_kind(right, name)
        schema, shown = side_by_side(left, right, suffix, name, rows)
        told = Schema(_padded(schema, len(rows[0].names), how).arrow.append(pa.field(ROW_KIND, pa.string())))
        settings = join_settings(left, right, name=name, shown=shown, rows=rows)
        return cls(schema=told, how=how, ttl_ms=ttl_ms, **settings)

    def kept(self) -> dict[str, Any]:
        return {**super().kept(), "how": self.how}

    @property
    def grows(self) -> bool:
        return self.ttl_ms is None


@dataclass(frozen=True, kw_only=True)
class TemporalJoinNode(JoinNode):
    """Each left row with the right row of its key that was the latest at the left row's time."""

    operation: ClassVar[str] = "temporal_join"

    how: str
    late: OutputTag | None

    @classmethod
    def of(
        cls,
        rows: Flow,
        versions: Flow,
        *,
        how: str = "inner",
        late: OutputTag | None = None,
        suffix: str = SUFFIX,
        name: str = "temporal_join",
    ) -> Self:
        check_both_keyed(rows, versions, name)
        check_has_watermarks(rows, versions, name)
        _check_how(how, ("inner", "left"), name)
        check_tag(late, rows.schema, name, "late")
        schemas = rows.schema, _without_kind(versions, name)
        schema, shown = side_by_side(rows, versions, suffix, name, schemas)
        settings = join_settings(rows, versions, name=name, shown=shown, rows=schemas)
        return cls(schema=_padded(schema, len(schemas[0].names), how), how=how, late=late, **settings)

    def kept(self) -> dict[str, Any]:
        return {**super().kept(), "how": self.how}


def side_by_side(
    left: Flow, right: Flow, suffix: str, step: str, rows: tuple[Schema, Schema] | None = None
) -> tuple[Schema, tuple[str, ...]]:
    """The columns of both sides, and which of the right ones they are; `rows` are the schemas where not all are shown.

    Key columns with the same names on both sides are shown once. A right column whose name is taken gets the suffix.
    """
    left_rows, right_rows = rows or (left.schema, right.schema)
    once = set(right.key.columns) if left.key.columns == right.key.columns else set()
    fields = list(left_rows.arrow)
    shown = tuple(name for name in right_rows.names if name not in once)
    for name in shown:
        field = right_rows.field(name)
        taken = {other.name for other in fields}
        fields.append(field.with_name(name + suffix) if name in taken else field)
    names = [field.name for field in fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise GraphError.bad_argument(
            step,
            "gives the columns of both sides, which need names of their own",
            ", ".join(twice),
            "give another suffix",
        )
    return Schema(pa.schema(fields)), shown


def join_settings(
    left: Flow, right: Flow, *, name: str, shown: tuple[str, ...], rows: tuple[Schema, Schema] | None = None
) -> dict[str, Any]:
    """What all joins have: these of the right columns are shown, and whole rows are kept, or what `rows` has of them."""
    left_rows, right_rows = rows or (left.schema, right.schema)
    return {
        "name": name,
        "inputs": pair_edges(left, right),
        "key": left.key,
        "right_key": right.key,
        "left_schema": left_rows,
        "right_schema": right_rows,
        "right_columns": shown,
    }


def _bounds(between: Any, step: str) -> tuple[int, int]:
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise GraphError.bad_argument(step, "needs two bounds", between, "write between=('-5 s', '10 s')")
    lower, upper = (duration_ms(bound, what=f"a bound of {step}", negative=True) for bound in between)
    return lower, upper


def _padded(schema: Schema, left_columns: int, how: str) -> Schema:
    """The columns of both sides; those of a side that a row may lack can be null."""
    lacks_left, lacks_right = how in ("right", "full"), how in ("left", "full")
    may_lack = [lacks_left] * left_columns + [lacks_right] * (len(schema.names) - left_columns)
    fields = [field.with_nullable(field.nullable or lacks) for field, lacks in zip(schema.arrow, may_lack, strict=True)]
    return Schema(pa.schema(fields))


def _check_how(how: str, known: tuple[str, ...], step: str) -> None:
    if how not in known:
        raise GraphError.bad_argument(step, f"joins by how={' or '.join(map(repr, known))}", how, "choose one of them")


def _without_kind(flow: Flow, step: str) -> Schema:
    """The columns of a changelog's rows, or of rows that are none, without the one that says what they do."""
    if ROW_KIND not in flow.schema.names:
        return flow.schema
    dtype = flow.schema.field(ROW_KIND).type
    if not pa.types.is_string(dtype) or ROW_KIND in flow.key.columns:
        raise GraphError.bad_argument(
            step,
            f"reads the column {ROW_KIND!r}, a string, as what a row of a changelog does",
            "a key" if ROW_KIND in flow.key.columns else type_ddl(dtype),
            "rename the column with select",
        )
    return Schema(pa.schema([field for field in flow.schema.arrow if field.name != ROW_KIND]))
