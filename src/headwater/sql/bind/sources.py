"""FROM: tables, views, subqueries, window table functions, VALUES, UNNEST, and joins of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.data.functions.terms import Term
from headwater.data.functions.types import BOOLEAN, INT, Type
from headwater.sql.bind import functions, joins, scan, windows
from headwater.sql.bind.scalars import bound_tree
from headwater.sql.bind.scopes import Scope, Visible
from headwater.sql.catalog import Table
from headwater.sql.errors import SqlError
from headwater.sql.relations import Field, Relation, Unnest, Values, View, unused

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder


def from_clause(binder: QueryBinder, tree: exp.Select, outer: Scope | None, where: list[exp.Expr]) -> Scope:
    """What a SELECT reads. Without FROM it is one row without columns.

    Of the conditions in `where` inner joins take those that they can be joined by.
    """
    from_ = tree.args.get("from_")
    if from_ is None:
        return Scope(Values((), ((),)), (), binder.text, outer)
    scope = table(binder, from_.this)
    for join in [
        *(from_.this.args.get("joins") or ()),
        *(tree.args.get("joins") or ()),
        *(tree.args.get("laterals") or ()),
    ]:
        scope = _joined(binder, scope, join, where)
    return Scope(scope.relation, scope.visible, binder.text, outer)


def _joined(binder: QueryBinder, scope: Scope, join: exp.Expr, where: list[exp.Expr]) -> Scope:
    right = join.this if isinstance(join, exp.Join) else join
    is_left = isinstance(join, exp.Join) and str(join.args.get("side") or "").upper() == "LEFT"
    if isinstance(right, exp.Unnest):
        return _unnested(binder, scope, right, keeps_empty=is_left)
    if isinstance(right, exp.Lateral):
        if not functions.calls_in(binder, right.this):
            raise SqlError.not_supported(
                binder.place(right),
                "this behind LATERAL",
                "call a function of yours that gives an array, or use UNNEST",
            )
        unnest = exp.Unnest(expressions=[right.this], alias=right.args.get("alias"))
        return _unnested(binder, scope, unnest, keeps_empty=is_left)
    assert isinstance(join, exp.Join)
    return joins.joined(binder, scope, join, where)


def table(binder: QueryBinder, tree: exp.Expr) -> Scope:
    """One table of FROM, with the names that it is known by."""
    alias = tree.args.get("alias")
    columns = [column.name for column in alias.args.get("columns") or ()] if alias is not None else []
    name = alias.name if alias is not None and alias.this is not None else None
    if isinstance(tree, exp.Table) and isinstance(tree.this, exp.Anonymous):
        relation = windows.window_table(binder, tree.this)
    elif isinstance(tree, exp.Table):
        name = name or tree.name
        relation = named(binder, tree)
    elif isinstance(tree, exp.Values):
        relation = binder.values(tree)
    elif isinstance(tree, exp.Subquery):
        relation = binder.query(tree.this)
    elif isinstance(tree, exp.Query):
        relation = binder.query(tree)
    elif isinstance(tree, exp.Unnest):
        one_row = Values((Field("nothing", BOOLEAN),), ((Term(BOOLEAN, "true"),),))
        return _unnested(binder, Scope(one_row, (), binder.text), tree, keeps_empty=False)
    else:
        raise SqlError.not_supported(binder.place(tree), "this in FROM", "name a table, a view or a subquery")
    if columns and len(columns) != len(relation.fields):
        raise SqlError.wrong_count(binder.place(tree), f"the alias {name!r}", len(columns), len(relation.fields))
    return Scope.of(relation, name, binder.text, columns)


def named(binder: QueryBinder, tree: exp.Table) -> Relation:
    """What a name stands for."""
    name = tree.name
    if tree.args.get("db") is not None:
        raise SqlError.not_supported(binder.place(tree), "a name with a catalog or database", "name the table alone")
    if name in binder.ctes:
        return binder.ctes[name]
    found = binder.catalog.get(name)
    if found is None:
        raise SqlError.no_table(binder.place(tree), name, [*binder.ctes, *binder.catalog])
    if isinstance(found, Table):
        return scan.scanned(found)
    return View(name, found)


def _unnested(binder: QueryBinder, scope: Scope, tree: exp.Unnest, *, keeps_empty: bool) -> Scope:
    if len(tree.expressions) != 1:
        raise SqlError.not_supported(binder.place(tree), "UNNEST of several arrays", "unnest them one after the other")
    relation, (resolved,) = functions.lifted(binder, scope.relation, [scope.resolved(tree.expressions[0])])
    scope = scope.over(relation)
    of = bound_tree(resolved, relation, binder.text)
    alias = tree.args.get("alias")
    given = [column.name for column in alias.args.get("columns") or ()] if alias is not None else []
    place = tree.args.get("offset")
    if given and isinstance(place, exp.Identifier):  # the parser takes the last name away
        given.append(place.name)
    types = _item_types(of.term.type)
    if types is None:
        raise SqlError.wrong_type(binder.place(tree), "what is unnested", str(of.term.type), "an array or a map")
    has_place = bool(place)
    shown = [*types, *([("ORDINALITY", INT)] if has_place else [])]
    if given and len(given) != len(shown):
        raise SqlError.wrong_count(binder.place(tree), "the alias of UNNEST", len(given), len(shown))
    made: list[Field] = []
    visible: list[Visible] = []
    table_name = alias.name if alias is not None else None
    for at, (own, dtype) in enumerate(shown):
        name = given[at] if given else own
        field = Field(unused(name, [*scope.relation.names, *(f.name for f in made)]), dtype)
        made.append(field)
        visible.append(Visible(table_name, name, field.name))
    relation = Unnest(scope.relation, of, tuple(made), has_place, keeps_empty)
    return Scope(relation, (*scope.visible, *visible), binder.text)


def _item_types(of: Type) -> list[tuple[str, Type]] | None:
    """The columns of an item: those of a row, or one; of a map two."""
    if of.kind == "map":
        return [("KEY", of.parts[0]), ("VALUE", of.parts[1])]
    if of.kind != "array":
        return None
    if of.item.kind == "row":
        return list(zip(of.item.names, of.item.parts, strict=True))
    return [("EXPR$0", of.item)]
