"""SELECT and what stands around it: from FROM over WHERE, GROUP BY and HAVING to the columns that are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from headwater.data.functions.terms import Term
from headwater.data.functions.types import Type, common_type
from headwater.sql.bind import conditions, functions, grouping, ordering, overs, sources
from headwater.sql.bind.calls import mark_aggregates
from headwater.sql.bind.scalars import bound, bound_tree, check_condition, conjuncts, converted_to
from headwater.sql.bind.scopes import Scope
from headwater.sql.bind.subqueries import Subqueries
from headwater.sql.catalog import Catalog
from headwater.sql.errors import SqlError
from headwater.sql.relations import Distinct, Field, Filter, Project, Relation, Scalar, Values, unused
from headwater.sql.text.places import Place

Items = list[tuple[str, exp.Expr]]


@dataclass(frozen=True)
class QueryBinder:
    """Binds the queries of one text."""

    catalog: Catalog
    text: str
    ctes: Mapping[str, Relation] = field(default_factory=dict)
    """Queries that are named in WITH, by name."""
    ttls: Mapping[str, int] = field(default_factory=dict)
    """How long inputs are kept, by the names of tables, as hints say."""

    def place(self, tree: exp.Expr) -> Place | None:
        return Place.of(self.text, tree)

    def query(self, tree: exp.Expr, outer: Scope | None = None) -> Relation:
        """Whatever gives rows."""
        mark_aggregates(tree, self.catalog.aggregates)
        binder = self._with_ctes(tree)
        if isinstance(tree, exp.Subquery):
            return self._behind(binder.query(tree.this, outer), tree)
        if isinstance(tree, exp.SetOperation):
            return self._behind(binder._set_operation(tree), tree)
        if isinstance(tree, exp.Values):
            return binder.values(tree)
        if isinstance(tree, exp.Select):
            return binder._select(tree, outer)
        raise SqlError.not_supported(self.place(tree), "this form of query", "write SELECT … FROM …")

    def _with_ctes(self, tree: exp.Expr) -> QueryBinder:
        with_ = tree.args.get("with_")
        if with_ is None:
            return self
        if with_.args.get("recursive"):
            raise SqlError.not_supported(self.place(with_), "WITH RECURSIVE", "a stream has no end to recurse to")
        binder = self
        for cte in with_.expressions:
            made = binder.query(cte.this)
            columns = [column.name for column in cte.args["alias"].args.get("columns") or ()]
            binder = replace(binder, ctes={**binder.ctes, cte.alias: self.named(made, columns, cte)})
        return binder

    def named(self, relation: Relation, columns: list[str], tree: exp.Expr) -> Relation:
        """A relation whose columns are called otherwise."""
        if not columns:
            return relation
        if len(columns) != len(relation.fields):
            raise SqlError.wrong_count(self.place(tree), "the list of names", len(columns), len(relation.fields))
        items = tuple(
            (name, bound_tree(exp.Column(this=exp.Identifier(this=old, quoted=True)), relation, self.text))
            for name, old in zip(columns, relation.names, strict=True)
        )
        return Project(relation, items)

    # -- SELECT -----------------------------------------------------------------------------------------------------

    def _select(self, tree: exp.Select, outer: Scope | None) -> Relation:
        where = tree.args.get("where")
        left = conjuncts(None if where is None else where.this)
        given = list(left)
        scope = sources.from_clause(self._with_hints(tree), tree, outer, left)
        for one in given:
            if one not in left:
                scope.resolved(one)  # names that joins could tell apart may be ambiguous among all tables
        scope = conditions.where(self, scope, left)
        subqueries = Subqueries(self)
        items = self._items(tree, scope, subqueries)
        hidden = [] if tree.args.get("distinct") else ordering.hidden(tree, scope, items)
        scope, items = self._grouped(tree, scope, [*items, *hidden], subqueries)
        relation, items = overs.with_overs(self, scope.relation, items, tree)
        shown = self._projected(relation, items)
        if tree.args.get("distinct") is not None:
            if tree.args["distinct"].args.get("on") is not None:
                raise SqlError.not_supported(self.place(tree), "DISTINCT ON", "use ROW_NUMBER() … = 1")
            shown = Distinct(shown)
        return ordering.ordered(self, shown, tree, hidden=len(hidden))

    def _grouped(self, tree: exp.Select, scope: Scope, items: Items, subqueries: Subqueries) -> tuple[Scope, Items]:
        """The rows that are shown, groups or not, with what subqueries give for them, and what is shown of them."""
        having_ = tree.args.get("having")
        names, trees = [name for name, _ in items], [item for _, item in items]
        if having_ is not None:
            trees.append(scope.resolved(subqueries.without(having_.this)))
        scope, trees = subqueries.joined(scope, trees, only_aggregated=True)
        having = None if having_ is None else trees.pop()
        grouped = grouping.grouped(self, tree, scope, list(zip(names, trees, strict=True)), having)
        if grouped is not None:
            relation, items, having = grouped
            scope, trees = Scope.of(relation, None, self.text), [item for _, item in items]
            if having is not None:
                scope, (having,) = subqueries.joined(scope, [having], is_grouped=True)
                relation, (having,) = functions.lifted(self, scope.relation, [having])
                scalar = bound_tree(having, relation, self.text)
                check_condition(scalar, self.place(having), "HAVING")
                scope = scope.over(Filter(relation, scalar))
        elif having_ is not None:
            raise SqlError.misplaced(self.place(having_), "HAVING", "a query without GROUP BY", "use WHERE")
        scope, trees = subqueries.joined(scope, trees, is_grouped=grouped is not None)
        return scope, list(zip(names, trees, strict=True))

    def _with_hints(self, tree: exp.Select) -> QueryBinder:
        hint = tree.args.get("hint")
        if hint is None:
            return self
        from headwater.sql.bind.hints import state_ttls

        return replace(self, ttls={**self.ttls, **state_ttls(self, hint)})

    def _items(self, tree: exp.Select, scope: Scope, subqueries: Subqueries) -> list[tuple[str, exp.Expr]]:
        """What is shown, by name: columns as the relation names them."""
        items: list[tuple[str, exp.Expr]] = []
        for number, item in enumerate(tree.expressions):
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                items += [(v.name, scope.column(_column(v.table, v.name))) for v in scope.starred(item)]
                continue
            inner = item.this if isinstance(item, exp.Alias) else item
            name = item.alias if isinstance(item, exp.Alias) else _own_name(inner) or f"EXPR${number}"
            items.append((name, scope.resolved(subqueries.without(inner))))
        names: list[str] = []
        for name, _ in items:
            names.append(unused(name, names))
        return [(name, item) for name, (_, item) in zip(names, items, strict=True)]

    def _projected(self, relation: Relation, items: list[tuple[str, exp.Expr]]) -> Relation:
        relation, trees = functions.lifted(self, relation, [item for _, item in items])
        items = [(name, tree) for (name, _), tree in zip(items, trees, strict=True)]
        scalars = [(name, bound_tree(item, relation, self.text)) for name, item in items]
        for (name, scalar), (_, item) in zip(scalars, items, strict=True):
            if scalar.term.type.is_null:
                raise SqlError.wrong_expression(
                    self.place(item), f"column {name!r} would be NULL without a type", "write CAST(NULL AS INT)"
                )
            if name.startswith("__"):
                raise SqlError.wrong_expression(self.place(item), f"names such as {name!r} are our own", "rename it")
        return Project(relation, tuple(scalars))

    def _behind(self, relation: Relation, tree: exp.Expr) -> Relation:
        """ORDER BY and LIMIT behind a whole query."""
        return ordering.ordered(self, relation, tree)

    # -- other queries ----------------------------------------------------------------------------------------------

    def _set_operation(self, tree: exp.SetOperation) -> Relation:
        from headwater.sql.bind.sets import combined

        return combined(self, tree)

    def alike(self, parts: list[Relation], trees: list[exp.Expr], what: str) -> list[Relation]:
        """Relations as ones of the same columns: names of the first, types that hold the values of all."""
        first = parts[0]
        for part, tree in zip(parts, trees, strict=True):
            if len(part.fields) != len(first.fields):
                raise SqlError.wrong_count(self.place(tree), f"a part of {what}", len(part.fields), len(first.fields))
        types = []
        for at, known in enumerate(first.fields):
            found = common_type([part.fields[at].type for part in parts])
            if found is None:
                kinds = " and ".join(str(part.fields[at].type) for part in parts)
                raise SqlError.wrong_type(self.place(trees[-1]), f"column {known.name!r} of {what}", kinds, "one type")
            types.append(found)
        return [self.as_types(part, first.names, types, tree, what) for part, tree in zip(parts, trees, strict=True)]

    def as_types(self, relation: Relation, names: list[str], types: list[Type], tree: exp.Expr, what: str) -> Relation:
        """The relation with other names and types for its columns."""
        if relation.names == names and [f.type for f in relation.fields] == types:
            return relation
        items = []
        for name, wanted, known in zip(names, types, relation.fields, strict=True):
            scalar = bound_tree(exp.Column(this=exp.Identifier(this=known.name, quoted=True)), relation, self.text)
            if known.type != wanted and _is_other_precision(known.type, wanted):
                scalar = Scalar(scalar.tree, Term(wanted, scalar.term.sql))
            items.append((name, converted_to(scalar, wanted, self.place(tree), f"column {known.name!r} of {what}")))
        return Project(relation, tuple(items))

    def values(self, tree: exp.Values) -> Relation:
        """Rows that are written in the text."""
        rows = []
        empty = Values((), ())
        for given in tree.expressions:
            parts = (
                given.expressions
                if isinstance(given, exp.Tuple)
                else [given.this if isinstance(given, exp.Paren) else given]
            )
            rows.append([bound(part, Scope(empty, (), self.text)).term for part in parts])
        width = len(rows[0])
        for row, given in zip(rows, tree.expressions, strict=True):
            if len(row) != width:
                raise SqlError.wrong_count(self.place(given), "a row of VALUES", len(row), width)
        fields = []
        for at in range(width):
            found = common_type([row[at].type for row in rows])
            if found is None or found.is_null:
                raise SqlError.wrong_type(self.place(tree), f"column {at + 1} of VALUES", "several types", "one type")
            fields.append(Field(f"EXPR${at}", found))
        made = [
            tuple(
                converted_to(Scalar(exp.Null(), term), f.type, None, "VALUES").term
                for term, f in zip(row, fields, strict=True)
            )
            for row in rows
        ]
        return Values(tuple(fields), tuple(made))


def _column(table: str | None, name: str) -> exp.Column:
    parts = {"this": exp.Identifier(this=name, quoted=True)}
    return exp.Column(**parts, **({} if table is None else {"table": exp.Identifier(this=table, quoted=True)}))


def _own_name(tree: exp.Expr) -> str | None:
    if isinstance(tree, exp.Column | exp.Dot):
        return tree.name
    return None


def _is_other_precision(one: Type, other: Type) -> bool:
    return one.kind == other.kind and one.is_timestamp and one.precision < other.precision
