"""Expressions over a relation: bound against the table of functions, with the place of what is wrong in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from sqlglot import exp

from headwater.data.expressions.binding import Binder
from headwater.data.expressions.errors import ExpressionError
from headwater.data.expressions.running import NOW
from headwater.data.functions import function_named
from headwater.data.functions.casts import cast
from headwater.data.functions.terms import Term
from headwater.data.functions.types import BIGINT, BOOLEAN, DATE, TIMESTAMP_3, TIMESTAMP_LTZ_3, Type, quoted
from headwater.errors import SchemaError
from headwater.sql.bind.scopes import Scope
from headwater.sql.errors import SqlError
from headwater.sql.relations import Relation, Scalar
from headwater.sql.text.places import Place

_NOW: Final = f"make_timestamp({quoted(NOW)} * 1000)"
_CLOCK: Final = {
    **dict.fromkeys(
        ("PROCTIME", "NOW", "CURRENT_TIMESTAMP", "CURRENT_ROW_TIMESTAMP"),
        Term(TIMESTAMP_LTZ_3, f"({_NOW} AT TIME ZONE 'UTC')"),
    ),
    "LOCALTIMESTAMP": Term(TIMESTAMP_3, _NOW),
    "CURRENT_DATE": Term(DATE, f"CAST({_NOW} AS DATE)"),
    "UNIX_TIMESTAMP": Term(BIGINT, f"({quoted(NOW)} // 1000)"),
}
"""What the clock says: the processing time of the epoch, which is the same when it is computed again."""


NULL_OF: Final = "NULL OF"
"""A call that nobody can write: NULL of a type, which has a name."""


class _SqlBinder(Binder):
    """Knows the clock, too, and NULLs of a type."""

    def __init__(self, types: Mapping[str, Type], nulls: Mapping[str, Type]) -> None:
        super().__init__(types, "sql")
        self._nulls = nulls

    def _anonymous(self, tree: exp.Expr) -> Term:
        name = str(tree.this).upper()
        if name == NULL_OF:
            dtype = self._nulls[tree.expressions[0].name]
            return Term(dtype, f"CAST(NULL AS {dtype.duckdb})")
        if name in _CLOCK and not tree.expressions:
            return _CLOCK[name]
        return super()._anonymous(tree)


def is_proctime(tree: exp.Expr) -> bool:
    """Whether an expression is PROCTIME()."""
    return isinstance(tree, exp.Anonymous) and str(tree.this).upper() == "PROCTIME"


def uses_clock(tree: exp.Expr) -> bool:
    """Whether an expression depends on when it is computed."""
    return any(str(call.this).upper() in _CLOCK and not call.expressions for call in tree.find_all(exp.Anonymous))


def bound(tree: exp.Expr, scope: Scope) -> Scalar:
    """An expression as it was written."""
    return bound_tree(scope.resolved(tree), scope.relation, scope.text)


def bound_tree(
    tree: exp.Expr, relation: Relation, text: str, nulls: Mapping[str, Type] = MappingProxyType({})
) -> Scalar:
    """An expression whose columns are named as the relation names them; `nulls` are types of NULLs in it, by name."""
    if relation.updates and uses_clock(tree):
        raise SqlError.not_supported(
            Place.of(text, tree),
            f"what the clock says over rows that {relation.updater.label} changes",
            "a row that is taken back must be the one that was given: compute it before",
        )
    binder = _SqlBinder({field.name: field.type for field in relation.fields}, nulls)
    try:
        return Scalar(tree, binder.bind(tree, tree.sql()[:200]))
    except (ExpressionError, SchemaError) as error:
        culprit = _culprit(tree, binder)
        problem = getattr(error, "problem", "") or str(error)
        action = getattr(error, "action", "") or "correct the expression"
        raise SqlError.wrong_expression(Place.of(text, culprit), problem, action) from None


def condition(tree: exp.Expr, scope: Scope, clause: str) -> Scalar:
    """An expression that is true or false."""
    found = bound(tree, scope)
    check_condition(found, scope.place(tree), clause)
    return found


def check_condition(found: Scalar, place: Place | None, clause: str) -> None:
    """Refuse a condition that is neither true nor false."""
    if found.term.type.kind not in ("boolean", "null"):
        raise SqlError.wrong_type(place, f"the condition of {clause}", str(found.term.type), "boolean")


def conjuncts(tree: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that must all be true."""
    found: list[exp.Expr] = []
    waiting = [] if tree is None else [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.And):
            waiting += [node.expression, node.this]
        elif isinstance(node, exp.Paren) and isinstance(node.this, exp.And | exp.Paren):
            waiting.append(node.this)
        else:
            found.append(node)
    return found


def all_of(trees: Iterable[exp.Expr]) -> exp.Expr:
    """Conditions as one."""
    first, *others = trees
    for other in others:
        first = exp.And(this=first, expression=other)
    return first


def converted_to(scalar: Scalar, wanted: Type, place: Place | None, what: str) -> Scalar:
    """The expression as another type, as INSERT, UNION and joins convert: what a cast without loss gives."""
    if scalar.term.type == wanted:
        return scalar
    made = cast(scalar.term, wanted, None)
    if made is None:
        raise SqlError.wrong_type(place, what, str(scalar.term.type), str(wanted))
    tree = exp.Anonymous(this=f"AS {wanted}", expressions=[scalar.tree])  # for rules: it is no plain column
    return Scalar(tree, made)


def call(name: str, *terms: Term) -> Term:
    """A function of the table, over what is bound already."""
    function = function_named(name)
    assert function is not None
    for form in function.forms:
        if (made := form.fit(terms)) is not None:
            return made
    raise AssertionError(f"{name} does not take {[str(term.type) for term in terms]}")


def when(condition_: Term, value: Term) -> Term:
    """The value where a condition is true, else NULL."""
    assert condition_.type == BOOLEAN or condition_.type.is_null
    return Term(value.type, f"(CASE WHEN {condition_.sql} THEN {value.sql} END)")


def rewritten(tree: exp.Expr, change: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """A copy in which some nodes are replaced, from the top; what is inside of a replaced one is not looked at."""
    found = change(tree)
    if found is not None:
        return found
    made = tree.copy()
    for child in list(tree.iter_expressions()):
        replaced = rewritten(child, change)
        _put(made, tree, child, replaced)
    return made


def _put(made: exp.Expr, tree: exp.Expr, child: exp.Expr, replaced: exp.Expr) -> None:
    for key, value in tree.args.items():
        if value is child:
            made.set(key, replaced)
        elif isinstance(value, list):
            places = [at for at, one in enumerate(value) if one is child]
            for at in places:
                items = list(made.args[key])
                items[at] = replaced
                made.set(key, items)


def _culprit(tree: exp.Expr, binder: Binder) -> exp.Expr:
    """The smallest part of a tree that cannot be bound."""
    for child in tree.iter_expressions():
        if isinstance(child, exp.DataType | exp.Identifier | exp.Var | exp.Interval):
            continue
        try:
            binder.bind(child, "")
        except (ExpressionError, SchemaError):
            return _culprit(child, binder)
    return tree
