"""Look-up joins: rows with what a table outside the job holds for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw

PLACES = pa.table({"k": [1, 2, 2, None], "city": ["Rome", "Oslo", "Bonn", "none"], "least": [4, 2, 1, 0]})
ORDERS = [(1, 5), (2, 2), (3, 7), (None, 1)]
NOW = "(SELECT *, PROCTIME() AS at FROM orders) AS o"


@pytest.fixture
def env() -> hw.Environment:
    env = hw.Environment("lookups", engine="local", parallelism=2)
    env.create_view("orders", env.from_rows(ORDERS, "k int, n int"))
    env.create_table("places", PLACES)
    return env


def rows(env: hw.Environment, query: str) -> set[Any]:
    return {tuple(row) for row in env.sql(query).collect()}


def test_a_row_is_joined_with_each_row_of_its_key(env: hw.Environment) -> None:
    query = f"SELECT o.k, p.k, city FROM {NOW} JOIN places FOR SYSTEM_TIME AS OF o.at AS p ON o.k = p.k"
    assert rows(env, query) == {(1, 1, "Rome"), (2, 2, "Oslo"), (2, 2, "Bonn")}


def test_a_row_without_any_for_which_all_conditions_hold_is_padded(env: hw.Environment) -> None:
    query = (
        f"SELECT o.k, p.k, city FROM {NOW} LEFT JOIN places FOR SYSTEM_TIME AS OF o.at AS p ON o.k = p.k AND n > least"
    )
    assert rows(env, query) == {(1, 1, "Rome"), (2, 2, "Bonn"), (3, None, None), (None, None, None)}


def test_a_table_in_memory_can_be_read_too(env: hw.Environment) -> None:
    assert rows(env, "SELECT city FROM places WHERE least > 1") == {("Rome",), ("Oslo",)}


def test_rows_that_change_can_be_looked_up_in_what_stays_as_it_is(env: hw.Environment) -> None:
    query = """SELECT c, city FROM (SELECT k, COUNT(*) AS c FROM orders GROUP BY k) AS o
        JOIN places FOR SYSTEM_TIME AS OF PROCTIME() AS p ON o.k = p.k"""
    assert rows(env, query) == {(1, "Rome", "+I"), (1, "Oslo", "+I"), (1, "Bonn", "+I")}


def of_files(env: hw.Environment, folder: Path) -> None:
    (folder / "places.csv").write_text("k,city\n1,Rome\n3,Oslo\n")
    env.execute_sql(f"""CREATE TABLE files (k INT, city STRING)
        WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'csv')""")


def test_files_are_looked_up_in_as_they_are_when_the_query_is_put_together(env: hw.Environment, tmp_path: Path) -> None:
    of_files(env, tmp_path)
    query = f"SELECT o.k, city FROM {NOW} JOIN files FOR SYSTEM_TIME AS OF o.at AS f ON o.k = f.k"
    assert rows(env, query) == {(1, "Rome"), (3, "Oslo")}


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (
            f"SELECT 1 AS one FROM {NOW} JOIN orders FOR SYSTEM_TIME AS OF o.at AS p ON o.k = p.k",
            "over this table is not supported",
        ),
        (
            f"SELECT 1 AS one FROM {NOW} JOIN places FOR SYSTEM_TIME AS OF o.at AS p ON o.k < p.k",
            "a look-up join needs an equality with a column of the table",
        ),
        (
            f"SELECT 1 AS one FROM {NOW} RIGHT JOIN places FOR SYSTEM_TIME AS OF o.at AS p ON o.k = p.k",
            "a right temporal join is not supported",
        ),
        (
            "SELECT 1 AS a FROM (SELECT MAX(k) k FROM orders) o JOIN files FOR SYSTEM_TIME AS OF PROCTIME() AS f ON o.k = f.k",
            "when a row is taken back needs rows that are only added",
        ),
    ],
)
def test_what_cannot_be_looked_up_is_refused(env: hw.Environment, tmp_path: Path, query: str, says: str) -> None:
    of_files(env, tmp_path)
    with pytest.raises(hw.SqlError, match="line 1, column") as error:
        env.sql(query)
    assert says in str(error.value)


def test_a_table_that_has_its_columns_takes_no_schema(env: hw.Environment) -> None:
    with pytest.raises(hw.SqlError, match="has a schema of its own"):
        env.create_table("more", PLACES, "k long")
    with pytest.raises(hw.SqlError, match="needs a schema"):
        env.create_table("more", hw.connectors.memory())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("'lookup.cache' = 'PARTIAL'", "needs a bound"),
        ("'lookup.partial-cache.max-rows' = '10'", "is for 'lookup.cache' = 'PARTIAL'"),
    ],
)
def test_options_of_a_cache_go_together(env: hw.Environment, options: str, says: str) -> None:
    with pytest.raises(hw.SqlError, match=says):
        env.execute_sql(f"CREATE TABLE t (k INT) WITH ('connector' = 'postgres', 'url' = 'dbname=x', {options})")
