"""Joins: which kind it is follows from the condition and from what is joined."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.data.functions.terms import Term
from headwater.data.functions.types import Type, compared_type, quoted
from headwater.sql.bind import functions, intervals, lookups, sources, using
from headwater.sql.bind.calls import calls_of
from headwater.sql.bind.scalars import (
    all_of,
    bound_tree,
    check_condition,
    conjuncts,
    converted_to,
    is_proctime,
    uses_clock,
    when,
)
from headwater.sql.bind.scopes import Scope
from headwater.sql.errors import SqlError
from headwater.sql.relations import (
    EVENT,
    PROCESSING,
    Filter,
    IntervalJoin,
    Join,
    Project,
    RegularJoin,
    Relation,
    Scalar,
    TemporalJoin,
    Window,
    WindowJoin,
    column_tree,
    named_after,
    passed_on,
    unused,
)

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder


class SingleSubtaskWarning(UserWarning):
    """A join without an equality, whose rows all meet in one place."""


def joined(binder: QueryBinder, left: Scope, tree: exp.Join, where: list[exp.Expr]) -> Scope:
    """Two tables of FROM as one. An inner join takes what it can of the conditions in WHERE."""
    kind, side = str(tree.args.get("kind") or "").upper(), str(tree.args.get("side") or "").upper()
    method = str(tree.args.get("method") or "").upper()
    if method not in ("", "NATURAL"):
        raise SqlError.not_supported(binder.place(tree), f"a {method} join", "write the condition with ON")
    how = {"": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}[side]
    if kind in ("SEMI", "ANTI"):
        raise SqlError.not_supported(
            binder.place(tree), f"{kind} JOIN", "write WHERE [NOT] EXISTS (SELECT …) or [NOT] IN"
        )
    version = tree.this.args.get("version")
    right = sources.table(binder, tree.this)
    both = _beside(left, right)
    on = tree.args.get("on")
    if on is not None and (query := on.find(exp.Query)) is not None:
        raise SqlError.not_supported(binder.place(query), "a subquery in ON", "write the condition in WHERE")
    shared: list[exp.Expr] = list(tree.args.get("using") or ()) or (using.shared_names(left, right) if method else [])
    if shared:
        conditions = [using.equality(binder, left, right, both, name) for name in shared]
    else:
        plain = _without_calls(binder, conjuncts(on), where, is_inner=how == "inner" and version is None)
        conditions = [both.resolved(one) for one in plain]
    if shared and version is not None:
        raise SqlError.not_supported(binder.place(tree), "USING or NATURAL with FOR SYSTEM_TIME AS OF", "write ON")
    if how == "inner" and version is None and not shared:
        taken = [one for one in where if _is_about(one, both) and not functions.calls_in(binder, one)]
        where[:] = [one for one in where if one not in taken]
        conditions += [both.resolved(one) for one in taken]
    if version is not None and _is_now(binder, left, version, tree):
        return both.over(lookups.looked_up(binder, left.relation, both, conditions, tree))
    condition = Condition.of(binder, left.relation, right.relation, both.relation, conditions)
    if version is not None:
        return both.over(_temporal(binder, (left, right), version, condition, tree))
    made = both.over(regular(binder, condition, how, tree))
    return using.merged(binder, made, left, [name.name for name in shared], how) if shared else made


def _without_calls(
    binder: QueryBinder, conditions: list[exp.Expr], where: list[exp.Expr], *, is_inner: bool
) -> list[exp.Expr]:
    """The conditions that call no function of the user's; of an inner join the others are as good in WHERE."""
    calling = [one for one in conditions if functions.calls_in(binder, one)]
    if calling and not is_inner:
        call = functions.calls_in(binder, calling[0])[0]
        raise SqlError.not_supported(
            binder.place(call), f"{call.this} in the condition of this join", "compute it in a subquery first"
        )
    where += calling
    return [one for one in conditions if one not in calling]


def _is_about(tree: exp.Expr, scope: Scope) -> bool:
    """Whether a condition is about columns of these tables alone, and plain enough for a join."""
    columns = list(tree.find_all(exp.Column))
    is_plain = tree.find(exp.Query, exp.Window) is None and not calls_of(tree) and not uses_clock(tree)
    return is_plain and bool(columns) and all(scope.knows(column) for column in columns)


class Condition:
    """What a join is on: pairs of columns that are equal, and the rest."""

    def __init__(self, binder: QueryBinder, left: Relation, right: Relation, names: tuple[str, ...]) -> None:
        self.binder, self.left, self.right, self.names = binder, left, right, names
        self.equal: list[tuple[str, str]] = []
        self.rest: list[exp.Expr] = []

    @classmethod
    def of(
        cls, binder: QueryBinder, left: Relation, right: Relation, both: Relation, trees: list[exp.Expr]
    ) -> Condition:
        assert isinstance(both, Join)
        made = cls(binder, left, right, both.right_names)
        for tree in trees:
            if not made._is_equality(tree):
                made.rest.append(tree)
        return made

    @property
    def shown_right(self) -> dict[str, str]:
        return dict(zip(self.right.names, self.names, strict=True))

    def _is_equality(self, tree: exp.Expr) -> bool:
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if not isinstance(tree, exp.EQ):
            return False
        sides = [self._side(tree.this), self._side(tree.expression)]
        if sides == ["right", "left"]:
            one, other = tree.expression, tree.this
        elif sides == ["left", "right"]:
            one, other = tree.this, tree.expression
        else:
            return False
        self._add(one, self._as_right(other), tree)
        return True

    def _side(self, tree: exp.Expr) -> str:
        """Whose columns a tree reads."""
        used = {column.parts[0].name for column in tree.find_all(exp.Column)}
        if used and used <= set(self.left.names):
            return "left"
        if used and used <= set(self.names):
            return "right"
        return ""

    def _as_right(self, tree: exp.Expr) -> exp.Expr:
        """With right columns as the right side names them."""
        own = {shown: name for name, shown in self.shown_right.items()}

        def change(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column):
                renamed = column_tree(own[node.parts[0].name])
                renamed.this.meta.update(node.parts[0].meta)
                return renamed
            return node

        return tree.copy().transform(change, copy=False)

    def _add(self, left: exp.Expr, right: exp.Expr, tree: exp.Expr) -> None:
        """A pair of columns; what is no column, or of another type, is computed before the join."""
        one = bound_tree(left, self.left, self.binder.text)
        other = bound_tree(right, self.right, self.binder.text)
        dtype = compared_type([one.term.type, other.term.type])
        if dtype is None:
            raise SqlError.wrong_type(
                self.binder.place(tree), "what a join compares", f"{one.term.type} and {other.term.type}", "one type"
            )
        self.equal.append((self._key(one, dtype, "left", tree), self._key(other, dtype, "right", tree)))

    def take_in_one_sided(self, how: str) -> None:
        """Let rows that a condition on their side alone forbids meet none: those that need not be shown are left out.

        Of the others the key becomes NULL, which equals nothing.
        """
        rest, self.rest = self.rest, []
        for tree in rest:
            side = self._side(tree)
            shown = {"left": ("left", "full", "anti"), "right": ("right", "full")}.get(side, ())
            if not side or (how in shown and not self.equal):
                self.rest.append(tree)
                continue
            own = tree if side == "left" else self._as_right(tree)
            relation: Relation = getattr(self, side)
            scalar = bound_tree(own, relation, self.binder.text)
            check_condition(scalar, self.binder.place(tree), "ON")
            if how not in shown:
                setattr(self, side, Filter(relation, scalar))
            else:
                self._forbid(scalar, side)

    def _forbid(self, allowed: Scalar, side: str) -> None:
        at = 0 if side == "left" else 1
        relation: Relation = getattr(self, side)
        column = self.equal[0][at]
        term = when(allowed.term, Term(relation.by_name[column].type, quoted(column)))
        tree = exp.Anonymous(this="WHEN", expressions=[allowed.tree, column_tree(column)])
        name = self._grown(Scalar(tree, term), side)
        pair = (name, self.equal[0][1]) if side == "left" else (self.equal[0][0], name)
        self.equal = [pair, *self.equal[1:]]

    def _key(self, scalar: Scalar, dtype: Type, side: str, tree: exp.Expr) -> str:
        if scalar.column is not None and _is_same_key(scalar.term.type, dtype):
            return scalar.column
        return self._grown(converted_to(scalar, dtype, self.binder.place(tree), "what a join compares"), side)

    def _grown(self, made: Scalar, side: str) -> str:
        """The name of a new column of a side."""
        relation: Relation = getattr(self, side)
        taken = [*self.left.names, *self.right.names, *self.names]
        name = unused(named_after(made, taken), taken)
        setattr(self, side, Project(relation, (*passed_on(relation, relation.names), (name, made))))
        if side == "right":
            self.names = (*self.names, unused(name, [*self.left.names, *self.names]))
        return name


def regular(binder: QueryBinder, condition: Condition, how: str, tree: exp.Expr) -> Relation:
    """A join by its condition: in windows, in an interval of time, or of all rows."""
    condition.take_in_one_sided(how)
    left, right = condition.left, condition.right
    windows = _windows(condition)
    if windows is not None:
        return _finished(binder, condition, how, WindowJoin, left_window=windows[0], right_window=windows[1])
    bounds = intervals.found(condition)
    if bounds is not None:
        if left.updates or right.updates:
            raise SqlError.needs_append_only(
                binder.place(tree), "an interval join", (left if left.updates else right).updater.label
            )
        condition.rest = bounds.rest
        return _finished(binder, condition, how, IntervalJoin, **bounds.settings)
    if not condition.equal:
        warnings.warn(
            "a join without an equality between its sides runs on one subtask: every row meets every other; "
            "add an equality to the condition, or a window or an interval of time",
            SingleSubtaskWarning,
            stacklevel=2,
        )
    ttls = tuple(binder.ttls.get(name) for name in _ttl_names(tree))
    return _finished(binder, condition, how, RegularJoin, ttls=ttls if len(ttls) == 2 else (None, None))


def _ttl_names(tree: exp.Expr) -> list[str]:
    select = tree.find_ancestor(exp.Select)
    from_ = None if select is None else select.args.get("from_")
    if from_ is None or not isinstance(tree, exp.Join):
        return []
    return [from_.this.alias_or_name, tree.this.alias_or_name]


def _finished(binder: QueryBinder, condition: Condition, how: str, kind: type[Join], **settings: object) -> Relation:
    made = kind(
        condition.left,
        condition.right,
        how,
        tuple(condition.equal),
        condition.names,
        **settings,  # type: ignore[arg-type]
    )
    if not condition.rest:
        return made
    shape = replace(made, how="inner") if how in ("semi", "anti") else made
    rest = bound_tree(all_of(condition.rest), shape, binder.text)
    check_condition(rest, binder.place(condition.rest[0]), "ON")
    return replace(made, rest=rest)


def _windows(condition: Condition) -> tuple[Window, Window] | None:
    """The windows of both sides, if the condition says that they are the same ones."""
    left, right = condition.left.window, condition.right.window
    if left is None or right is None:
        return None
    pairs = {(left.start, right.start), (left.end, right.end)}
    if not pairs <= set(condition.equal):
        return None
    condition.equal = [pair for pair in condition.equal if pair not in pairs]
    return left, right


def _is_now(binder: QueryBinder, left: Scope, version: exp.Expr, tree: exp.Join) -> bool:
    """Whether rows are joined with what is there now, and not as of their event time."""
    how = str(tree.args.get("side") or "").lower()
    if how not in ("", "left"):
        raise SqlError.not_supported(binder.place(tree), f"a {how} temporal join", "use an inner or left one")
    of = left.resolved(version.expression)
    name = of.name if isinstance(of, exp.Column) else ""
    known = left.relation.by_name.get(name)
    if is_proctime(of) or (known is not None and known.time == PROCESSING):
        return True
    if known is None or known.time is None:
        raise SqlError.no_time(
            binder.place(version),
            version.expression.sql(),
            "FOR SYSTEM_TIME AS OF takes a time attribute of the left table",
        )
    return False


def _temporal(
    binder: QueryBinder, sides: tuple[Scope, Scope], version: exp.Expr, condition: Condition, tree: exp.Join
) -> Relation:
    left, right = sides
    how = str(tree.args.get("side") or "inner").lower()
    place = binder.place(version)
    name = left.resolved(version.expression).name
    if not condition.equal:
        raise SqlError.wrong_expression(
            binder.place(tree), "a temporal join needs equalities", "join on the primary key"
        )
    if left.relation.updates:
        raise SqlError.needs_append_only(place, "a temporal join", left.relation.updater.label)
    key = right.relation.key
    if key is None or not set(key) <= {other for _, other in condition.equal}:
        raise SqlError.wrong_expression(
            binder.place(tree),
            "a temporal join needs a versioned table: a primary key, all of which is joined on, and an event time",
            "declare PRIMARY KEY and WATERMARK, or make a view with ROW_NUMBER() … ORDER BY time DESC … = 1",
        )
    if _version_time(right.relation) is None:
        raise SqlError.no_time(
            binder.place(tree.this), tree.this.alias_or_name, "the versioned table has no event time"
        )
    if how == "left" and condition.rest:
        raise SqlError.not_supported(
            binder.place(condition.rest[0]),
            "a left temporal join with a condition besides equalities of columns",
            "compute the column as CASE WHEN … THEN … END behind the join",
        )
    return _finished(binder, condition, how, TemporalJoin, time=name)


def _version_time(relation: Relation) -> str | None:
    """The column by which versions are ordered."""
    return relation.row_time or next((f.name for f in relation.fields if f.time == EVENT or f.lost), None)


def _is_same_key(one: Type, other: Type) -> bool:
    return one == other or (one.kind == other.kind and one.is_timestamp)


def _beside(left: Scope, right: Scope) -> Scope:
    """The columns of both, each under a name of its own."""
    names: list[str] = []
    for name in right.relation.names:
        names.append(unused(name, [*left.relation.names, *names]))
    renamed = dict(zip(right.relation.names, names, strict=True))
    visible = (*left.visible, *(replace(v, column=renamed[v.column]) for v in right.visible))
    return Scope(RegularJoin(left.relation, right.relation, "inner", (), tuple(names)), visible, left.text)
