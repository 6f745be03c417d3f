"""Rules that change relations before they are built, one a file, in the order of RULES."""

from __future__ import annotations

from collections.abc import Callable

from headwater.sql.relations import Relation
from headwater.sql.rules.outer_joins import take_outer_joins_apart
from headwater.sql.rules.pruning import prune_columns

RULES: tuple[Callable[[Relation], Relation], ...] = (take_outer_joins_apart, prune_columns)


def ruled(relation: Relation) -> Relation:
    """A relation after all rules."""
    for rule in RULES:
        relation = rule(relation)
    return relation
