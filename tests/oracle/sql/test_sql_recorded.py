"""Statements beside what Flink SQL gave for them: the same table in the end, or different on purpose."""

from __future__ import annotations

from typing import Any

import pytest
from compare_sql import differences
from record_sql import GENERATED, recorded
from sql_cases import CONSTRUCTS, written
from sql_explained import EXPLAINED, NOT_YET, Rule, reason, refusal
from tests.parts.examples import LONG

pytestmark = pytest.mark.random

SLICED = 8 if LONG else 24
"""Of every so many statements, one runs in small epochs, too."""
TRIED = 1 if LONG else 4
"""Of every so many statements that were made by chance, one is run; of those that were written, each."""


def unexplained(records: list[dict[str, Any]], rows_per_epoch: int) -> tuple[list[str], set[Rule | str]]:
    """Differences without a reason, and the rules and refusals that gave one."""
    found: list[str] = []
    used: set[Rule | str] = set()
    for record, difference in differences(records, rows_per_epoch):
        rule = reason(record["statement"], difference)
        if rule is not None:
            used.add(rule)
        elif (refused := refusal(difference)) is not None:
            used.add(refused)
        else:
            found.append(f"{record['statement']} :: {difference}")
    return found, used


def test_statements_give_what_flink_gives_or_differ_on_purpose() -> None:
    used: set[Rule | str] = set()
    wrong: list[str] = []
    for construct in (*CONSTRUCTS, GENERATED):
        found, rules = unexplained(recorded(construct)[:: TRIED if construct == GENERATED else 1], 1_000_000)
        wrong += found
        used |= rules
    assert wrong == []
    assert [rule for rule in (*EXPLAINED, *NOT_YET) if rule not in used] == []


@pytest.mark.parametrize("rows_per_epoch", [1, 3])
def test_statements_give_the_same_in_small_epochs(rows_per_epoch: int) -> None:
    for construct in (*CONSTRUCTS, GENERATED):
        records = [record for record in recorded(construct) if "rows" in record][rows_per_epoch::SLICED]
        assert unexplained(records, rows_per_epoch)[0] == []


def test_what_is_recorded_is_what_is_tried() -> None:
    for construct in CONSTRUCTS:
        assert [record["statement"] for record in recorded(construct)] == written(construct)
