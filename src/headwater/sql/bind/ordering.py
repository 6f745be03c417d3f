"""ORDER BY and LIMIT: rows in the order of time, and the first of an order as a Top-N."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.sql.bind.scalars import bound_tree
from headwater.sql.bind.scopes import Scope
from headwater.sql.errors import SqlError
from headwater.sql.relations import EVENT, Order, Project, Rank, Relation, SortByTime, named_after, only, passed_on

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder

Items = list[tuple[str, exp.Expr]]


def hidden(tree: exp.Expr, scope: Scope, items: Items) -> Items:
    """Columns that a query is ordered by and that it does not show, each under the place of its key."""
    order = tree.args.get("order")
    shown = {name for name, _ in items}
    found: Items = []
    for at, key in enumerate(order.expressions if order is not None else ()):
        of = key.this
        if (query := of.find(exp.Query)) is not None:
            raise SqlError.not_supported(scope.place(query), "a subquery in ORDER BY", "show it, and order by its name")
        is_shown = isinstance(of, exp.Literal) or (
            isinstance(of, exp.Column) and len(of.parts) == 1 and of.name in shown
        )
        if not is_shown:
            found.append((_place(at), scope.resolved(of)))
    return found


def _place(at: int) -> str:
    return f"ordered by {at}"


def ordered(binder: QueryBinder, shown: Relation, tree: exp.Expr, *, hidden: int = 0) -> Relation:
    """What is shown, in order, and as many rows as LIMIT says. Its last columns may be there for the order alone."""
    order, limit = tree.args.get("order"), _number(binder, tree, "limit")
    offset = _number(binder, tree, "offset") or 0
    keys: list[exp.Expr] = list(order.expressions) if order is not None else []
    if limit is None and offset:
        raise SqlError.not_supported(binder.place(tree), "OFFSET without LIMIT", "add LIMIT")
    if limit is None and not keys:
        return shown
    names = shown.names[: len(shown.names) - hidden]
    relation, columns = shown, []
    for at, key in enumerate(keys):
        relation, column = (
            (relation, _place(at)) if _place(at) in shown.by_name else _column(binder, relation, key.this)
        )
        columns.append(Order(column, bool(key.args.get("desc")), bool(key.args.get("nulls_first"))))
    if limit is None:
        first = columns[0]
        if relation.by_name[first.column].time != EVENT or relation.row_time != first.column or first.is_falling:
            raise SqlError.not_supported(
                binder.place(tree.args["order"]),
                "ORDER BY anything but ascending event time without LIMIT",
                "add LIMIT: rows that never end have no last one",
            )
        return only(SortByTime(relation), names)
    if limit == 0:
        raise SqlError.not_supported(binder.place(tree.args["limit"]), "LIMIT 0", "leave the query out")
    return only(Rank(relation, (), tuple(columns), offset + 1, offset + limit, None), names)


def _number(binder: QueryBinder, tree: exp.Expr, clause: str) -> int | None:
    found = tree.args.get(clause)
    if found is None:
        return None
    value = found.args.get("expression") or found.args.get("count")
    if not isinstance(value, exp.Literal) or not value.name.isdecimal():
        raise SqlError.wrong_expression(binder.place(found), f"{clause.upper()} needs a number", "write it as digits")
    return int(value.name)


def _column(binder: QueryBinder, relation: Relation, tree: exp.Expr) -> tuple[Relation, str]:
    if isinstance(tree, exp.Literal) and tree.name.isdecimal():
        at = int(tree.name)
        if not 1 <= at <= len(relation.names):
            raise SqlError.wrong_expression(binder.place(tree), f"there is no column {at} to order by", "name it")
        return relation, relation.names[at - 1]
    if isinstance(tree, exp.Column):
        if tree.name not in relation.by_name:
            raise SqlError.no_column(binder.place(tree), tree.name, relation.names)
        return relation, tree.name
    scope_tree = tree.copy()
    scalar = bound_tree(scope_tree, relation, binder.text)
    name = named_after(scalar, relation.names)
    return Project(relation, (*passed_on(relation, relation.names), (name, scalar))), name
