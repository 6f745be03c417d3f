"""Outer joins with a condition besides equalities: the pairs, and the rows of which no pair is left.

The node of a join knows keys alone. What it lacks is said with others: rows that met none are those that are not among the
left, or right, halves of the pairs. It keeps the outer side twice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from headwater.data.functions.terms import Term
from headwater.data.functions.types import quoted
from headwater.sql.relations import (
    Distinct,
    Field,
    Filter,
    Project,
    RegularJoin,
    Relation,
    Scalar,
    Union,
    as_text,
    column_tree,
    only,
    passed_on,
    unused,
)


def take_outer_joins_apart(relation: Relation) -> Relation:
    """The same rows, without outer joins that have such a condition."""
    if isinstance(relation, Union):
        return Union(tuple(take_outer_joins_apart(part) for part in relation.parts))
    inputs: dict[str, Any] = {
        name: take_outer_joins_apart(value) for name, value in vars(relation).items() if isinstance(value, Relation)
    }
    if any(value is not getattr(relation, name) for name, value in inputs.items()):
        relation = replace(relation, **inputs)
    if isinstance(relation, RegularJoin) and relation.rest is not None and relation.how in ("left", "right", "full"):
        return _apart(relation)
    return relation


def _apart(join: RegularJoin) -> Relation:
    pairs: Relation = replace(join, how="inner", rest=None)
    assert join.rest is not None
    pairs = Filter(pairs, join.rest)
    parts: list[Relation] = [pairs]
    if join.how in ("left", "full"):
        parts.append(_padded(join, _alone(join.left, join.left.names, pairs), own=join.left.names))
    if join.how in ("right", "full"):
        alone = _alone(join.right, list(join.right_names), pairs)
        items = tuple(
            (shown, Scalar(column_tree(name), Term(field.type, quoted(name))))
            for name, shown, field in zip(join.right.names, join.right_names, join.right.fields, strict=True)
        )
        parts.append(_padded(join, Project(alone, items), own=list(join.right_names)))
    return Union(tuple(only(part, join.names) for part in parts))


def _alone(side: Relation, shown: list[str], pairs: Relation) -> Relation:
    """The rows of a side that are in no pair; `shown` is what their columns are called in pairs."""
    key = list(side.key or side.names)
    in_pairs = [dict(zip(side.names, shown, strict=True))[name] for name in key]
    name = unused("row_key", [*side.names, *shown])
    rows = Project(side, (*passed_on(side, side.names), (name, as_text(side, key))))
    met = Distinct(Project(pairs, ((name, as_text(pairs, in_pairs)),)))
    right = unused(f"{name}_met", rows.names)
    return only(RegularJoin(rows, met, "anti", ((name, name),), (right,)), side.names)


def _padded(join: RegularJoin, rows: Relation, own: list[str]) -> Relation:
    """Rows of one side with NULLs for the columns of the other."""
    items = tuple(
        (
            field.name,
            Scalar(column_tree(field.name), Term(field.type, quoted(field.name)))
            if field.name in own
            else _null(field),
        )
        for field in join.fields
    )
    return Project(rows, items)


def _null(field: Field) -> Scalar:
    text = f"CAST(NULL AS {field.type.duckdb})"
    return Scalar(exp.Anonymous(this=text, expressions=[]), Term(field.type, text))
