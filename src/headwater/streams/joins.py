"""Joins of keyed streams: what they need, and the steps they become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.data.row_kinds import ROW_KIND
from headwater.data.schema import Schema, type_ddl
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.functions import OutputTag
from headwater.graph.nodes import IntervalJoinNode, RegularJoinNode, TemporalJoinNode
from headwater.streams.pairs import add_join, check_has_watermarks, check_keyed, check_tag, joined

if TYPE_CHECKING:
    from headwater.streams.stream import Step, Stream


def add_interval_join(
    left: Stream,
    right: Stream,
    *,
    between: Any,
    inclusive: tuple[bool, bool],
    tags: Mapping[str, OutputTag | None],
    suffix: str,
    name: str,
) -> Step:
    """Two streams joined by key and by how far apart their times are."""
    check_keyed(left, right, name)
    check_has_watermarks(left, right, name)
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise GraphError.bad_argument(name, "needs two bounds", between, "write between=('-5 s', '10 s')")
    lower, upper = (duration_ms(bound, what=f"a bound of {name}", negative=True) for bound in between)
    lower, upper = lower + (not inclusive[0]), upper - (not inclusive[1])
    if lower > upper:
        raise GraphError.bad_argument(
            name, "needs a lower bound that is not above the upper one", between, "swap or widen them"
        )
    for what, tag in tags.items():
        check_tag(tag, left if what.endswith("left") else right, name, what)
    given = [tag.name for tag in tags.values() if tag is not None]
    if len(given) != len(set(given)):
        raise GraphError.bad_argument(name, "needs side outputs of different names", given, "rename one")
    schema, shown = joined(left, right, suffix, name)
    return add_join(left, right, IntervalJoinNode, name, schema, shown=shown, lower_ms=lower, upper_ms=upper, **tags)


def add_regular_join(left: Stream, right: Stream, *, how: str, ttl: Duration | None, suffix: str, name: str) -> Step:
    """Two streams joined by key over all their rows, as a changelog."""
    check_keyed(left, right, name)
    _check_how(how, ("inner", "left", "right", "full"), name)
    ttl_ms = None if ttl is None else duration_ms(ttl, what=f"ttl of {name}")
    if ttl_ms == 0:
        raise GraphError.bad_argument(name, "needs a ttl of at least 1 ms", ttl, "leave it out to keep rows for ever")
    rows = _without_kind(left, name), _without_kind(right, name)
    schema, shown = joined(left, right, suffix, name, rows)
    told = Schema(_padded(schema, len(rows[0].names), how).arrow.append(pa.field(ROW_KIND, pa.string())))
    kept = {"left_schema": rows[0], "right_schema": rows[1]}
    return add_join(left, right, RegularJoinNode, name, told, shown=shown, how=how, ttl_ms=ttl_ms, **kept)


def add_temporal_join(
    rows: Stream, versions: Stream, *, how: str, late: OutputTag | None, suffix: str, name: str
) -> Step:
    """Rows joined with the versions of their keys that were valid at the rows' times."""
    check_keyed(rows, versions, name)
    check_has_watermarks(rows, versions, name)
    _check_how(how, ("inner", "left"), name)
    check_tag(late, rows, name, "late")
    schemas = rows.schema, _without_kind(versions, name)
    schema, shown = joined(rows, versions, suffix, name, schemas)
    told = _padded(schema, len(schemas[0].names), how)
    kept = {"right_schema": schemas[1]}
    return add_join(rows, versions, TemporalJoinNode, name, told, shown=shown, how=how, late=late, **kept)


def _padded(schema: Schema, left_columns: int, how: str) -> Schema:
    """The columns of both sides; those of a side that a row may lack can be null."""
    lacks_left, lacks_right = how in ("right", "full"), how in ("left", "full")
    may_lack = [lacks_left] * left_columns + [lacks_right] * (len(schema.names) - left_columns)
    fields = [field.with_nullable(field.nullable or lacks) for field, lacks in zip(schema.arrow, may_lack, strict=True)]
    return Schema(pa.schema(fields))


def _check_how(how: str, known: tuple[str, ...], step: str) -> None:
    if how not in known:
        raise GraphError.bad_argument(step, f"joins by how={' or '.join(map(repr, known))}", how, "choose one of them")


def _without_kind(stream: Stream, step: str) -> Schema:
    """The columns of a changelog's rows, or of rows that are none, without the one that says what they do."""
    if ROW_KIND not in stream.schema.names:
        return stream.schema
    dtype = stream.schema.field(ROW_KIND).type
    if not pa.types.is_string(dtype) or ROW_KIND in stream.key.columns:
        raise GraphError.bad_argument(
            step,
            f"reads the column {ROW_KIND!r}, a string, as what a row of a changelog does",
            "a key" if ROW_KIND in stream.key.columns else type_ddl(dtype),
            "rename the column with select",
        )
    return Schema(pa.schema([field for field in stream.schema.arrow if field.name != ROW_KIND]))
