"""Look-up joins: rows with what a table outside the job holds for them now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.data.functions.types import compared_type
from headwater.data.types import is_key_type
from headwater.sql.bind.scalars import all_of, bound_tree, check_condition, converted_to
from headwater.sql.bind.scopes import Scope
from headwater.sql.errors import SqlError
from headwater.sql.relations import Join, LookupJoin, Project, Relation, Scan, passed_on, unused
from headwater.sql.text.places import Place

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder


def looked_up(binder: QueryBinder, left: Relation, both: Scope, trees: list[exp.Expr], tree: exp.Join) -> LookupJoin:
    """The join of a relation with a table: by equalities with its columns, as far as there are some; the rest is checked."""
    assert isinstance(both.relation, Join)
    place = binder.place(tree.this)
    right = _table(both.relation.right, left, place)
    pairs = _Pairs(binder, left, right, both.relation.right_names)
    rest = [one for one in trees if not pairs.takes(one)]
    if not pairs.equal:
        raise SqlError.wrong_expression(
            place, "a look-up join needs an equality with a column of the table", "write ON left.a = right.b"
        )
    how = str(tree.args.get("side") or "inner").lower()
    made = LookupJoin(pairs.left, right, how, tuple(pairs.equal.items()), both.relation.right_names)
    if not rest:
        return made
    scalar = bound_tree(all_of(rest), made, binder.text)
    check_condition(scalar, binder.place(rest[0]), "ON")
    return LookupJoin(made.left, right, how, made.equal, made.right_names, scalar)


def _table(right: Relation, left: Relation, place: Place | None) -> Scan:
    if not isinstance(right, Scan) or right.table.lookup is None or right.computed:
        raise SqlError.not_supported(
            place,
            "FOR SYSTEM_TIME AS OF a processing time over this table",
            "join a table without computed columns that rows can be looked up in, of postgres or files or in memory, "
            "or use event time",
        )
    if left.updates and not right.table.lookup.is_fixed:
        raise SqlError.needs_append_only(
            place,
            "a look-up in a table that may have changed when a row is taken back",
            left.updater.label,
        )
    return right


class _Pairs:
    """Columns of the table, each with the left column that it must equal."""

    def __init__(self, binder: QueryBinder, left: Relation, right: Scan, names: tuple[str, ...]) -> None:
        self._binder, self.left, self._right = binder, left, right
        self._own = dict(zip(names, right.names, strict=True))
        self.equal: dict[str, str] = {}

    def takes(self, tree: exp.Expr) -> bool:
        """Whether a condition is such an equality, and new."""
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if not isinstance(tree, exp.EQ):
            return False
        for one, other in ((tree.this, tree.expression), (tree.expression, tree.this)):
            if self._is_of_left(one) and isinstance(other, exp.Column) and other.name in self._own:
                return self._adds(one, self._own[other.name], tree)
        return False

    def _is_of_left(self, tree: exp.Expr) -> bool:
        return all(column.parts[0].name in self.left.by_name for column in tree.find_all(exp.Column))

    def _adds(self, one: exp.Expr, other: str, tree: exp.Expr) -> bool:
        scalar = bound_tree(one, self.left, self._binder.text)
        dtype = self._right.by_name[other].type
        found = compared_type([scalar.term.type, dtype])
        is_key = dtype.arrow is not None and is_key_type(dtype.arrow)
        if found is None or found.arrow != dtype.arrow or not is_key or other in self.equal.values():
            return False
        name = scalar.column
        if name is None or name in self.equal or self.left.by_name[name].type.arrow != dtype.arrow:
            made = converted_to(scalar, dtype, self._binder.place(tree), "what a join compares")
            name = unused("join_key", [*self.left.names, *self._own])
            self.left = Project(self.left, (*passed_on(self.left, self.left.names), (name, made)))
        self.equal[name] = other
        return True
