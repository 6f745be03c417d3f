"""Conditions on pairs that joins look at before they show rows that met none."""

from __future__ import annotations

from headwater.data.expressions import Stage, computed
from headwater.data.functions.terms import Term
from headwater.data.functions.types import BOOLEAN


def condition_query(condition: Term | None) -> str | None:
    """The query of DuckDB over pairs that keeps one row for each of which a condition is true."""
    if condition is None:
        return None
    query, _ = computed([Stage((("is_pair", Term(BOOLEAN, "true")),), condition)])
    return query
