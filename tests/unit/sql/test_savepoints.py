"""What is kept of queries belongs to names that other statements do not change, and goes on with what still fits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.parts.halves import run_epochs

import headwater as hw

ORDERS = [(n, f"shop{n % 3}", float(n), n * 1000) for n in range(24)]
SHOPS = [(f"shop{n}", f"city{n % 2}", 0) for n in range(4)]
SCRIPT = """
    CREATE TABLE totals (shop STRING, n BIGINT, total DOUBLE) WITH ('connector' = 'memory');
    CREATE TABLE placed (id BIGINT, city STRING) WITH ('connector' = 'memory');
    CREATE TABLE dear (shop STRING, id BIGINT, price DOUBLE) WITH ('connector' = 'memory');
    CREATE VIEW per_shop AS SELECT shop, COUNT(*) AS n, SUM(price * 2) AS total FROM orders GROUP BY shop;
    INSERT INTO totals SELECT * FROM per_shop WHERE n > 1;
    INSERT INTO placed SELECT o.id, s.city FROM orders o JOIN shops s ON o.shop = s.shop;
    INSERT INTO dear SELECT shop, id, price FROM (
      SELECT *, ROW_NUMBER() OVER (PARTITION BY shop ORDER BY price DESC) AS place FROM orders) WHERE place <= 2;
"""
TABLES = ("totals", "placed", "dear")


def env_of(script: str = SCRIPT, **settings: Any) -> hw.Environment:
    """The job of a script, over orders and shops."""
    env = hw.Environment("shops", **{"engine": "local", "max_rows_per_epoch": 6, **settings})
    marks = hw.Watermarks.monotonous("ms")
    orders = env.from_rows(ORDERS, "id long, shop string, price double, ms long", marks, name="given_orders")
    shops = env.from_rows(SHOPS, "shop string, city string, ms long", marks, name="given_shops")
    env.create_view("orders", orders.with_column("ts", "to_timestamp_ltz(ms, 3)"), time="ts")
    env.create_view("shops", shops)
    for statement in script.split(";")[:-1]:
        env.execute_sql(statement)
    return env


def kept(env: hw.Environment) -> dict[str, Any]:
    """What the steps keep, by uid."""
    return env.plan().kept_by_step()


OTHER = "CREATE TABLE other (shop STRING, n BIGINT) WITH ('connector' = 'memory');"
SAME = "INSERT INTO other SELECT shop, COUNT(*) FROM orders GROUP BY shop;"
EDITS = {
    "a statement before": lambda text: f"{OTHER}{SAME}{text}",
    "a statement after": lambda text: f"{text}{OTHER}{SAME}",
    "a reader of the view before": lambda text: text.replace(
        "INSERT INTO totals", f"{OTHER}INSERT INTO other SELECT shop, n FROM per_shop;INSERT INTO totals"
    ),
    "the same join before": lambda text: (
        f"{OTHER}INSERT INTO other SELECT s.city, o.id FROM orders o JOIN shops s ON o.shop = s.shop;{text}"
    ),
    "another order": lambda text: (
        text.replace("INSERT INTO totals SELECT * FROM per_shop WHERE n > 1;", "")
        + "INSERT INTO totals SELECT * FROM per_shop WHERE n > 1;"
    ),
    "another condition behind": lambda text: text.replace("WHERE n > 1", "WHERE n > 3"),
    "white space and comments": lambda text: text.replace("\n", " \n\n -- so\n").replace(
        "COUNT(*)", "COUNT( * /* all */ )"
    ),
    "other letters": lambda text: text.replace("SELECT", "select").replace("GROUP BY", "group by"),
    "other aliases": lambda text: (
        text.replace("orders o JOIN shops s", "orders AS a JOIN shops AS b")
        .replace("o.id, s.city", "a.id, b.city")
        .replace("o.shop = s.shop", "a.shop = b.shop")
    ),
    "other names of results": lambda text: text.replace("AS place", "AS at_place").replace("place <=", "at_place <="),
    "a column is computed of results": lambda text: text.replace(
        "SELECT * FROM per_shop", "SELECT shop, n + 1, total FROM per_shop"
    ),
    "names in backticks": lambda text: text.replace(" FROM orders", " FROM `orders`").replace("shop,", "`shop`,"),
    "a subquery gets a name": lambda text: text.replace(
        "INSERT INTO totals SELECT * FROM per_shop",
        "INSERT INTO totals WITH c AS (SELECT * FROM per_shop) SELECT * FROM c",
    ),
    "another view": lambda text: f"CREATE VIEW more AS SELECT shop FROM orders;{text}",
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=list(EDITS))
def test_changes_elsewhere_leave_what_is_kept_where_it_is(edit: Any) -> None:
    before, after = kept(env_of()), kept(env_of(edit(SCRIPT)))
    assert sorted(before) == ["dear.top_n", "per_shop.aggregate", "placed.join"]
    assert {uid: after[uid] for uid in before} == before


def test_readers_of_a_view_share_what_it_keeps() -> None:
    joined = "CREATE VIEW both AS SELECT o.id, o.price, s.city FROM orders o JOIN shops s ON o.shop = s.shop;"
    readers = (
        "INSERT INTO other SELECT city, id FROM both; INSERT INTO placed SELECT id, city FROM both WHERE price > 3;"
    )
    tables = ";".join(SCRIPT.split(";")[:3])
    assert list(kept(env_of(f"{tables};{OTHER}{joined}{readers}"))) == ["both.join"]


@pytest.fixture(scope="module")
def savepoint(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return run_epochs(env_of(), 2, bounded=True).savepoint(tmp_path_factory.mktemp("saved") / "sp")


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_job_of_statements_goes_on_at_another_parallelism(parallelism: int, tmp_path: Path) -> None:
    whole, first, second = env_of(), env_of(parallelism=2), env_of(parallelism=parallelism)
    whole.run(bounded=True)
    path = run_epochs(first, 2, bounded=True).stop(savepoint=tmp_path / "sp")
    second.run(bounded=True, from_=path)
    assert changes_of(first, second) == changes_of(whole)


def changes_of(*envs: hw.Environment) -> dict[str, Counter[Any]]:
    return {table: Counter(row for env in envs for row in env.table_rows(table)) for table in TABLES}


def fits(savepoint: Path, script: str) -> list[str]:
    """What becomes of what is kept, and the last word."""
    found = str(hw.savepoint.check(savepoint, env_of(script))).splitlines()
    return [" ".join(line.split()) for line in found if "@" not in line]


def test_a_column_that_is_computed_of_what_is_kept_changes_nothing(savepoint: Path) -> None:
    more = SCRIPT.replace("n BIGINT, total DOUBLE", "n BIGINT, total DOUBLE, mean DOUBLE").replace(
        "SELECT * FROM per_shop", "SELECT shop, n, total, total / n FROM per_shop"
    )
    assert fits(savepoint, more) == [
        "dear.top_n/rows kept",
        "per_shop.aggregate/kept kept",
        "placed.join/left kept",
        "placed.join/right kept",
        "the program can go on from the savepoint",
    ]


def test_a_column_that_must_be_kept_is_told(savepoint: Path) -> None:
    more = SCRIPT.replace("(id BIGINT, city STRING)", "(id BIGINT, price DOUBLE, city STRING)").replace(
        "SELECT o.id, s.city", "SELECT o.id, o.price, s.city"
    )
    assert fits(savepoint, more)[2] == "placed.join/left migrated price added"


def test_an_aggregate_that_has_not_seen_the_rows_before_is_refused(savepoint: Path) -> None:
    more = SCRIPT.replace("COUNT(*) AS n, SUM(price * 2)", "COUNT(*) AS n, SUM(price * 3)")
    told = fits(savepoint, more)
    assert told[1].startswith("per_shop.aggregate/kept impossible aggregates was")
    assert "hw.sum('price * 2')" in told[1]
    assert told[-1] == "the program cannot go on from the savepoint"


def test_a_view_with_another_name_is_told_to_be_renamed(savepoint: Path) -> None:
    other = SCRIPT.replace("per_shop", "by_shop")
    assert fits(savepoint, other)[-2:] == [
        "renamed={'per_shop.aggregate': 'by_shop.aggregate'} keeps what steps with other names would take over",
        "the program can go on from the savepoint with allow_dropped_state=True",
    ]
    found = hw.savepoint.check(savepoint, env_of(other), {"per_shop.aggregate": "by_shop.aggregate"})
    assert found.exit_code == 0
