"""GROUP BY: keys, aggregate calls, grouping sets and windows, and what is shown of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from headwater.aggregates.called import CalledAggregate, has
from headwater.data.functions.terms import Term
from headwater.data.functions.types import BIGINT, Type, quoted
from headwater.data.types import is_key_type
from headwater.sql.bind import functions, group_windows, grouping_sets
from headwater.sql.bind.aggregates import item, kernel_of, needs
from headwater.sql.bind.calls import calls_of, is_call
from headwater.sql.bind.scalars import bound_tree, call, check_condition, rewritten, when
from headwater.sql.bind.scopes import Scope
from headwater.sql.errors import SqlError
from headwater.sql.relations import (
    Aggregate,
    Called,
    Project,
    Relation,
    Scalar,
    Window,
    column_tree,
    named_after,
    of_term,
    passed,
    passed_on,
    unused,
)

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder

Items = list[tuple[str, exp.Expr]]


def grouped(
    binder: QueryBinder, tree: exp.Select, scope: Scope, items: Items, having: exp.Expr | None
) -> tuple[Relation, Items, exp.Expr | None] | None:
    """The groups of a query, what is shown of them and the condition on them; None where nothing is grouped."""
    group = tree.args.get("group")
    if group is not None and (query := group.find(exp.Query)) is not None:
        raise SqlError.not_supported(binder.place(query), "a subquery in GROUP BY", "compute it in a subquery of FROM")
    trees = [item for _, item in items] + ([] if having is None else [having])
    if group is None and not any(calls_of(one) for one in trees):
        return None
    sets = grouping_sets.of(group) if group is not None else [[]]
    if any(group_windows.is_window(key) for key in sets[0]):
        return grouped_in_windows(binder, scope, sets, items, having)
    keys = [[_key(binder, scope, key, items) for key in one] for one in sets]
    scope, keys, items, having = _with_functions(binder, scope, keys, items, having)
    if len(sets) > 1:
        return grouping_sets.united(binder, scope, keys, items, having)
    return Groups(binder, scope, keys[0]).made(items, having)


def _with_functions(
    binder: QueryBinder, scope: Scope, keys: list[list[exp.Expr]], items: Items, having: exp.Expr | None
) -> tuple[Scope, list[list[exp.Expr]], Items, exp.Expr | None]:
    """Functions of the user's that groups are made by, or that aggregates are over, as columns."""
    shown = [item for _, item in items] + ([] if having is None else [having])
    inside = [call for tree in shown for call in calls_of(tree)] + [key for one in keys for key in one]
    wanted = [call for tree in inside for call in functions.calls_in(binder, tree)]
    if not wanted:
        return scope, keys, items, having
    every = [*(key for one in keys for key in one), *shown]
    relation, trees = functions.lifted(binder, scope.relation, every, lambda call: call in wanted)
    left = iter(trees)
    keys = [[next(left) for _ in one] for one in keys]
    items = [(name, next(left)) for name, _ in items]
    return scope.over(relation), keys, items, None if having is None else next(left)


def grouped_in_windows(
    binder: QueryBinder, scope: Scope, sets: list[list[exp.Expr]], items: Items, having: exp.Expr | None
) -> tuple[Relation, Items, exp.Expr | None]:
    """The groups of `GROUP BY TUMBLE(time, size)` and the like."""
    if len(sets) > 1:
        raise SqlError.not_supported(
            binder.place(sets[0][0]), "GROUP BY with sets and a window function", "write FROM TABLE(TUMBLE(…))"
        )
    others = [_key(binder, scope, key, items) for key in sets[0] if not group_windows.is_window(key)]
    windowed = group_windows.Windowed(binder, scope, next(filter(group_windows.is_window, sets[0])), others)
    shown = [(name, windowed.rewritten(item)) for name, item in items]
    condition = None if having is None else windowed.rewritten(having)
    return Groups(binder, windowed.scope, [*others, *windowed.keys]).made(shown, condition)


def _key(binder: QueryBinder, scope: Scope, key: exp.Expr, items: Items) -> exp.Expr:
    """What is grouped by: an expression, or the number of one that is shown."""
    if isinstance(key, exp.Literal) and not key.is_string and key.name.isdecimal():
        at = int(key.name)
        if not 1 <= at <= len(items):
            raise SqlError.wrong_expression(binder.place(key), f"there is no column {at} to group by", "name it")
        return items[at - 1][1]
    if isinstance(key, exp.Column) and len(key.parts) == 1 and not scope.knows(key):
        named = [item for name, item in items if name == key.name and not calls_of(item)]
        if named:
            return named[0]
    return scope.resolved(key)


class Calls:
    """Aggregate calls over one relation: the columns they need, the kernels, and what stands for their results."""

    def __init__(self, binder: QueryBinder, relation: Relation, taken: list[str]) -> None:
        self._binder, self.relation = binder, relation
        self._taken = taken
        self.inputs: dict[str, Scalar] = {}
        """Columns that kernels read, by name."""
        self.kernels: dict[str, Called] = {}
        self._made: dict[tuple[str, str | None], str] = {}

    def result(self, tree: exp.Expr) -> Term:
        """What a call gives, over the columns of kernels."""
        filter_ = None
        node = tree
        if isinstance(tree, exp.Filter):
            filter_ = bound_tree(tree.expression.this, self.relation, self._binder.text)
            check_condition(filter_, self._binder.place(tree.expression), "FILTER")
            node = tree.this
        name, given = str(node.this).upper(), list(node.expressions)
        ignores_nulls = name == "ARRAY_AGG" and bool(given) and isinstance(given[0], exp.IgnoreNulls)
        if ignores_nulls or (name == "ARRAY_AGG" and given and isinstance(given[0], exp.RespectNulls)):
            given[0] = given[0].this
        is_distinct = bool(given) and isinstance(given[0], exp.Distinct)
        if is_distinct:
            given = list(given[0].expressions) + given[1:]
        return self._result(tree, name, given, filter_, is_distinct=is_distinct, ignores_nulls=ignores_nulls)

    def _result(
        self,
        tree: exp.Expr,
        name: str,
        given: list[exp.Expr],
        filter_: Scalar | None,
        *,
        is_distinct: bool,
        ignores_nulls: bool,
    ) -> Term:
        place, separator = self._binder.place(tree), ","
        if name in self._binder.catalog.aggregates:
            return self._called(tree, name, given, is_plain=filter_ is None and not is_distinct)
        if name == "LISTAGG" and len(given) == 2:
            if not isinstance(given[1], exp.Literal):
                raise SqlError.wrong_expression(
                    place, "the separator of LISTAGG is a literal", "write LISTAGG(x, ', ')"
                )
            separator = given.pop().name
        is_all = name == "COUNT" and (not given or isinstance(given[0], exp.Star))
        argument = None if is_all else self._argument(tree, name, given)
        found = needs(
            name,
            None if argument is None else argument.term.type,
            is_distinct=is_distinct,
            separator=separator,
            ignores_nulls=ignores_nulls,
        )
        if found is None or (argument is None and name != "COUNT"):
            raise SqlError.wrong_expression(place, f"{name} needs one argument", "see docs/sql/queries.md")
        if argument is not None and not found.over(argument.term.type) and not argument.term.type.is_null:
            raise SqlError.wrong_type(place, f"the argument of {name}", str(argument.term.type), found.takes)
        if argument is not None and found.keeps_nulls:
            argument = Scalar(exp.Anonymous(this="ITEM", expressions=[argument.tree]), item(argument.term))
        if filter_ is not None:
            value = argument.term if argument is not None else Term(BIGINT, "CAST(1 AS BIGINT)")
            tree_ = exp.Anonymous(
                this="FILTERED", expressions=[filter_.tree, argument.tree if argument else exp.Null()]
            )
            argument = Scalar(tree_, when(filter_.term, value))
        column = None if argument is None else self.column(argument)
        terms = []
        for function in found.kernels:
            made, dtype = kernel_of(function, column, None if argument is None else argument.term.type)
            key = (function, column)
            if key not in self._made:
                hint = function if column is None else f"{function}_{column}"
                self._made[key] = unused(hint, self._taken)
                self._taken.append(self._made[key])
                self.kernels[self._made[key]] = Called(self._made[key], made, dtype)
            terms.append(Term(self.kernels[self._made[key]].type, quoted(self._made[key])))
        return found.result(terms)

    def _called(self, tree: exp.Expr, name: str, given: list[exp.Expr], *, is_plain: bool) -> Term:
        """What an aggregate of the user's gives."""
        function, place = self._binder.catalog.aggregates[name], self._binder.place(tree)
        if not is_plain:
            raise SqlError.not_supported(
                place, f"DISTINCT or FILTER with {name}, which is in Python,", "do it in a subquery, or with CASE"
            )
        if self.relation.updates and not has(function.call, "retract"):
            raise SqlError.not_supported(
                place,
                f"{name} over rows that change, as it has no method 'retract',",
                f"write one, or aggregate rows that are only added: {self.relation.updater.label} changes them",
            )
        columns = tuple(map(self.column, functions.arguments(self._binder, self.relation, tree, function, given)))
        kernel = CalledAggregate(
            name.lower(),
            over=columns,
            called=function.call,
            accumulator=function.accumulator.arrow,
            gives=function.result.arrow,
        )
        hint = "_".join([name.lower(), *columns])
        return self.other(hint, kernel, function.result)

    def _argument(self, tree: exp.Expr, name: str, given: list[exp.Expr]) -> Scalar:
        if len(given) != 1:
            if name == "COUNT" and given:
                return self._several(given)
            raise SqlError.wrong_expression(
                self._binder.place(tree),
                f"{name} needs one argument, and got {len(given)}",
                "see docs/sql/queries.md",
            )
        if calls_of(given[0]):
            raise SqlError.misplaced(
                self._binder.place(tree), "an aggregate", f"the argument of {name}", "aggregate a subquery instead"
            )
        return bound_tree(given[0], self.relation, self._binder.text)

    def _several(self, given: list[exp.Expr]) -> Scalar:
        """Several values as one, NULL where one of them is: COUNT(DISTINCT a, b)."""
        scalars = [bound_tree(one, self.relation, self._binder.text) for one in given]
        row = call("ROW", *(scalar.term for scalar in scalars))
        known = " AND ".join(f"{scalar.term.sql} IS NOT NULL" for scalar in scalars)
        return Scalar(exp.Tuple(expressions=given), Term(row.type, f"(CASE WHEN {known} THEN {row.sql} END)"))

    def other(self, name: str, kernel: Any, dtype: Type) -> Term:
        """What something else than an aggregate gives; `name` is its own."""
        if name not in self.kernels:
            self.kernels[name] = Called(unused(name, self._taken), kernel, dtype)
            self._taken.append(self.kernels[name].name)
        return Term(dtype, quoted(self.kernels[name].name))

    def column(self, scalar: Scalar) -> str:
        """The column that holds the values of an expression."""
        for name, known in self.inputs.items():
            if known == scalar:
                return name
        name = named_after(scalar, [*self.relation.names, *self.inputs])
        self.inputs[name] = scalar
        return name


class Groups:
    """The groups of one set of keys."""

    def __init__(self, binder: QueryBinder, scope: Scope, keys: list[exp.Expr]) -> None:
        self._binder, self._relation = binder, scope.relation
        self._trees = keys
        self._scalars = [bound_tree(key, scope.relation, binder.text) for key in keys]
        self._names: list[str] = []
        for scalar in self._scalars:
            self._names.append(named_after(scalar, [*scope.relation.names, *self._names]))
        for tree, scalar in zip(keys, self._scalars, strict=True):
            arrow = scalar.term.type.arrow
            if arrow is None or not is_key_type(arrow):
                raise SqlError.wrong_type(
                    binder.place(tree), "what is grouped by", str(scalar.term.type), "a type with exact equality"
                )

    def made(self, items: Items, having: exp.Expr | None) -> tuple[Relation, Items, exp.Expr | None]:
        """The groups as a relation, and what is shown of them and the condition on them over its columns."""
        window = self._window()
        shown = {} if window is None else {window.start, window.end, *([window.bound] if window.bound else [])}
        keys = [name for name in dict.fromkeys(self._names) if name not in shown]
        calls = Calls(self._binder, self._relation, [*self._relation.names, *self._names])
        results: dict[str, Term] = {}

        def change(node: exp.Expr) -> exp.Expr | None:
            for tree, name in zip(self._trees, self._names, strict=True):
                if node == tree:
                    return self._placed(column_tree(name), node)
            if is_call(node):
                name = f"result{len(results)}"
                results[name] = calls.result(node)
                return self._placed(column_tree(name), node)
            if isinstance(node, exp.Column):
                if window is not None and node.name in shown:
                    return None
                raise SqlError.not_grouped(self._binder.place(node), node.name)
            return None

        items = [(name, rewritten(item, change)) for name, item in items]
        having = None if having is None else rewritten(having, change)
        relation = self._aggregated(keys, calls, window)
        if results:
            kept = [*keys, *(name for name in relation.names if name in shown)]
            finished = tuple((name, of_term(relation, term)) for name, term in results.items())
            relation = Project(relation, (*passed_on(relation, kept), *finished))
        return relation, items, having

    def _aggregated(self, keys: list[str], calls: Calls, window: Window | None) -> Relation:
        base = self._relation
        needed: dict[str, Scalar] = {
            name: s for name, s in zip(self._names, self._scalars, strict=True) if name in keys
        }
        needed |= calls.inputs
        if window is not None:
            times = [window.start, window.end, window.bound, base.row_time, window.time]
            for name in dict.fromkeys(name for name in times if name is not None and name in base.by_name):
                needed.setdefault(name, passed(base, name))
        elif base.row_time is not None and not needed:
            needed[base.row_time] = passed(base, base.row_time)
        elif not needed:
            needed[base.names[0]] = passed(base, base.names[0])
        items = tuple(needed.items())
        same = [name for name, scalar in items if scalar.column == name]
        source = base if same == base.names and len(items) == len(same) else Project(base, items)
        called = tuple(calls.kernels.values())
        return Aggregate(source, tuple(keys), called, window)

    def _window(self) -> Window | None:
        """The window, if rows are grouped by it."""
        window = self._relation.window
        if window is None or window.start not in self._names or window.end not in self._names:
            return None
        return window

    def _placed(self, tree: exp.Column, like: exp.Expr) -> exp.Column:
        """With the place of what it stands for."""
        place = self._binder.place(like)
        if place is not None:
            tree.this.meta.update({"start": place.start, "end": place.end})
        return tree
