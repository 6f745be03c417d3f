"""WHERE: plain conditions, subqueries that become joins, and bounds on ROW_NUMBER() that make a Top-N."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.sql.bind import functions, ranks, sources
from headwater.sql.bind.calls import calls_of
from headwater.sql.bind.joins import Condition, regular
from headwater.sql.bind.scalars import all_of, bound_tree, check_condition, conjuncts
from headwater.sql.bind.scopes import Scope
from headwater.sql.errors import SqlError
from headwater.sql.relations import Distinct, Filter, RegularJoin, Relation, only, unused

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder


def where(binder: QueryBinder, scope: Scope, trees: list[exp.Expr]) -> Scope:
    """The rows for which all conditions hold."""
    plain: list[exp.Expr] = []
    for one in trees:
        inner, is_negated = _unwrapped(one)
        if isinstance(inner, exp.Exists | exp.In) and (isinstance(inner, exp.Exists) or inner.args.get("query")):
            scope = _semi_joined(binder, scope, inner, is_negated=is_negated)
        elif one.find(exp.Query) is not None:
            raise SqlError.not_supported(
                binder.place(one),
                "a subquery in this place",
                "write [NOT] IN or [NOT] EXISTS, joined by AND, or a join",
            )
        else:
            if calls_of(scope.resolved(one)):
                raise SqlError.misplaced(binder.place(one), "an aggregate", "WHERE", "use HAVING")
            plain.append(scope.resolved(one))
    return scope.over(filtered(binder, scope.relation, plain))


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


def _semi_joined(binder: QueryBinder, scope: Scope, tree: exp.Expr, *, is_negated: bool) -> Scope:
    """`EXISTS (query)` and `x IN (query)`: rows that meet some of the query's, or none."""
    query = tree.args["query"] if isinstance(tree, exp.In) else tree.this
    while isinstance(query, exp.Subquery):
        query = query.this
    inside, outside = _inner(binder, scope, query)
    if isinstance(tree, exp.In):
        given = tree.this.expressions if isinstance(tree.this, exp.Tuple) else [tree.this]
        if len(given) != len(inside.names):
            raise SqlError.wrong_count(binder.place(query), "the query behind IN", len(inside.names), len(given))
        outside = [*outside, *(scope.resolved(one) for one in given)]
        inside_names = [*inside.names[len(given) :], *inside.names[: len(given)]]
        if is_negated:
            _refuse_nulls(binder, tree, inside, given, scope)
    else:
        inside_names = inside.names if outside else []
    ties = dict(zip(inside_names, outside, strict=True))
    return scope.over(_meeting(binder, scope, tree, inside, ties=ties, is_negated=is_negated))


def _meeting(
    binder: QueryBinder, scope: Scope, tree: exp.Expr, inside: Relation, *, ties: dict[str, exp.Expr], is_negated: bool
) -> Relation:
    names = list(ties)
    if not ties:
        raise SqlError.not_supported(
            binder.place(tree), "EXISTS over a query that no equality ties to this one", "tie it with inner.a = outer.a"
        )
    right = Distinct(only(inside, names))
    shown: list[str] = []
    for name in names:
        shown.append(unused(name, [*scope.relation.names, *shown]))
    both = RegularJoin(scope.relation, right, "inner", (), tuple(shown))
    trees: list[exp.Expr] = [
        exp.EQ(this=one, expression=exp.Column(this=exp.Identifier(this=name, quoted=True)))
        for one, name in zip(ties.values(), shown, strict=True)
    ]
    condition = Condition.of(binder, scope.relation, right, both, trees)
    if condition.rest:
        raise SqlError.not_supported(binder.place(tree), "this condition around a subquery", "compare columns of both")
    return regular(binder, condition, "anti" if is_negated else "semi", tree)


def _refuse_nulls(binder: QueryBinder, tree: exp.Expr, inside: Relation, given: list[exp.Expr], scope: Scope) -> None:
    """NOT IN is never true where the query has a NULL: only where it cannot, it is an anti join."""
    may_be_null = any(field.is_nullable for field in inside.fields[: len(given)])
    scalars = [bound_tree(scope.resolved(one), scope.relation, binder.text) for one in given]
    own = [scope.relation.by_name[s.column] for s in scalars if s.column is not None]
    if may_be_null or len(own) < len(scalars) or any(field.is_nullable for field in own):
        raise SqlError.not_supported(
            binder.place(tree),
            "NOT IN over columns that may be NULL",
            "write NOT EXISTS, which most people mean, or declare the columns NOT NULL",
        )


def _inner(binder: QueryBinder, scope: Scope, query: exp.Expr) -> tuple[Relation, list[exp.Expr]]:
    """The rows of a subquery with the columns that tie it to the outer one, and what those must equal.

    Its own columns come first, then the ties'.
    """
    if not isinstance(query, exp.Select):
        return binder.query(query), []
    ties: list[tuple[exp.Expr, exp.Expr]] = []
    own: list[exp.Expr] = []
    where_ = query.args.get("where")
    inner_scope = sources.from_clause(binder, query, scope, [])
    for one in conjuncts(where_.this if where_ is not None else None):
        tie = _tie(inner_scope, scope, one)
        if tie is not None:
            ties.append(tie)
        else:
            own.append(one)
    if not ties:
        return binder.query(query), []
    if query.args.get("group") is not None or any(calls_of(item) for item in query.expressions):
        raise SqlError.not_supported(
            binder.place(query),
            "a subquery with aggregates that is tied to the outer query",
            "join the aggregate instead",
        )
    plain = query.copy()
    plain.set("where", exp.Where(this=all_of(own)) if own else None)
    items = [] if _is_existence(query) else list(plain.expressions)
    names = [f"tie{at}" for at in range(len(ties))]
    plain.set(
        "expressions",
        [*items, *(exp.alias_(inner.copy(), name, quoted=True) for (inner, _), name in zip(ties, names, strict=True))],
    )
    return binder.query(plain), [outer for _, outer in ties]


def _is_existence(query: exp.Select) -> bool:
    """Whether what a subquery shows does not matter."""
    return isinstance(query.parent, exp.Exists) or (
        query.parent is not None and isinstance(query.parent.parent, exp.Exists)
    )


def _tie(inner: Scope, outer: Scope, tree: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """`inner.a = outer.b`, as both."""
    columns = list(tree.find_all(exp.Column))
    if all(inner.knows(column) for column in columns):
        return None
    if isinstance(tree, exp.EQ):
        for one, other in ((tree.this, tree.expression), (tree.expression, tree.this)):
            ones, others = list(one.find_all(exp.Column)), list(other.find_all(exp.Column))
            if ones and others and all(inner.knows(c) for c in ones) and not any(inner.knows(c) for c in others):
                return one, outer.resolved(other)
    if any(not inner.knows(column) and outer.knows(column) for column in columns):
        raise SqlError.not_supported(
            inner.place(tree), "this condition between a subquery and the outer query", "tie them with equalities"
        )
    return None
