"""Tables put together in Python: the same relations as the text gives, through the same binder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.sql.errors import SqlError
from headwater.streams.table import Table

ROWS = [("ann", 1, 1_000), ("bob", 2, 2_000), ("ann", 3, 11_000)]


@pytest.fixture
def env() -> hw.Environment:
    return hw.Environment("table", engine="local")


@pytest.fixture
def sales(env: hw.Environment) -> Table:
    rows = env.from_rows(ROWS, "who string, n long, ms long", hw.Watermarks.monotonous("ms"), name="sales")
    return rows.with_column("ts", "to_timestamp_ltz(ms, 3)").to_table(time="ts")


def told(table: Table) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in table.collect()]


def test_it_gives_the_relations_of_the_text(env: hw.Environment, sales: Table) -> None:
    env.create_view("sales", sales)
    table = sales.where("n > 1").group_by("who").agg(total="SUM(n)").select("who", "total * 2 AS twice")
    text = env.sql(
        "SELECT who, total * 2 AS twice FROM (SELECT who, SUM(n) AS total FROM (SELECT * FROM sales WHERE n > 1) "
        "GROUP BY who)"
    )
    assert told(table) == told(text)
    assert sorted(told(table)) == [("ann", 6, "+I"), ("bob", 4, "+I")]


def test_windows_are_those_of_streams(sales: Table) -> None:
    hop = sales.window(hw.sliding("10 s", "5 s"), on="ts").group_by("window_start", "window_end").agg(n="SUM(n)")
    assert [row.n for row in hop.collect()] == [3, 3, 3, 3]
    burst = sales.window(hw.session("5 s"), on="ts", by=["who"]).group_by("who", "window_start", "window_end")
    assert sorted((row.who, row.n) for row in burst.agg(n="COUNT(*)").collect()) == [("ann", 1), ("ann", 1), ("bob", 1)]


def test_joins_and_unions(env: hw.Environment, sales: Table) -> None:
    names = env.from_rows([("ann", "Ann A.")], "id string, name string", name="names").to_table()
    joined = sales.join(names, "this.who = other.id", how="left").select("n", "name")
    there = [tuple(row)[:2] for row in joined.collect() if row.row_kind in ("+I", "+U")]
    assert {(1, "Ann A."), (2, None), (3, "Ann A.")} <= set(there)
    assert sorted(told(sales.select("n").union_all(sales.select("n * 10")))) == [(1,), (2,), (3,), (10,), (20,), (30,)]
    assert sorted(told(sales.select("who").distinct())) == [("ann",), ("bob",)]


def test_a_table_goes_into_a_sink(env: hw.Environment, sales: Table, tmp_path: Path) -> None:
    rows = hw.connectors.memory()
    sales.select("n").sink(rows, name="numbers")
    env.run()
    assert [row.n for row in rows.rows] == [1, 2, 3]
    changing = sales.group_by("who").agg(n="COUNT(*)")
    with pytest.raises(SqlError, match="GROUP BY who changes rows"):
        changing.sink(hw.connectors.files(tmp_path), name="counts")


def test_a_changelog_becomes_a_table_that_changes(env: hw.Environment) -> None:
    rows = env.from_rows([("a", 1, "+I"), ("a", 2, "+U")], "k string, n long, row_kind string")
    table = rows.as_changelog(key="k").to_table()
    assert [row.total for row in table.group_by().agg(total="SUM(n)").collect()] == [2]


def test_what_cannot_be_is_refused(sales: Table) -> None:
    with pytest.raises(SqlError, match="there is no column 'm'"):
        sales.select("m")
    with pytest.raises(SqlError, match="takes expressions of SQL"):
        sales.where(True)  # type: ignore[arg-type]
    with pytest.raises(SqlError, match="needs at least one expression"):
        sales.select()
    with pytest.raises(SqlError, match="takes tumbling, sliding, cumulate and session"):
        sales.window(hw.count(3), on="ts")
    with pytest.raises(SqlError, match="is no time attribute"):
        sales.window(hw.tumbling("1 s"), on="n")
    with pytest.raises(SqlError, match="needs a table of the same environment"):
        sales.join("names", "true")  # type: ignore[arg-type]
    with pytest.raises(SqlError, match="is inner, left, right or full"):
        sales.join(sales, "true", how="outer")  # type: ignore[arg-type]
    with pytest.raises(SqlError, match="cannot read the statement"):
        sales.select("n; DROP TABLE x")
    assert sales.select("n -- FROM").columns == ["n"], "a comment ends with its line"
