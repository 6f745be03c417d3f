"""What is inside of a subquery: its rows, and how they are tied to the row of the query around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.sql.bind import sources
from headwater.sql.bind.calls import calls_of, is_call
from headwater.sql.bind.scalars import all_of, conjuncts, rewritten
from headwater.sql.bind.scopes import Scope
from headwater.sql.errors import SqlError
from headwater.sql.relations import Relation, name_of

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder


@dataclass(frozen=True)
class Inner:
    """The rows of a subquery. Its own columns come first, then those that tie it to the outer query."""

    query: exp.Expr
    """What gives them, without what ties it."""
    relation: Relation
    ties: dict[str, exp.Expr]
    """Columns, and what of the outer row each must equal."""
    more: list[str]
    """Columns that other conditions are about."""
    rest: list[exp.Expr]
    """Conditions over columns of the outer row, and over those as `INNER(name)`."""
    value: exp.Expr | None = None
    """Where it is tied and aggregates: what it shows, over its own columns as `INNER(name)`, which are aggregates."""

    @property
    def own(self) -> list[str]:
        """What the subquery itself shows."""
        names = self.relation.names
        return names[: len(names) - len(self.ties) - len(self.more)]

    @property
    def is_tied(self) -> bool:
        return bool(self.ties or self.rest)


INNER = "INNER"


def inner_of(binder: QueryBinder, outer: Scope | None, query: exp.Expr, *, shows: bool) -> Inner:
    """The rows of a subquery, without its conditions on the outer row; those that it `shows`, or that some are there."""
    while isinstance(query, exp.Subquery) and not any(query.args.get(key) for key in ("order", "limit", "offset")):
        query = query.this
    if not isinstance(query, exp.Select) or outer is None:
        return Inner(query, binder.query(query), {}, [], [])
    return _Untied(binder, outer, query, shows=shows).inner()


class _Untied:
    """Takes the conditions on the outer row out of a subquery."""

    def __init__(self, binder: QueryBinder, outer: Scope, query: exp.Select, *, shows: bool) -> None:
        self._binder, self._outer, self._query, self._shows = binder, outer, query, shows
        self._scope = sources.from_clause(binder, query, outer, [])
        self._exported: dict[str, exp.Expr] = {}
        self._ties: dict[str, exp.Expr] = {}
        self._rest: list[exp.Expr] = []
        self._own: list[exp.Expr] = []

    def inner(self) -> Inner:
        where = self._query.args.get("where")
        for one in conjuncts(where.this if where is not None else None):
            self._take(one)
        if not self._ties and not self._rest:
            query = self._untied() if not self._shows and self._query.args.get("order") else self._query
            return Inner(query, self._binder.query(query), {}, [], [])
        self._check()
        more = [name for name in self._exported if name not in self._ties]
        names = [*self._ties, *more]
        query = self._untied()
        items, value = list(query.expressions) if self._shows else [], None
        if self._is_grouped:
            items, value = self._aggregates()
        exported = [exp.alias_(self._exported[name].copy(), name, quoted=True) for name in names]
        query.set("expressions", [*items, *exported])
        if self._is_grouped:
            query.set("group", exp.Group(expressions=[self._exported[name].copy() for name in names]))
        relation = self._binder.query(query)
        shown = relation.names[len(relation.names) - len(names) :]
        called = dict(zip(names, shown, strict=True))
        return Inner(
            query,
            relation,
            {called[name]: outer for name, outer in self._ties.items()},
            [called[name] for name in more],
            [with_inner(one, {old: _inner_column(new) for old, new in called.items()}) for one in self._rest],
            value,
        )

    @property
    def _is_grouped(self) -> bool:
        return any(calls_of(item) for item in self._query.expressions)

    def _aggregates(self) -> tuple[list[exp.Expr], exp.Expr | None]:
        """The aggregates of what is shown, each a column, and what is made of them; one that counts nothing is 0."""
        (item,) = self._query.expressions
        calls: list[exp.Expr] = []

        def change(node: exp.Expr) -> exp.Expr | None:
            if not is_call(node):
                return None
            calls.append(exp.alias_(node.copy(), name_of(node, [call.alias for call in calls]), quoted=True))
            value = _inner_column(calls[-1].alias)
            counts = str((node.this if isinstance(node, exp.Filter) else node).this).upper() == "COUNT"
            return exp.Anonymous(this="COALESCE", expressions=[value, exp.Literal.number(0)]) if counts else value

        return calls, rewritten(item.this if isinstance(item, exp.Alias) else item, change)

    def _untied(self) -> exp.Select:
        """The query without its conditions on the outer row, and where it only matters that there are rows, in no order."""
        query = self._query.copy()
        query.set("where", exp.Where(this=all_of(self._own)) if self._own else None)
        if not self._shows and query.args.get("offset") is None:
            query.set("order", None)
            query.set("limit", None)
        return query

    def _check(self) -> None:
        """What is done to all rows of a subquery cannot be done to those of one outer row."""
        query = self._query
        clauses = ["group", "having", "offset", *(["order", "limit"] if self._shows else [])]
        found = next((query.args[clause] for clause in clauses if query.args.get(clause) is not None), None)
        over = next(query.find_all(exp.Window), None)
        is_wrong = self._is_grouped and (bool(self._rest) or not self._shows or len(query.expressions) > 1)
        if found is not None or over is not None or is_wrong:
            raise SqlError.not_supported(
                self._binder.place(found or over or query),
                "an aggregate in a subquery that is tied to the outer query, but as one value that equalities tie,"
                if is_wrong
                else "GROUP BY, HAVING, ORDER BY, LIMIT or OVER in a subquery that is tied to the outer query",
                "join the groups instead",
            )

    def _take(self, tree: exp.Expr) -> None:
        columns = [column for column in tree.find_all(exp.Column) if not _is_deeper(column, tree)]
        if all(self._scope.knows(column) for column in columns) or not any(map(self._is_outer, columns)):
            self._own.append(tree)
            return
        if tree.find(exp.Query) is not None:
            raise SqlError.not_supported(
                self._binder.place(tree), "a subquery in a condition on the outer query", "write a join"
            )
        if isinstance(tree, exp.EQ):
            for one, other in ((tree.this, tree.expression), (tree.expression, tree.this)):
                if self._is_all(one, inner=True) and self._is_all(other, inner=False):
                    self._ties[self._export(one)] = self._outer.resolved(other)
                    return
        self._rest.append(self._outer.resolved(rewritten(tree, self._as_exported)))

    def _is_outer(self, column: exp.Column) -> bool:
        return not self._scope.knows(column) and self._outer.knows(column)

    def _is_all(self, tree: exp.Expr, *, inner: bool) -> bool:
        columns = list(tree.find_all(exp.Column))
        return bool(columns) and all(self._scope.knows(column) == inner for column in columns)

    def _as_exported(self, node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Column) and self._scope.knows(node):
            return _inner_column(self._export(node))
        return None

    def _export(self, tree: exp.Expr) -> str:
        known = next((name for name, other in self._exported.items() if other == tree), None)
        if known is None:
            known = name_of(tree, self._exported)
            self._exported[known] = tree
        return known


def _is_deeper(column: exp.Column, tree: exp.Expr) -> bool:
    """Whether a column is named in a subquery of the tree, which may know it itself."""
    found = column.find_ancestor(exp.Query)
    return found is not None and found is not tree.find_ancestor(exp.Query)


def _inner_column(name: str) -> exp.Expr:
    return exp.Anonymous(this=INNER, expressions=[exp.Literal.string(name)])


def with_inner(tree: exp.Expr, columns: Mapping[str, exp.Expr]) -> exp.Expr:
    """A tree with something in the place of columns of a subquery."""
    return rewritten(tree, lambda node: columns[_name(node)].copy() if _name(node) else None)


def _name(node: exp.Expr) -> str:
    """The column of a subquery that a node stands for, if it does."""
    is_inner = isinstance(node, exp.Anonymous) and node.this == INNER
    return node.expressions[0].name if is_inner else ""
