"""Joins of all kinds, by the nodes that streams have for them."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

from headwater.data.functions.terms import Term
from headwater.data.functions.types import BOOLEAN, Type, quoted, type_of
from headwater.functions import OutputTag
from headwater.graph.flow import Flow
from headwater.graph.meeting import join_in_windows
from headwater.graph.nodes import IntervalJoinNode, LookupJoinNode, RegularJoinNode, TemporalJoinNode
from headwater.graph.windowed import WindowedPair
from headwater.sql.build.builder import Builder, as_they_are, builds
from headwater.sql.build.groups import MOMENT, at_last_moment
from headwater.sql.errors import SqlError
from headwater.sql.relations import (
    Deduplicate,
    Field,
    IntervalJoin,
    Join,
    LookupJoin,
    Project,
    RegularJoin,
    Relation,
    Scan,
    TemporalJoin,
    View,
    WindowJoin,
)
from headwater.windows.assigners import tumbling


def _right(builder: Builder, relation: Join, flow: Flow) -> Flow:
    """The right rows, with the names that their columns have behind the join."""
    columns = {
        name: Term(field.type, quoted(field.name))
        for field, name in zip(relation.right.fields, relation.right_names, strict=True)
    }
    return builder.compute(flow, columns, kind="right")


def _keyed(
    builder: Builder, relation: Join, left: Flow, right: Flow, more: tuple[tuple[str, str], ...] = ()
) -> tuple[Flow, Flow]:
    """Both sides by what must be equal; where nothing must, all in one place."""
    shown = relation.shown_right
    pairs = [(one, shown[other]) for one, other in (*relation.equal, *more)]
    if not pairs:
        left, one = builder.in_one_place(left)
        right, other = builder.in_one_place(right)
        if one == other:
            names = {name: Term(_type(right, name), quoted(name)) for name in right.schema.names if name != other}
            other = f"{one}_right"
            right = builder.compute(right, {**names, other: Term(BOOLEAN, quoted(one))}, kind="columns")
        pairs = [(one, other)]
    what = relation.label
    return (
        builder.keyed(left, tuple(one for one, _ in pairs), what),
        builder.keyed(right, tuple(other for _, other in pairs), what),
    )


def _type(flow: Flow, name: str) -> Type:
    return type_of(flow.schema.field(name).type)


def _shown(builder: Builder, relation: Join, flow: Flow) -> Flow:
    """What a join shows, for which the rest of its condition is true."""
    condition = None if relation.rest is None or _is_outer(relation) else relation.rest.term
    return builder.compute(flow, as_they_are(relation), condition=condition, kind="columns")


def _is_outer(relation: Join) -> bool:
    return relation.how in ("left", "right", "full")


@builds(RegularJoin)
def _regular(builder: Builder, relation: RegularJoin) -> Flow:
    left, right = builder.flow(relation.left), _right(builder, relation, builder.flow(relation.right))
    left, right = _keyed(builder, relation, left, right)
    how = {"semi": "inner", "anti": "left"}.get(relation.how, relation.how)
    left_ttl, right_ttl = (builder.ttl if ms is None else dt.timedelta(milliseconds=ms) for ms in relation.ttls)
    node = RegularJoinNode.of(left, right, how=how, ttl=(left_ttl, right_ttl), suffix="_of_right")
    flow = builder.add(node, "join")
    if relation.how == "anti":
        first = relation.shown_right[relation.equal[0][1]]
        return builder.compute(
            flow, as_they_are(relation), condition=Term(BOOLEAN, f"({quoted(first)} IS NULL)"), kind="columns"
        )
    return _shown(builder, relation, flow)


@builds(IntervalJoin)
def _interval(builder: Builder, relation: IntervalJoin) -> Flow:
    left = builder.flow(relation.left)
    right = _right(builder, relation, builder.flow(relation.right))
    left_keyed, right_keyed = _keyed(builder, relation, left, right)
    between = tuple(dt.timedelta(milliseconds=bound) for bound in (relation.lower, relation.upper))
    outer = {
        name: (side, keyed.key.columns)
        for name, kind, side, keyed in (
            ("unmatched_left", "left", left, left_keyed),
            ("unmatched_right", "right", right, right_keyed),
        )
        if relation.how in (kind, "full") and keyed.key is not None
    }
    tags: dict[str, Any] = {name: OutputTag(name, side.schema) for name, (side, _) in outer.items()}
    node = IntervalJoinNode.of(
        left_keyed,
        right_keyed,
        between=(between[0], between[1]),
        time=relation.domain,
        condition=relation.rest.term if relation.rest is not None and _is_outer(relation) else None,
        suffix="_of_right",
        **tags,
    )
    flow = builder.add(node, "interval_join")
    shown = _shown(builder, relation, flow)
    parts = [builder.compute(shown, as_they_are(relation), kind="columns")]
    for name, (side, key) in outer.items():
        columns = {
            field.name: Term(field.type, quoted(field.name) if field.name in side.schema.names else _null(field))
            for field in relation.fields
        }
        parts.append(builder.compute(builder.graph.side_output(flow, tags[name]), columns, kind="unmatched"))
        has_null = " OR ".join(f"{quoted(column)} IS NULL" for column in key)  # the join leaves such rows out
        parts.append(builder.compute(side, columns, condition=Term(BOOLEAN, f"({has_null})"), kind="without_key"))
    return parts[0].union(*parts[1:]) if len(parts) > 1 else parts[0]


def _null(field: Field) -> str:
    return f"CAST(NULL AS {field.type.duckdb})"


@builds(WindowJoin)
def _in_windows(builder: Builder, relation: WindowJoin) -> Flow:
    assert relation.left_window is not None
    assert relation.right_window is not None
    left = at_last_moment(builder, relation.left, relation.left_window)
    right = _right(builder, relation, at_last_moment(builder, relation.right, relation.right_window))
    same = (
        (relation.left_window.start, relation.right_window.start),
        (relation.left_window.end, relation.right_window.end),
    )
    renamed: dict[str, str] = {
        name: f"left_{name}" for name in ("window_start", "window_end") if name in left.schema.names
    }
    plain = {renamed.get(name, name): term for name, term in as_they_are(relation.left).items()}
    left = builder.compute(left, plain, kind="left")
    names: dict[str, str] = {
        name: f"right_{name}" for name in ("window_start", "window_end") if name in right.schema.names
    }
    right = builder.compute(
        right,
        {names.get(name, name): Term(_type(right, name), quoted(name)) for name in right.schema.names},
        kind="right",
    )
    shown = relation.shown_right
    pairs = [(renamed.get(one, one), names.get(shown[other], shown[other])) for one, other in (*relation.equal, *same)]
    pair = WindowedPair(
        left=builder.keyed(left, tuple(one for one, _ in pairs), "a window join"),
        right=builder.keyed(right, tuple(other for _, other in pairs), "a window join"),
        assigner=tumbling(MOMENT),
        how=relation.how,
    )
    condition = None if relation.rest is None else relation.rest.term
    inside = condition if _is_outer(relation) else None
    if inside is not None and relation.rest is not None and relation.rest.columns & {*renamed, *names}:
        raise SqlError.not_supported(
            None,
            f"a {relation.how} window join with a further condition on columns called window_start or window_end",
            "rename them in a subquery",
        )
    condition = condition if inside is None else None
    flow = builder.named(
        lambda: join_in_windows(builder.graph, pair, condition=inside, suffix="_of_right"), "window_join"
    )
    columns = {}
    for field in relation.fields:
        name = renamed.get(field.name) if field.name in relation.left.names else names.get(field.name)
        columns[field.name] = Term(field.type, quoted(name or field.name))
    flow = builder.compute(flow, columns, kind="columns")
    return (
        flow if condition is None else builder.compute(flow, as_they_are(relation), condition=condition, kind="where")
    )


@builds(TemporalJoin)
def _temporal(builder: Builder, relation: TemporalJoin) -> Flow:
    left = builder.timed(relation.left, relation.time)
    versions = _versions(relation.right)
    right = _right(builder, replace(relation, right=versions), builder.flow(versions))
    left, right = _keyed(builder, relation, left, right)
    node = TemporalJoinNode.of(left, right, how=relation.how, ttl=builder.ttl, suffix="_of_right")
    return _shown(builder, relation, builder.add(node, "temporal_join"))


@builds(LookupJoin)
def _looked_up(builder: Builder, relation: LookupJoin) -> Flow:
    assert isinstance(relation.right, Scan)
    lookup = relation.right.table.lookup
    node = LookupJoinNode.of(
        builder.flow(relation.left),
        table=lookup.open(),
        on=dict(relation.equal),
        how=relation.how,
        columns=relation.right.names,
        names=relation.right_names,
        condition=None if relation.rest is None else relation.rest.term,
        cache=lookup.cache,
        ttl=lookup.ttl,
    )
    return builder.compute(builder.add(node, "lookup_join"), as_they_are(relation), kind="columns")


def _versions(relation: Relation) -> Relation:
    """The rows of which each is a version of its key, where a view keeps the last."""
    if isinstance(relation, View | Project):
        return replace(relation, input=_versions(relation.input))
    if isinstance(relation, Deduplicate) and relation.is_last:
        return relation.input
    return relation
