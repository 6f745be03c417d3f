"""Calls of the user's functions in expressions: they are made before the rest of the expression, by a step of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.data.functions.types import common_type
from headwater.sql.bind.scalars import bound_tree, converted_to, rewritten
from headwater.sql.errors import SqlError
from headwater.sql.functions import AggregateCall, Function
from headwater.sql.relations import FunctionCall, Functions, Project, Relation, Scalar, column_tree, passed_on, unused

if TYPE_CHECKING:
    from headwater.sql.bind.queries import QueryBinder


def calls_in(binder: QueryBinder, tree: exp.Expr) -> list[exp.Anonymous]:
    """The calls of the user's functions in a tree."""
    known = binder.catalog.functions
    return [node for node in tree.find_all(exp.Anonymous) if str(node.this).upper() in known]


def lifted(
    binder: QueryBinder,
    relation: Relation,
    trees: list[exp.Expr],
    wanted: Callable[[exp.Expr], bool] = lambda _: True,
) -> tuple[Relation, list[exp.Expr]]:
    """A relation with columns for the calls in some trees, and the trees with those columns in the place of the calls."""
    while True:
        ready = [
            call
            for tree in trees
            for call in calls_in(binder, tree)
            if wanted(call) and not any(calls_in(binder, argument) for argument in call.expressions)
        ]
        if not ready:
            return relation, trees
        relation, columns = _called(binder, relation, ready)
        trees = [rewritten(tree, partial(_column_of, columns)) for tree in trees]


def _column_of(columns: list[tuple[exp.Expr, str]], node: exp.Expr) -> exp.Expr | None:
    return next((column_tree(name) for call, name in columns if call == node), None)


def _called(
    binder: QueryBinder, relation: Relation, calls: list[exp.Anonymous]
) -> tuple[Relation, list[tuple[exp.Expr, str]]]:
    more: list[tuple[str, Scalar]] = []
    made: list[FunctionCall] = []
    columns: list[tuple[exp.Expr, str]] = []
    for call in calls:
        if _column_of(columns, call) is not None:
            continue
        function = binder.catalog.functions[str(call.this).upper()]
        names = []
        for scalar in arguments(binder, relation, call, function, call.expressions):
            if scalar.column is None:
                more.append((unused("argument", [*relation.names, *(name for name, _ in more)]), scalar))
                names.append(more[-1][0])
            else:
                names.append(scalar.column)
        taken = [*relation.names, *(name for name, _ in more), *(one.name for one in made)]
        made.append(FunctionCall(unused(function.name.lower(), taken), function, tuple(names)))
        columns.append((call, made[-1].name))
    source = Project(relation, (*passed_on(relation, relation.names), *more)) if more else relation
    return Functions(source, tuple(made)), columns


def arguments(
    binder: QueryBinder, relation: Relation, call: exp.Expr, function: Function | AggregateCall, given: list[exp.Expr]
) -> list[Scalar]:
    """The arguments of a call, of the types that the function takes."""
    if len(given) != len(function.arguments):
        takes = ", ".join(map(str, function.arguments))
        raise SqlError.wrong_expression(
            binder.place(call), f"{function.name} got {len(given)} arguments", f"it takes ({takes})"
        )
    scalars = []
    for argument, dtype in zip(given, function.arguments, strict=True):
        scalar = bound_tree(argument, relation, binder.text)
        what = f"an argument of {function.name}"
        if common_type([scalar.term.type, dtype]) != dtype:
            raise SqlError.wrong_type(binder.place(argument), what, str(scalar.term.type), str(dtype))
        scalars.append(converted_to(scalar, dtype, binder.place(argument), what))
    return scalars
