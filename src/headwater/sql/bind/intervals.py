"""Interval joins, recognised from the condition: both times and how far apart they may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from headwater.sql.bind.scalars import bound_tree
from headwater.sql.relations import PROCESSING, Relation, Values

if TYPE_CHECKING:
    from headwater.sql.bind.joins import Condition

_COMPARED: Final[dict[type[exp.Expr], str]] = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.EQ: "="}
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True)
class Bounds:
    """What an interval join is between, and what is left of the condition."""

    settings: dict[str, Any]
    rest: list[exp.Expr]


def found(condition: Condition) -> Bounds | None:
    """The interval of a join; None if its condition does not bound the times of both sides to each other."""
    left_times = {
        f.name: f.time for f in condition.left.fields if f.time and f.name == _row_time(condition.left, f.time)
    }
    shown = condition.shown_right
    right_times = {
        shown[f.name]: f.name for f in condition.right.fields if f.time and f.name == _row_time(condition.right, f.time)
    }
    lower: int | None = None
    upper: int | None = None
    pair: tuple[str, str] | None = None
    rest: list[exp.Expr] = []
    for tree in condition.rest:
        limits = _limits(tree, left_times, right_times, condition.binder.text)
        if not limits:
            rest.append(tree)
            continue
        for times, sign, value in limits:
            if pair not in (None, times):
                return None
            pair = times
            if sign in (">", ">=", "="):
                at_least = value + (sign == ">")
                lower = at_least if lower is None else max(lower, at_least)
            if sign in ("<", "<=", "="):
                at_most = value - (sign == "<")
                upper = at_most if upper is None else min(upper, at_most)
    if pair is None or lower is None or upper is None or not condition.equal:
        return None
    settings = {
        "left_time": pair[0],
        "right_time": right_times[pair[1]],
        "lower": lower,
        "upper": upper,
        "domain": left_times[pair[0]],
    }
    return Bounds(settings, rest)


def _row_time(relation: Relation, domain: str) -> str | None:
    if domain == PROCESSING:
        return next((f.name for f in relation.fields if f.time == PROCESSING), None)
    return relation.row_time


def _limits(
    tree: exp.Expr, left: dict[str, Any], right: dict[str, str], text: str
) -> list[tuple[tuple[str, str], str, int]]:
    """For `right time - left time`: comparisons with milliseconds that a condition says."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Between):
        parts = [
            exp.GTE(this=tree.this, expression=tree.args["low"]),
            exp.LTE(this=tree.this, expression=tree.args["high"]),
        ]
        limits = [_limits(part, left, right, text) for part in parts]
        return [one for part in limits for one in part] if all(limits) else []
    sign = _COMPARED.get(type(tree))
    if sign is None:
        return []
    one, other = _shifted(tree.this, text), _shifted(tree.expression, text)
    if one is None or other is None:
        return []
    if one[0] in left and other[0] in right:  # left + a < right + b: right - left > a - b
        return [((one[0], other[0]), _TURNED[sign], one[1] - other[1])]
    if one[0] in right and other[0] in left:
        return [((other[0], one[0]), sign, other[1] - one[1])]
    return []


def _shifted(tree: exp.Expr, text: str) -> tuple[str, int] | None:
    """A column, and the milliseconds that are added to it."""
    shift = 0
    while True:
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if isinstance(tree, exp.Column):
            return tree.parts[0].name, shift
        if not isinstance(tree, exp.Add | exp.Sub) or not isinstance(tree.expression, exp.Interval):
            return None
        scalar = bound_tree(tree.expression, Values((), ()), text)
        if scalar.term.type.kind != "interval day" or not isinstance(scalar.term.literal, int):
            return None
        milliseconds, left_over = divmod(scalar.term.literal, 1000)
        if left_over:
            return None
        shift += milliseconds if isinstance(tree, exp.Add) else -milliseconds
        tree = tree.this
