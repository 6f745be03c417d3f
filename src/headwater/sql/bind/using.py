"""USING and NATURAL: joins by columns that both sides have, which are shown once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.sql.bind.scalars import bound_tree
from headwater.sql.bind.scopes import Scope, Visible
from headwater.sql.errors import SqlError
from headwater.sql.relations import Join, Project, column_tree, passed_on, unused

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder


def shared_names(left: Scope, right: Scope) -> list[exp.Expr]:
    """The names of columns that both sides show, in the order of the left one."""
    others = {v.name for v in right.visible if v.is_shown}
    names = dict.fromkeys(v.name for v in left.visible if v.is_shown and v.name in others)
    return [exp.Identifier(this=name, quoted=True) for name in names]


def equality(binder: QueryBinder, left: Scope, right: Scope, both: Scope, name: exp.Expr) -> exp.Expr:
    """That a column of both sides is the same."""
    own = left.resolved(exp.Column(this=name.copy()))
    found = {v.column for v in right.visible if v.name == name.name and v.is_plain}
    if not found:
        raise SqlError.no_column(binder.place(name), name.name, [v.name for v in right.visible])
    if len(found) > 1:
        raise SqlError.ambiguous(binder.place(name), name.name, [str(v.table) for v in right.visible])
    assert isinstance(both.relation, Join)
    return exp.EQ(this=own, expression=column_tree(both.relation.shown_right[found.pop()]))


def merged(binder: QueryBinder, both: Scope, left: Scope, names: list[str], how: str) -> Scope:
    """Both sides, with these columns first and once: of whichever side has the row. By its table each can still be named."""
    count = len(left.visible)
    lefts, rights = both.visible[:count], both.visible[count:]
    relation, shown = both.relation, []
    for name in names:
        own = next(v.column for v in lefts if v.name == name and v.is_plain)
        other = next(v.column for v in rights if v.name == name and v.is_plain)
        column = {"inner": own, "left": own, "right": other}.get(how)
        if column is None:
            either = exp.Anonymous(this="COALESCE", expressions=[column_tree(own), column_tree(other)])
            scalar = bound_tree(either, relation, binder.text)
            column = unused(name, relation.names)
            relation = Project(relation, (*passed_on(relation, relation.names), (column, scalar)))
        shown.append(Visible(None, name, column))
    rest = [replace(v, is_shown=False, is_plain=False) if v.name in names else v for v in (*lefts, *rights)]
    return replace(both, relation=relation, visible=(*shown, *rest))
