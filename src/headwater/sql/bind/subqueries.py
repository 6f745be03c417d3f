"""Subqueries as values: EXISTS, IN and those of one value, each a column that a join puts beside the rows.

What a subquery gives changes as its rows come, so a row that reads it is taken back and given again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from headwater.data.functions.terms import Term
from headwater.data.functions.types import BOOLEAN
from headwater.sql.bind.calls import is_call
from headwater.sql.bind.inner import Inner, inner_of, with_inner
from headwater.sql.bind.joins import Condition, regular
from headwater.sql.bind.scalars import all_of, bound_tree, check_condition, rewritten
from headwater.sql.bind.scopes import Scope
from headwater.sql.errors import SqlError
from headwater.sql.relations import (
    Distinct,
    Filter,
    Functions,
    Project,
    Rank,
    RegularJoin,
    Relation,
    Scalar,
    Values,
    View,
    as_text,
    column_tree,
    name_of,
    named_after,
    only,
    passed_on,
    unused,
)

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder

_PLACEHOLDER: Final = "SUBQUERY"
_TRUE: Final = Scalar(exp.true(), Term(BOOLEAN, "true"))


class Subqueries:
    """The subqueries in some trees, which placeholders stand for until they are joined."""

    def __init__(self, binder: QueryBinder) -> None:
        self._binder = binder
        self._found: list[exp.Expr] = []

    def without(self, tree: exp.Expr) -> exp.Expr:
        """The tree with placeholders, which hold what is before IN."""
        return rewritten(tree, self._placeholder)

    def _placeholder(self, node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any) and _is_query(node.expression.this):
            node = exp.In(this=node.this, query=node.expression.this)
        if isinstance(node, exp.Any | exp.All) and node.find(exp.Query) is not None:
            raise SqlError.not_supported(
                self._binder.place(node), "ANY, SOME or ALL over a subquery", "compare with its MAX or MIN"
            )
        if not is_subquery(node):
            return None
        self._found.append(node)
        given = [self.without(one) for one in before_in(node)]
        return exp.Anonymous(this=_PLACEHOLDER, expressions=[exp.Literal.number(len(self._found) - 1), *given])

    def joined(
        self, scope: Scope, trees: list[exp.Expr], *, is_grouped: bool = False, only_aggregated: bool = False
    ) -> tuple[Scope, list[exp.Expr]]:
        """The rows with what the subqueries give, and the trees over them; groups are tied to nothing."""
        values: dict[int, exp.Expr] = {}

        def change(node: exp.Expr) -> exp.Expr | None:
            if not isinstance(node, exp.Anonymous) or node.this != _PLACEHOLDER:
                return None
            nonlocal scope
            number = int(node.expressions[0].name)
            if number not in values:
                given = [rewritten(one, change) for one in node.expressions[1:]]
                made = _Value(self._binder, scope, self._found[number], given, is_grouped=is_grouped)
                relation, values[number] = made.joined()
                scope = scope.over(relation)
            return values[number].copy()

        def change_aggregated(node: exp.Expr) -> exp.Expr | None:
            return rewritten(node, change) if is_call(node) else None

        made = [rewritten(tree, change_aggregated if only_aggregated else change) for tree in trees]
        return scope, made


def is_subquery(node: exp.Expr) -> bool:
    """Whether a node is a subquery, with the word before it."""
    return (
        isinstance(node, exp.Exists) or _is_query(node) or (isinstance(node, exp.In) and bool(node.args.get("query")))
    )


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def before_in(node: exp.Expr) -> list[exp.Expr]:
    """What is looked for in a subquery, if something is."""
    if not isinstance(node, exp.In):
        return []
    return list(node.this.expressions) if isinstance(node.this, exp.Tuple) else [node.this]


def query_of(node: exp.Expr) -> exp.Expr:
    """The subquery of a node."""
    if isinstance(node, exp.In):
        found: exp.Expr = node.args["query"]
        return found
    return node.this if isinstance(node, exp.Exists) else node


def ties_of(binder: QueryBinder, inner: Inner, given: list[exp.Expr], node: exp.Expr) -> dict[str, exp.Expr]:
    """What columns of a subquery must equal."""
    if not isinstance(node, exp.In):
        return inner.ties
    if len(given) != len(inner.own):
        raise SqlError.wrong_count(binder.place(query_of(node)), "the query behind IN", len(inner.own), len(given))
    return {**inner.ties, **dict(zip(inner.own, given, strict=True))}


def may_be_null(binder: QueryBinder, relation: Relation, inner: Inner, given: list[exp.Expr]) -> bool:
    """Whether IN may be neither true nor false."""
    scalars = [bound_tree(one, relation, binder.text) for one in given if not isinstance(one, exp.Literal)]
    is_sure = all(s.column is not None and not relation.by_name[s.column].is_nullable for s in scalars)
    return not is_sure or any(inner.relation.by_name[name].is_nullable for name in inner.own)


class Met:
    """Rows of a query, and which of them some rows of a subquery fit."""

    def __init__(self, binder: QueryBinder, relation: Relation, inner: Inner, node: exp.Expr) -> None:
        self._binder, self._relation, self._inner, self._node = binder, relation, inner, node

    def kept(self, ties: dict[str, exp.Expr], *, is_negated: bool) -> Relation:
        """The rows that some fit, or none."""
        right, by = self._fitting(ties)
        return self._join(right, by, "anti" if is_negated else "semi")[0]

    def marked(self, ties: dict[str, exp.Expr]) -> tuple[Relation, str]:
        """All rows, and a column that is NULL where none fits."""
        right, by = self._fitting(ties)
        mark = unused("is_met", right.names)
        marked = Project(right, (*passed_on(right, right.names), (mark, _TRUE)))
        relation, shown = self._join(marked, by, "left")
        return relation, shown[mark]

    def _fitting(self, ties: dict[str, exp.Expr]) -> tuple[Relation, dict[str, exp.Expr]]:
        """What fits, once each, and what it must equal; where more than equalities count, the keys of rows that it fits."""
        inner, rows = self._inner, self._relation
        if not inner.rest:
            return Distinct(only(inner.relation, list(ties))), ties
        text = as_text(rows, list(rows.key or rows.names))
        key = named_after(text, [*rows.names, *inner.relation.names])
        self._relation = Project(rows, (*passed_on(rows, rows.names), (key, text)))
        pairs, shown = self._join(Distinct(only(inner.relation, [*ties, *inner.more])), ties, "inner")
        trees = [with_inner(one, {name: column_tree(column) for name, column in shown.items()}) for one in inner.rest]
        scalar = bound_tree(all_of(trees), pairs, self._binder.text)
        check_condition(scalar, self._binder.place(self._node), "WHERE")
        return Distinct(only(Filter(pairs, scalar), [key])), {key: column_tree(key)}

    def _join(self, right: Relation, ties: dict[str, exp.Expr], how: str) -> tuple[Relation, dict[str, str]]:
        return _beside(self._binder, (self._relation, right), ties, how, self._node)


def _beside(
    binder: QueryBinder, sides: tuple[Relation, Relation], ties: dict[str, exp.Expr], how: str, node: exp.Expr
) -> tuple[Relation, dict[str, str]]:
    """A join of rows with those of a subquery, and what columns of these are called behind it."""
    left, right = sides
    for name, tree in ties.items():
        if tree.find(exp.Column) is None:  # a join compares columns of both sides
            scalar = bound_tree(tree, left, binder.text)
            made = named_after(scalar, left.names)
            left = Project(left, (*passed_on(left, left.names), (made, scalar)))
            ties = {**ties, name: column_tree(made)}
    shown: dict[str, str] = {}
    for name in right.names:
        shown[name] = unused(name, [*left.names, *shown.values()])
    both = RegularJoin(left, right, "inner", (), tuple(shown.values()))
    trees: list[exp.Expr] = [exp.EQ(this=tree, expression=column_tree(shown[name])) for name, tree in ties.items()]
    return regular(binder, Condition.of(binder, left, right, both, trees), how, node), shown


class _Value:
    """A subquery as a value of each row."""

    def __init__(
        self, binder: QueryBinder, scope: Scope, node: exp.Expr, given: list[exp.Expr], *, is_grouped: bool
    ) -> None:
        self._binder, self._relation, self._node, self._given = binder, scope.relation, node, given
        self._inner = inner_of(
            binder, None if is_grouped else scope, query_of(node), shows=not isinstance(node, exp.Exists)
        )

    def joined(self) -> tuple[Relation, exp.Expr]:
        """The rows with it, and the value over them."""
        if isinstance(self._node, exp.In):
            return self._in()
        if isinstance(self._node, exp.Exists):
            return self._exists()
        return self._one_value()

    def _exists(self) -> tuple[Relation, exp.Expr]:
        if self._inner.is_tied:
            relation, mark = Met(self._binder, self._relation, self._inner, self._node).marked(self._inner.ties)
            return relation, _is_known(mark)
        relation, (count,) = self._counted([])
        return relation, _is_known(count)

    def _in(self) -> tuple[Relation, exp.Expr]:
        """NULL where nothing equals, and something that is compared is NULL."""
        inner, given = self._inner, self._given
        ties = ties_of(self._binder, inner, given, self._node)
        is_doubtful = may_be_null(self._binder, self._relation, inner, given)
        if is_doubtful and (len(given) > 1 or inner.rest):
            raise SqlError.not_supported(
                self._binder.place(self._node),
                "IN as a value, or NOT IN, over columns that may be NULL, of several columns or tied by more than equalities",
                "write [NOT] EXISTS, which most people mean, or declare the columns NOT NULL",
            )
        self._relation, mark = Met(self._binder, self._relation, inner, self._node).marked(ties)
        if not is_doubtful:
            return self._relation, _is_known(mark)
        relation, (rows, values) = self._counted([inner.own[0]])
        is_null = exp.Or(
            this=exp.Is(this=given[0], expression=exp.Null()),
            expression=exp.LT(this=column_tree(values), expression=column_tree(rows)),
        )
        cases = [
            (_is_known(mark), exp.true()),
            (exp.Not(this=_is_known(rows)), exp.false()),
            (exp.Paren(this=is_null), exp.Null()),
        ]
        ifs = [exp.If(this=condition, true=value) for condition, value in cases]
        return relation, exp.Case(ifs=ifs, default=exp.false())

    def _counted(self, names: list[str]) -> tuple[Relation, list[str]]:
        """The rows with how many the subquery has for each, and how many values of columns; NULL where it has none."""
        inner = self._inner
        counts = [exp.Anonymous(this="COUNT", expressions=[one]) for one in (exp.Star(), *map(column_tree, names))]
        called = [name_of(count, inner.ties) for count in counts]
        items = [exp.alias_(count, name, quoted=True) for count, name in zip(counts, called, strict=True)]
        ties = [column_tree(name) for name in inner.ties]
        source = exp.Subquery(this=inner.query.copy(), alias=exp.TableAlias(this=exp.to_identifier("subquery")))
        tree = exp.Select(expressions=[*items, *ties], from_=exp.From(this=source))
        if ties:
            tree.set("group", exp.Group(expressions=[one.copy() for one in ties]))
        made = self._binder.query(tree)
        relation, shown = _beside(self._binder, (self._relation, made), inner.ties, "left", self._node)
        return relation, [shown[name] for name in called]

    def _one_value(self) -> tuple[Relation, exp.Expr]:
        inner, place = self._inner, self._binder.place(self._node)
        if inner.value is None and len(inner.own) != 1:
            raise SqlError.wrong_count(place, "a subquery that is a value", len(inner.own), 1)
        if inner.rest:
            raise SqlError.not_supported(
                place, "a subquery that is a value and tied by more than equalities", "join its aggregate instead"
            )
        if not _gives_one(inner.relation, set(inner.ties)):
            raise SqlError.not_supported(
                place,
                "a subquery that is a value and may give several rows",
                "take one of them, with MAX, MIN or ORDER BY … LIMIT 1, or tie its whole primary key",
            )
        sides = (self._relation, inner.relation)
        relation, shown = _beside(self._binder, sides, inner.ties, "left", self._node)
        columns: dict[str, exp.Expr] = {name: column_tree(column) for name, column in shown.items()}
        return relation, columns[inner.own[0]] if inner.value is None else with_inner(inner.value, columns)


def _is_known(column: str) -> exp.Expr:
    return exp.Not(this=exp.Paren(this=exp.Is(this=column_tree(column), expression=exp.Null())))


def _gives_one(relation: Relation, tied: set[str]) -> bool:
    """Whether there is one row at most of each value of the columns that are tied."""
    if relation.key is not None and set(relation.key) <= tied:
        return True
    while isinstance(relation, Project | Filter | View | Functions):
        relation = relation.input
    if isinstance(relation, Values):
        return len(relation.rows) == 1
    return not tied and isinstance(relation, Rank) and not relation.partition and relation.first == relation.last
