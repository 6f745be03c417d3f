"""Where in a tree aggregates are called."""

from __future__ import annotations

from collections.abc import Container

from sqlglot import exp

from headwater.sql.bind.aggregates import NAMES
from headwater.sql.bind.scalars import rewritten

_IS_AGGREGATE = "is_aggregate"


def calls_of(tree: exp.Expr) -> list[exp.Expr]:
    """The aggregate calls in a tree, each with what belongs to it, but for those with OVER."""
    found: list[exp.Expr] = []

    def look(node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Window | exp.Query):
            return node
        if is_call(node):
            found.append(node)
            return node
        return None

    rewritten(tree, look)
    return found


def is_call(node: exp.Expr) -> bool:
    """Whether a node calls an aggregate, perhaps with FILTER."""
    inner = node.this if isinstance(node, exp.Filter) else node
    return isinstance(inner, exp.Anonymous) and (str(inner.this).upper() in NAMES or _IS_AGGREGATE in inner.meta)


def mark_aggregates(tree: exp.Expr, names: Container[str]) -> None:
    """Let the calls of aggregates of the user's be known in a tree, and in what is made of it."""
    for node in tree.find_all(exp.Anonymous):
        if str(node.this).upper() in names:
            node.meta[_IS_AGGREGATE] = True
