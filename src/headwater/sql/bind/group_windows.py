"""`GROUP BY TUMBLE(time, size)`, as it was written before there were window table functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.sql.bind.scalars import bound_tree, rewritten
from headwater.sql.bind.windows import made_window
from headwater.sql.errors import SqlError
from headwater.sql.relations import Project, WindowTable, by_time, column_tree, named_after, passed_on

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder
    from headwater.sql.bind.scopes import Scope

_KINDS = ("TUMBLE", "HOP", "SESSION")


def is_window(tree: exp.Expr) -> bool:
    """Whether a key is a call that makes windows."""
    return isinstance(tree, exp.Anonymous) and str(tree.this).upper() in _KINDS


class Windowed:
    """A table with the windows that it is grouped by."""

    def __init__(self, binder: QueryBinder, scope: Scope, key: exp.Expr, others: list[exp.Expr]) -> None:
        self._binder, self._call = binder, scope.resolved(key)
        kind, (time, *sizes) = str(key.this).upper(), self._call.expressions
        relation = scope.relation
        partition: list[str] = []
        for other in others if kind == "SESSION" else ():
            scalar = bound_tree(other, relation, binder.text)
            name = named_after(scalar, relation.names)
            if scalar.column is None:
                relation = Project(relation, (*passed_on(relation, relation.names), (name, scalar)))
                others[others.index(other)] = column_tree(name)
            partition.append(name)
        if not isinstance(time, exp.Column):
            raise SqlError.wrong_expression(binder.place(key), f"{kind} needs a time column", "name it first")
        window = made_window(binder, relation, key, kind=kind, time=time, sizes=sizes, partition=tuple(partition))
        self.scope = scope.over(WindowTable(by_time(relation, window.time), window))
        self._shown = {"START": window.start, "END": window.end, "ROWTIME": window.bound, "PROCTIME": window.bound}
        self.keys = [column_tree(window.start), column_tree(window.end)]

    def rewritten(self, tree: exp.Expr) -> exp.Expr:
        """With columns of the window in the place of TUMBLE_START and the like."""
        return rewritten(tree, self._change)

    def _change(self, node: exp.Expr) -> exp.Expr | None:
        if not isinstance(node, exp.Anonymous) or "_" not in str(node.this):
            return None
        kind, _, part = str(node.this).upper().partition("_")
        if kind not in _KINDS or part not in self._shown:
            return None
        if kind != self._call.this or node.expressions != self._call.expressions:
            raise SqlError.wrong_expression(
                self._binder.place(node), f"{node.this} is of another window than GROUP BY", "write the same one"
            )
        column = self._shown[part]
        assert column is not None
        made = column_tree(column)
        place = self._binder.place(node)
        if place is not None:
            made.this.meta.update({"start": place.start, "end": place.end})
        return made
