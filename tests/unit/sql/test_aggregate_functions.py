"""Aggregate functions in Python: over groups, windows, OVER and tables that change."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.parts.halves import run_epochs

import headwater as hw


class Weighted(hw.AggregateFunction[Any, Any, Any]):
    """The mean of values by their weights, NULL of none."""

    def create(self) -> Any:
        return (0.0, 0)

    def add(self, kept: Any, value: float, weight: int) -> Any:
        return kept if value is None else (kept[0] + value * weight, kept[1] + weight)

    def merge(self, left: Any, right: Any) -> Any:
        return (left.total + right.total, left.weight + right.weight)

    def result(self, kept: Any) -> float | None:
        return kept[0] / kept[1] if kept[1] else None


class Taken(Weighted):
    def retract(self, kept: Any, value: float, weight: int) -> Any:
        return (kept.total - value * weight, kept.weight - weight)


class Longest(hw.AggregateFunction[str, str, str]):
    def create(self) -> str:
        return ""

    def add(self, kept: str, value: str) -> str:
        return max(kept, value, key=len)

    def merge(self, left: str, right: str) -> str:
        return max(left, right, key=len)

    def result(self, kept: str) -> str:
        return kept


KEPT = "struct<total:double,weight:bigint>"
ROWS = [
    ("a", 1.0, 1, 1_000),
    ("b", 2.0, 2, 2_000),
    ("a", 4.0, 2, 11_000),
    ("c", None, 5, 12_000),
    ("b", 8.0, 1, 13_000),
]


def env_of(**settings: Any) -> hw.Environment:
    env = hw.Environment("means", engine="local", **{"parallelism": 2, **settings})
    rows = env.from_rows(ROWS, "k string, x double, w int, ms long", hw.Watermarks.bounded("ms", "1 s"))
    env.create_view("given", rows.with_column("ts", "to_timestamp_ltz(ms, 3)"), time="ts")
    env.create_function("weighted", Weighted(), accumulator=KEPT)
    env.create_function("taken", Taken(), accumulator=KEPT)
    env.create_function("longest", Longest())
    return env


def table(text: str, **settings: Any) -> Counter[Any]:
    left: Counter[Any] = Counter()
    for row in env_of(**settings).sql(text).collect():
        kind = getattr(row, "row_kind", "+I")
        left[tuple(row)[: len(row) - hasattr(row, "row_kind")]] += 1 if kind in ("+I", "+U") else -1
    return +left


WINDOW = "TABLE({}(TABLE given{}, DESCRIPTOR(ts), {})) GROUP BY k, window_start, window_end"
TEN, FIVE = "INTERVAL '10' SECOND", "INTERVAL '5' SECOND"


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT k, weighted(x, w) FROM given GROUP BY k", [("a", 3.0), ("b", 4.0), ("c", None)]),
        ("SELECT weighted(x, 1), COUNT(*) FROM given", [(3.75, 5)]),
        ("SELECT weighted(x * 2, w) + 1 FROM given WHERE k = 'a'", [(7.0,)]),
        ("SELECT k FROM given GROUP BY k HAVING weighted(x, w) > 3", [("b",)]),
        ("SELECT longest(k || CAST(w AS STRING)) FROM given", [("a1",)]),
        (f"SELECT k, weighted(x, w) FROM {WINDOW.format('TUMBLE', '', TEN)}", None),
        (f"SELECT k, weighted(x, w) FROM {WINDOW.format('HOP', '', f'{TEN}, {TEN}')}", None),
        (f"SELECT k, weighted(x, w) FROM {WINDOW.format('CUMULATE', '', f'{TEN}, {TEN}')}", None),
        (f"SELECT k, weighted(x, w) FROM {WINDOW.format('SESSION', ' PARTITION BY k', FIVE)}", None),
        (
            "SELECT k, weighted(x, w) OVER (PARTITION BY k ORDER BY ts) FROM given",
            [("a", 1.0), ("a", 3.0), ("b", 2.0), ("b", 4.0), ("c", None)],
        ),
        (
            "SELECT k, weighted(x, w) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN CURRENT ROW AND CURRENT ROW) FROM given",
            [("a", 1.0), ("a", 4.0), ("b", 2.0), ("b", 8.0), ("c", None)],
        ),
        ("SELECT taken(m, 1) FROM (SELECT k, MAX(x) AS m FROM given WHERE x > 0 GROUP BY k)", [(6.0,)]),
    ],
)
@pytest.mark.parametrize("rows_per_epoch", [1, 100])
def test_a_function_is_called_over_groups(query: str, rows: list[Any] | None, rows_per_epoch: int) -> None:
    apart = [("a", 1.0), ("b", 2.0), ("a", 4.0), ("c", None), ("b", 8.0)]
    assert table(query, max_rows_per_epoch=rows_per_epoch) == Counter(apart if rows is None else rows)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT weighted(m, 1) FROM (SELECT MAX(x) AS m FROM given GROUP BY k)", "no method 'retract'"),
        ("SELECT weighted(x) FROM given", "WEIGHTED got 1 arguments; it takes (double, bigint)"),
        ("SELECT weighted(k, w) FROM given", "an argument of WEIGHTED"),
        ("SELECT weighted(DISTINCT x, w) FROM given", "DISTINCT or FILTER with WEIGHTED"),
        ("SELECT weighted(x, w) FILTER (WHERE w > 1) FROM given", "DISTINCT or FILTER with WEIGHTED"),
    ],
)
def test_what_a_function_cannot_do_is_refused_by_name(query: str, said: str) -> None:
    with pytest.raises(hw.SqlError) as error:
        table(query)
    assert said in str(error.value)


def test_a_function_that_is_not_whole_is_refused() -> None:
    class Half(hw.AggregateFunction[Any, Any, Any]):
        def create(self) -> int:
            return 0

        def add(self, kept: int, value: int) -> int:
            return kept

    env = env_of()
    with pytest.raises(hw.SqlError, match="function 'half' needs a method 'merge'"):
        env.create_function("half", Half())
    with pytest.raises(hw.SqlError, match="does not say the type of its accumulator"):
        env.create_function("mean", Weighted())
    with pytest.raises(hw.GraphError, match="needs a name that is not taken"):
        env.create_function("weighted", Longest())


def test_a_function_that_fails_is_named() -> None:
    class Failing(Longest):
        def add(self, kept: str, value: str) -> str:
            raise ValueError(f"no {value}")

    env = env_of()
    env.create_function("failing", Failing())
    with pytest.raises(hw.UserCodeError, match=r"failing.*no a"):
        env.sql("SELECT failing(k) FROM given WHERE k = 'a'").collect()


def test_what_a_function_keeps_is_saved_and_goes_on(tmp_path: Path) -> None:
    def job() -> tuple[hw.Environment, Any]:
        env, sink = env_of(max_rows_per_epoch=1), hw.connectors.memory()
        env.sql("SELECT k, weighted(x, w) AS m FROM given GROUP BY k").sink(sink, name="means")
        return env, sink

    first, before = job()
    path = run_epochs(first, 2, bounded=True).stop(savepoint=tmp_path / "sp")
    second, after = job()
    assert "one accumulator of weighted" in second.sql("SELECT weighted(x, w) FROM given").explain("state")
    second.run(bounded=True, from_=path)
    assert {row.k: row.m for row in before.rows + after.rows} == {"a": 3.0, "b": 4.0, "c": None}
