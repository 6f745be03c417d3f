"""Where in a tree aggregates are called."""

from __future__ import annotations

from sqlglot import exp

from headwater.sql.bind.aggregates import NAMES
from headwater.sql.bind.scalars import rewritten


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
    return isinstance(inner, exp.Anonymous) and str(inner.this).upper() in NAMES
