"""GROUPING SETS, CUBE and ROLLUP: the groups of each set of keys, whose rows are put together."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.sql.bind import grouping
from headwater.sql.bind.calls import is_call
from headwater.sql.bind.scalars import NULL_OF, bound_tree, check_condition, rewritten
from headwater.sql.errors import SqlError
from headwater.sql.relations import Filter, Project, Relation, Union, column_tree

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder
    from headwater.sql.bind.scopes import Scope

Items = list[tuple[str, exp.Expr]]
_MOST = 64


def of(group: exp.Expr) -> list[list[exp.Expr]]:
    """The sets of keys that a GROUP BY means: every combination of what its parts mean."""
    parts = [_sets(key) if _is_sets(key) else [[key]] for key in group.expressions]
    for kind in ("grouping_sets", "cube", "rollup"):
        parts += [_sets(one) for one in group.args.get(kind) or () if isinstance(one, exp.Expr)]
    found = [_once([key for part in chosen for key in part]) for chosen in product(*parts)]
    if len(found) > _MOST:
        raise SqlError.too_large("grouping sets", _MOST)
    return found


def united(
    binder: QueryBinder, scope: Scope, sets: list[list[exp.Expr]], items: Items, having: exp.Expr | None
) -> tuple[Relation, Items, exp.Expr | None]:
    """The groups of all sets as one relation of the columns that are shown; a key that is not of a set is NULL there."""
    every = _once([key for keys in sets for key in keys])
    types = {str(at): bound_tree(key, scope.relation, binder.text).term.type for at, key in enumerate(every)}
    parts: list[Relation] = []
    for keys in sets:
        change = _Change(keys, every)
        shown = [(name, rewritten(item, change)) for name, item in items]
        condition = None if having is None else rewritten(having, change)
        relation, shown, condition = grouping.Groups(binder, scope, keys).made(shown, condition)
        if condition is not None:
            scalar = bound_tree(condition, relation, binder.text, types)
            check_condition(scalar, binder.place(condition), "HAVING")
            relation = Filter(relation, scalar)
        columns = tuple((name, bound_tree(item, relation, binder.text, types)) for name, item in shown)
        parts.append(Project(relation, columns))
    together = Union(tuple(binder.alike(parts, [every[0]] * len(parts), "GROUPING SETS")))
    return together, [(name, column_tree(name)) for name in together.names], None


class _Change:
    """Puts NULL in the place of keys that are not of a set, and says which those are where a query asks."""

    def __init__(self, keys: list[exp.Expr], every: list[exp.Expr]) -> None:
        self._keys, self._every = keys, every

    def __call__(self, node: exp.Expr) -> exp.Expr | None:
        if is_call(node):
            return node
        if isinstance(node, exp.Anonymous) and node.this in ("GROUPING", "GROUPING_ID", "GROUP_ID"):
            return exp.Cast(this=exp.Literal.number(self._bits(node)), to=exp.DataType.build("BIGINT"))
        if node in self._every and node not in self._keys:
            return exp.Anonymous(this=NULL_OF, expressions=[exp.Literal.string(str(self._every.index(node)))])
        return None

    def _bits(self, call: exp.Expr) -> int:
        """For each argument whether it is not grouped by, as bits, the first the highest."""
        value = 0
        for argument in call.expressions:
            value = value * 2 + (argument not in self._keys)
        return value


def _is_sets(key: exp.Expr) -> bool:
    return isinstance(key, exp.GroupingSets | exp.Cube | exp.Rollup)


def _sets(tree: exp.Expr) -> list[list[exp.Expr]]:
    members = [_members(one) for one in tree.expressions]
    sizes = range(len(members), -1, -1)
    if isinstance(tree, exp.Rollup):
        return [[key for one in members[:size] for key in one] for size in sizes]
    if isinstance(tree, exp.Cube):
        return [[key for one in chosen for key in one] for size in sizes for chosen in combinations(members, size)]
    found: list[list[exp.Expr]] = []
    for one, keys in zip(tree.expressions, members, strict=True):
        found += _sets(one) if _is_sets(one) else [keys]
    return found


def _members(tree: exp.Expr) -> list[exp.Expr]:
    if isinstance(tree, exp.Tuple):
        return list(tree.expressions)
    return [tree.this if isinstance(tree, exp.Paren) else tree]


def _once(keys: list[exp.Expr]) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for key in keys:
        if key not in found:
            found.append(key)
    return found
