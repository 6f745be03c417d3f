"""Top-N and deduplication: a condition on ROW_NUMBER() bounds the rows that count."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from headwater.data.functions.terms import Term
from headwater.data.functions.types import BIGINT
from headwater.sql.errors import SqlError
from headwater.sql.relations import (
    Deduplicate,
    Numbered,
    Project,
    Rank,
    Relation,
    Scalar,
    View,
    Window,
    by_time,
    passed_on,
)

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder

_MOST: Final = 1 << 62
_TURNED: Final[dict[type[exp.Expr], type[exp.Expr]]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


def bounded(binder: QueryBinder, relation: Relation, trees: list[exp.Expr]) -> tuple[Relation, list[exp.Expr]]:
    """A relation with numbers of rows, bounded by the conditions that say how; and the other conditions."""
    numbered, number = _numbered(relation)
    if numbered is None or number is None:
        return relation, trees
    first, last, rest = 1, _MOST, []
    for tree in trees:
        found = _bounds(tree, number)
        if found is None:
            rest.append(tree)
        else:
            first, last = max(first, found[0]), min(last, found[1])
    if last == _MOST:
        return relation, trees
    if last < first:
        raise SqlError.wrong_expression(
            binder.place(trees[0]), f"no row has a {number!r} that this asks for", "change it"
        )
    return _replaced(relation, _ranked(numbered, first, last)), rest


def _numbered(relation: Relation) -> tuple[Numbered | None, str | None]:
    """The numbered rows below projections that pass the number on, and what it is called in the end."""
    path: list[Project] = []
    while isinstance(relation, Project | View):
        if isinstance(relation, Project):
            path.append(relation)
        relation = relation.input
    if not isinstance(relation, Numbered):
        return None, None
    name: str | None = relation.number
    for project in reversed(path):
        name = None if name is None else project.passed.get(name)
    return relation, name


def _replaced(relation: Relation, made: Relation) -> Relation:
    if isinstance(relation, Project | View):
        return replace(relation, input=_replaced(relation.input, made))
    return made


def _ranked(numbered: Numbered, first: int, last: int) -> Relation:
    source = numbered.input
    window = source.window
    windowed = _window_of(window, numbered.partition)
    if first == last == 1 and len(numbered.order) == 1:
        order = numbered.order[0]
        time = source.by_name[order.column].time
        if time is not None and numbered.partition and not source.updates:
            source = by_time(source, order.column)
            found = Deduplicate(source, numbered.partition, order.column, time, order.is_falling, windowed)
            one = Scalar(exp.Literal.number(1), _one())
            return Project(found, (*passed_on(found, found.names), (numbered.number, one)))
    return Rank(source, numbered.partition, numbered.order, first, last, numbered.number, windowed)


def _one() -> Term:
    return Term(BIGINT, "CAST(1 AS BIGINT)")


def _window_of(window: Window | None, partition: tuple[str, ...]) -> Window | None:
    if window is not None and window.start in partition and window.end in partition:
        return window
    return None


def _bounds(tree: exp.Expr, number: str) -> tuple[int, int] | None:
    """From which number to which a condition lets rows through."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Between):
        low, high = _integer(tree.args["low"]), _integer(tree.args["high"])
        return (low, high) if _is_number(tree.this, number) and low is not None and high is not None else None
    if not isinstance(tree, exp.EQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return None
    kind: type[exp.Expr] = type(tree)
    left, right = tree.this, tree.expression
    if _is_number(right, number):
        left, right = right, left
        kind = _TURNED.get(kind, kind)
    value = _integer(right)
    if not _is_number(left, number) or value is None:
        return None
    least: dict[type[exp.Expr], int] = {exp.EQ: value, exp.GT: value + 1, exp.GTE: value}
    most: dict[type[exp.Expr], int] = {exp.EQ: value, exp.LT: value - 1, exp.LTE: value}
    return least.get(kind, 1), most.get(kind, _MOST)


def _is_number(tree: exp.Expr, number: str) -> bool:
    return isinstance(tree, exp.Column) and tree.name == number


def _integer(tree: exp.Expr) -> int | None:
    return int(tree.name) if isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdecimal() else None
