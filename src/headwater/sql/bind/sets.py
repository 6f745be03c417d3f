"""UNION, INTERSECT and EXCEPT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.data.functions.terms import Term
from headwater.data.functions.types import BIGINT, BOOLEAN, array
from headwater.sql.bind.aggregates import kernel_of
from headwater.sql.relations import (
    Aggregate,
    Called,
    Distinct,
    Field,
    Filter,
    Project,
    Relation,
    Scalar,
    Union,
    Unnest,
    of_term,
    only,
    passed_on,
    unused,
)

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder


def combined(binder: QueryBinder, tree: exp.SetOperation) -> Relation:
    """Two queries as one."""
    what = type(tree).__name__.upper()
    trees = _parts(tree) if isinstance(tree, exp.Union) else [tree.this, tree.expression]
    parts = binder.alike([binder.query(part) for part in trees], trees, what)
    is_distinct = tree.args.get("distinct") is not False
    if isinstance(tree, exp.Union):
        united = Union(tuple(parts))
        return Distinct(united) if is_distinct else united
    return _compared(parts, keeps_both=isinstance(tree, exp.Intersect), is_distinct=is_distinct)


def _parts(tree: exp.Expr) -> list[exp.Expr]:
    """The parts of several UNIONs of a kind, as one."""
    is_distinct = tree.args.get("distinct")
    found: list[exp.Expr] = []
    node: exp.Expr = tree
    while isinstance(node, exp.Union) and node.args.get("distinct") == is_distinct and not node.args.get("with_"):
        found.append(node.expression)
        node = node.this
    return [node, *reversed(found)]


def _compared(parts: list[Relation], *, keeps_both: bool, is_distinct: bool) -> Relation:
    """Rows of the left part that are in the right one too, or that are not: counted on each side.

    Where equal rows are told apart, each is there as often as in both, or as often as the left part has it more.
    """
    names = parts[0].names
    sides = [unused(name, names) for name in ("in_left", "in_right")]
    marked = []
    for at, part in enumerate(parts):
        marks = tuple((side, _mark(side, is_there=number == at)) for number, side in enumerate(sides))
        marked.append(Project(part, (*passed_on(part, names), *marks)))
    both = Union(tuple(marked))
    calls = tuple(Called(f"count_{side}", *kernel_of("count", side, BIGINT)) for side in sides)
    counted = Aggregate(both, tuple(names), calls)
    left, right = (f'"count_{side}"' for side in sides)
    if not is_distinct:
        times = f"least({left}, {right})" if keeps_both else f"greatest({left} - {right}, 0)"
        each = of_term(counted, Term(array(BIGINT), f"range({times})"))
        return only(Unnest(counted, each, (Field(unused("copy", counted.names), BIGINT),)), names)
    text = f"({left} > 0 AND {right} {'> 0' if keeps_both else '= 0'})"
    return only(Filter(counted, of_term(counted, Term(BOOLEAN, text))), names)


def _mark(side: str, *, is_there: bool) -> Scalar:
    text = "CAST(1 AS BIGINT)" if is_there else "CAST(NULL AS BIGINT)"
    return Scalar(exp.Anonymous(this=f"{side} {text}", expressions=[]), Term(BIGINT, text))
