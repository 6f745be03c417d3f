"""WHERE: plain conditions, subqueries that become joins, and bounds on ROW_NUMBER() that make a Top-N."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.sql.bind import functions, ranks
from headwater.sql.bind.calls import calls_of
from headwater.sql.bind.inner import inner_of
from headwater.sql.bind.scalars import all_of, bound_tree, check_condition
from headwater.sql.bind.scopes import Scope
from headwater.sql.bind.subqueries import Met, Subqueries, before_in, is_subquery, may_be_null, query_of, ties_of
from headwater.sql.errors import SqlError
from headwater.sql.relations import Filter, Relation

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder


def where(binder: QueryBinder, scope: Scope, trees: list[exp.Expr]) -> Scope:
    """The rows for which all conditions hold; those without subqueries are looked at first."""
    with_queries = [one for one in trees if one.find(exp.Query) is not None]
    plain: list[exp.Expr] = []
    for one in trees:
        if one not in with_queries:
            plain.append(scope.resolved(one))
            if calls_of(plain[-1]):
                raise SqlError.misplaced(binder.place(one), "an aggregate", "WHERE", "use HAVING")
    scope = scope.over(filtered(binder, scope.relation, plain))
    for one in with_queries:
        scope = scope.over(_met(binder, scope, one) or _valued(binder, scope, one))
    return scope


def _met(binder: QueryBinder, scope: Scope, tree: exp.Expr) -> Relation | None:
    """Rows that meet some of a subquery, or none: [NOT] EXISTS, IN, and NOT IN where nothing is NULL."""
    node, is_negated = _unwrapped(tree)
    if not is_subquery(node) or not isinstance(node, exp.Exists | exp.In) or any(map(_has_query, before_in(node))):
        return None
    inner = inner_of(binder, scope, query_of(node), shows=isinstance(node, exp.In))
    given = [scope.resolved(one) for one in before_in(node)]
    ties = ties_of(binder, inner, given, node)
    if not ties and not inner.rest:
        return None
    if is_negated and given and may_be_null(binder, scope.relation, inner, given):
        return None
    return Met(binder, scope.relation, inner, node).kept(ties, is_negated=is_negated)


def _has_query(tree: exp.Expr) -> bool:
    return tree.find(exp.Query) is not None


def _valued(binder: QueryBinder, scope: Scope, tree: exp.Expr) -> Relation:
    """Rows for which a condition is true that reads what subqueries give."""
    subqueries = Subqueries(binder)
    resolved = scope.resolved(subqueries.without(tree))
    scope, made = subqueries.joined(scope, [resolved])
    return filtered(binder, scope.relation, made)


def filtered(binder: QueryBinder, relation: Relation, trees: list[exp.Expr]) -> Relation:
    """A relation behind conditions; those on a row's number make a Top-N."""
    relation, trees = ranks.bounded(binder, relation, trees)
    called = [tree for tree in trees if functions.calls_in(binder, tree)]
    plain = [tree for tree in trees if tree not in called]
    if called:  # only for rows for which the other conditions hold
        relation, called = functions.lifted(binder, _kept(binder, relation, plain), called)
        return _kept(binder, relation, called)
    return _kept(binder, relation, plain)


def _kept(binder: QueryBinder, relation: Relation, trees: list[exp.Expr]) -> Relation:
    if not trees:
        return relation
    scalar = bound_tree(all_of(trees), relation, binder.text)
    check_condition(scalar, binder.place(trees[0]), "WHERE")
    return Filter(relation, scalar)


def _unwrapped(tree: exp.Expr) -> tuple[exp.Expr, bool]:
    is_negated = False
    while isinstance(tree, exp.Paren | exp.Not):
        is_negated ^= isinstance(tree, exp.Not)
        tree = tree.this
    return tree, is_negated
