"""Steps with two inputs: what two streams must have in common, and how the step is put into the graph."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.data.schema import Schema, type_ddl
from headwater.errors import GraphError
from headwater.functions import OutputTag
from headwater.graph.nodes import REBALANCE, RIGHT, Edge, JoinNode, Key, Node

if TYPE_CHECKING:
    from headwater.streams.stream import Step, Stream


def check_keyed_alike(left: Stream, right: Stream, step: str) -> None:
    """Both keyed by keys of one type, or neither: keys of different types would never meet."""
    if left.key.is_nothing and right.key.is_nothing:
        return
    if left.key.is_nothing or right.key.is_nothing:
        which = "left" if left.key.is_nothing else "right"
        raise GraphError.bad_argument(
            step, "needs both streams keyed or neither", f"a {which} one without key", "use key_by on it"
        )
    if _plain(left.key) != _plain(right.key):
        raise GraphError.bad_argument(
            step,
            "needs keys of one type on both sides",
            f"{left.key.describe()}: {type_ddl(left.key.type)} and {right.key.describe()}: {type_ddl(right.key.type)}",
            "cast one of them with select",
        )


def check_keyed(left: Stream, right: Stream, step: str) -> None:
    """Both keyed, by keys of one type."""
    if left.key.is_nothing and right.key.is_nothing:
        raise GraphError.bad_argument(step, "needs keyed streams", "streams without key", "use key_by on both")
    check_keyed_alike(left, right, step)


def check_has_watermarks(left: Stream, right: Stream, step: str) -> None:
    """Without watermarks event time stands still until the input ends: a live job would keep every row and give nothing."""
    for which, stream in (("left", left), ("right", right)):
        for source in stream._env.graph.sources_of(stream._edges):
            if source.watermarks.column is None and not source.source.bounded:
                raise GraphError.bad_argument(
                    step,
                    "needs event time on both sides, or it would keep all rows and give no result",
                    f"source {source.name!r} without watermarks on the {which} side",
                    "give the source a strategy, such as hw.Watermarks.bounded('time', '5 s')",
                )


def joined(
    left: Stream, right: Stream, suffix: str, step: str, rows: tuple[Schema, Schema] | None = None
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


def check_tag(tag: Any, stream: Stream, step: str, what: str) -> None:
    """A side output that takes rows of a side as they are has its schema."""
    if tag is None:
        return
    if not isinstance(tag, OutputTag) or tag.schema != stream.schema:
        got = str(tag.schema) if isinstance(tag, OutputTag) else tag
        raise GraphError.bad_argument(
            step, f"needs for {what} an hw.OutputTag of schema '{stream.schema}'", got, "declare the tag with it"
        )


def add_pair(left: Stream, right: Stream, cls: type[Node], name: str, schema: Schema, **settings: Any) -> Step:
    """Add a step with two inputs."""
    edges = (*moving(left._edges), *(dataclasses.replace(edge, side=RIGHT) for edge in moving(right._edges)))
    return left._add(cls, name, schema, edges, **settings)


def add_join(
    left: Stream,
    right: Stream,
    cls: type[JoinNode],
    name: str,
    schema: Schema,
    *,
    shown: tuple[str, ...],
    **settings: Any,
) -> Step:
    """Add a join that shows these of the right columns; it keeps whole rows unless `settings` say otherwise."""
    sides = {"key": left.key, "right_key": right.key, "left_schema": left.schema, "right_schema": right.schema}
    return add_pair(left, right, cls, name, schema, right_columns=shown, **{**sides, **settings})


def moving(edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """The edges, spread evenly where nobody said how: for a step that is on a level of its own."""
    return tuple(edge if edge.exchange.moves else dataclasses.replace(edge, exchange=REBALANCE) for edge in edges)


def _plain(key: Key) -> pa.DataType | list[pa.DataType]:
    """The type of a key, or the types of its parts without their names, which need not be the same."""
    return [field.type for field in key.type] if pa.types.is_struct(key.type) else key.type
