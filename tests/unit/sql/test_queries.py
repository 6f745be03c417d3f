"""Queries over a few rows: what their final tables are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

import headwater as hw

SALES = [("a", 1, 1_000), ("b", 2, 2_000), ("a", 3, 11_000), ("c", None, 12_000)]


def table(text: str) -> Counter[Any]:
    """What a query leaves, however often it has changed on the way."""
    env = hw.Environment("queries", engine="local", parallelism=2)
    sales = env.from_rows(SALES, "shop string, n int, ms long", hw.Watermarks.bounded("ms", "1 s"))
    env.create_view("sales", sales.with_column("ts", "to_timestamp_ltz(ms, 3)"), time="ts")
    left: Counter[Any] = Counter()
    for row in env.sql(text).collect():
        kind = getattr(row, "row_kind", "+I")
        values = hashable(tuple(row)[: len(row) - hasattr(row, "row_kind")])
        left[values] += 1 if kind in ("+I", "+U") else -1
    return +left


def hashable(values: Any) -> Any:
    return tuple(map(hashable, values)) if isinstance(values, list | tuple) else values


CASES = yaml.safe_load(Path(__file__).with_name("queries.yaml").read_text())


@pytest.mark.filterwarnings("ignore:a join without an equality")
@pytest.mark.parametrize("case", CASES["leaves"], ids=lambda case: case["query"][:60])
def test_a_query_leaves_these_rows(case: dict[str, Any]) -> None:
    assert table(case["query"]) == Counter(map(hashable, case["rows"]))


@pytest.mark.filterwarnings("ignore:a join without an equality")
@pytest.mark.parametrize("case", CASES["errors"], ids=lambda case: case["query"][:60])
def test_an_error_says_what_and_where(case: dict[str, Any]) -> None:
    with pytest.raises(hw.SqlError) as error:
        table(case["query"])
    assert case["says"] in str(error.value)


def test_a_join_without_an_equality_is_told_of() -> None:
    with pytest.warns(UserWarning, match="runs on one subtask"):
        assert table("SELECT a.n, b.n FROM sales a JOIN sales b ON a.n < b.n") == Counter([(1, 2), (1, 3), (2, 3)])
