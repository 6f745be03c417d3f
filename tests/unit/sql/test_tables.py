"""CREATE TABLE and its relatives: what is declared, what is refused, and what is shown of it."""

from __future__ import annotations

import pytest

import headwater as hw
from headwater.sql.errors import SqlError

ORDERS = """CREATE TABLE orders (
  id BIGINT NOT NULL,
  item ROW<name STRING, tags ARRAY<STRING>>,
  price DECIMAL(10, 2),
  ts TIMESTAMP(3),
  twice AS price * 2,
  seen AS PROCTIME(),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ('connector' = 'log', 'path' = '/nowhere', 'topic' = 'orders')"""


@pytest.fixture
def env() -> hw.Environment:
    return hw.Environment("sql", engine="local")


def refused(env: hw.Environment, statement: str) -> str:
    with pytest.raises(SqlError) as failed:
        env.execute_sql(statement)
    return str(failed.value)


def test_describe_shows_columns_keys_and_watermark(env: hw.Environment) -> None:
    env.execute_sql(ORDERS)
    rows = {row.name: row for row in env.execute_sql("DESCRIBE orders")}
    assert [row.type for row in rows.values()] == [
        "BIGINT",
        "ROW<`name` STRING, `tags` ARRAY<STRING>>",
        "DECIMAL(10, 2)",
        "TIMESTAMP(3) *ROWTIME*",
        "DECIMAL(21, 2)",
        "TIMESTAMP_LTZ(3) *PROCTIME*",
    ]
    assert rows["id"].key == "PRI(id)"
    assert not rows["id"].null
    assert rows["ts"].watermark == "ts - INTERVAL '5' SECOND"
    assert rows["twice"].extras == "AS price * 2"


def test_show_create_table_makes_the_table_again(env: hw.Environment) -> None:
    env.execute_sql(ORDERS)
    (shown,) = env.execute_sql("SHOW CREATE TABLE orders")
    env.execute_sql("DROP TABLE orders")
    env.execute_sql(shown.statement)
    assert env.execute_sql("SHOW CREATE TABLE orders") == [shown]


def test_names_with_quotes_backticks_and_semicolons_stay_names(env: hw.Environment) -> None:
    env.execute_sql(
        """CREATE TABLE `a"b;c' -- d` (`x``y"; DROP` INT) WITH ('connector' = 'memory')""",
    )
    env.execute_sql("""INSERT INTO `a"b;c' -- d` SELECT 1""")
    env.run()
    assert [tuple(row) for row in env.table_rows("a\"b;c' -- d")] == [(1,)]
    (shown,) = env.execute_sql("""SHOW CREATE TABLE `a"b;c' -- d`""")
    other = hw.Environment("other", engine="local")
    other.execute_sql(shown.statement)
    assert [row.name for row in other.execute_sql("""DESCRIBE `a"b;c' -- d`""")] == ['x`y"; DROP']


def test_like_takes_over_and_overrides(env: hw.Environment) -> None:
    env.execute_sql(ORDERS)
    env.execute_sql("CREATE TABLE more (note STRING) WITH ('topic' = 'more') LIKE orders (EXCLUDING CONSTRAINTS)")
    rows = {row.name: row for row in env.execute_sql("DESCRIBE more")}
    assert list(rows) == ["id", "item", "price", "ts", "twice", "seen", "note"]
    assert rows["id"].key is None
    (shown,) = env.execute_sql("SHOW CREATE TABLE more")
    assert "'topic' = 'more'" in shown.statement
    assert "'path' = '/nowhere'" in shown.statement
    env.execute_sql(
        "CREATE TABLE kept WITH ('connector' = 'memory') "
        "LIKE orders (EXCLUDING OPTIONS EXCLUDING WATERMARKS EXCLUDING GENERATED)"
    )
    assert [row.name for row in env.execute_sql("DESCRIBE kept")] == ["id", "item", "price", "ts"]


def test_tables_and_views_are_listed_and_dropped(env: hw.Environment) -> None:
    env.execute_sql(ORDERS)
    env.execute_sql("CREATE TEMPORARY VIEW dear (number, cost) AS SELECT id, price FROM orders WHERE price > 100")
    assert [row.name for row in env.execute_sql("SHOW TABLES")] == ["dear", "orders"]
    assert [row.name for row in env.execute_sql("SHOW VIEWS")] == ["dear"]
    assert [row.name for row in env.execute_sql("DESCRIBE dear")] == ["number", "cost"]
    assert "WHERE price > 100" in env.execute_sql("SHOW CREATE VIEW dear")[0].statement
    assert "UPPER" in {row.name for row in env.execute_sql("SHOW FUNCTIONS")}
    env.execute_sql("DROP VIEW dear")
    env.execute_sql("DROP TABLE IF EXISTS nothing")
    env.execute_sql("CREATE TABLE IF NOT EXISTS orders (x INT) WITH ('connector' = 'memory')")
    assert [row.name for row in env.execute_sql("SHOW TABLES")] == ["orders"]
    assert "there is a table 'orders' already" in refused(env, ORDERS)
    assert "no table or view 'dear'" in refused(env, "DROP VIEW dear")


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("a INT", "'connector' = 'memroy'", "choose from log, kafka"),
        ("a INT", "'path' = '/x'", "needs the option 'connector'"),
        ("a INT", "'connector' = 'log', 'path' = '/x', 'topik' = 'y'", "needs the option 'topic'"),
        ("a INT", "'connector' = 'memory', 'topic' = 'y'", "memory has no option 'topic'"),
        (
            "a INT",
            "'connector' = 'log', 'path' = '/x', 'topic' = 'y', 'scan.startup.mod' = 'latest'",
            "the nearest are scan.startup.mode",
        ),
        ("a INT", "'connector' = 'log', 'path' = 'x', 'topic' = 'y', 'scan.startup.mode' = 'now'", "is 'now'"),
        ("a INT, a STRING", "'connector' = 'memory'", "there is a column 'a' already"),
        ("a TIME", "'connector' = 'memory'", "TIME is not supported"),
        ("a TIMESTAMP(9)", "'connector' = 'memory'", "a timestamp has 0, 3 or 6 places"),
        ("row_kind STRING", "'connector' = 'memory'", "are our own"),
        ("a INT, PRIMARY KEY (b) NOT ENFORCED", "'connector' = 'memory'", "there is no column 'b'"),
        ("a INT, WATERMARK FOR a AS a", "'connector' = 'memory'", "where a timestamp is needed"),
        ("a INT, WATERMARK FOR b AS b", "'connector' = 'memory'", "there is no column 'b'"),
        ("a TIMESTAMP(3), WATERMARK FOR a AS a + INTERVAL '1' SECOND", "'connector' = 'memory'", "this WATERMARK"),
        ("a INT, b AS c + 1", "'connector' = 'memory'", "there is no column 'c'"),
        ("a INT, b INT METADATA", "'connector' = 'memory'", "the connector has no METADATA 'b'"),
        ("a INT", "'connector' = 'generator', 'rows-per-second' = 'many'", "give a whole number from 1 on"),
        ("a BYTES", "'connector' = 'generator'", "a number, a string, a boolean or a timestamp"),
        ("a INT", "'connector' = 'files', 'path' = '/x', 'format' = 'xml'", "choose from parquet, json, csv"),
        (
            "a INT, b TIMESTAMP(3) METADATA FROM 'timestamp'",
            "'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'h:1', 'format' = 'json'",
            "METADATA column 'b'",
        ),
        (
            "a INT, b INT METADATA FROM 'ofset'",
            "'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'h:1', 'format' = 'json'",
            "the nearest are offset",
        ),
        (
            "a INT PRIMARY KEY NOT ENFORCED",
            "'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'h:1', 'format' = 'json'",
            "is for 'upsert-kafka'",
        ),
        (
            "a INT",
            "'connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'h:1', 'value.format' = 'json'",
            "declare PRIMARY KEY",
        ),
        ("a INT", "'connector' = 'postgres', 'url' = 'a b c'", "needs a connection"),
    ],
)
def test_wrong_tables_are_refused_by_name(env: hw.Environment, columns: str, options: str, said: str) -> None:
    assert said in refused(env, f"CREATE TABLE t ({columns}) WITH ({options})")
    assert env.execute_sql("SHOW TABLES") == []


def test_errors_point_at_the_option(env: hw.Environment) -> None:
    text = "CREATE TABLE t (a INT) WITH (\n  'connector' = 'memory',\n  'colour' = 'red'\n)"
    with pytest.raises(SqlError) as failed:
        env.execute_sql(text)
    place = failed.value.place
    assert place is not None
    assert (place.line, place.column) == (3, 3)
    assert "'colour' = 'red'\n  " in str(failed.value)


SECRETS = (
    "CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'h:1', "
    "'format' = 'json', 'properties.sasl.password' = 'hunter2'{more})"
)


def test_secrets_are_not_shown(env: hw.Environment) -> None:
    env.execute_sql(SECRETS.format(more=""))
    (shown,) = env.execute_sql("SHOW CREATE TABLE t")
    assert "'properties.sasl.password' = '******'" in shown.statement
    assert "hunter2" not in shown.statement
    table = env._sql.catalog.get("t")
    assert "hunter2" not in repr(table.source) + repr(table.sink)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    [
        SECRETS.format(more=", 'wrong' = 'x'"),
        SECRETS.format(more=", 'wrong'"),
        SECRETS.format(more=" 'wrong"),
        SECRETS.format(more="").replace("json", "jason"),
        SECRETS.format(more="") + ")",
        SECRETS.format(more="") + "; SELECT hunter FROM t",
        "CREATE TABLE t (a INT) WITH ('connector' = 'postgres', 'url' = 'postgresql://me:hunter2@h/d', 'x' = 'y')",
        "CREATE TABLE t (a INT) WITH ('connector' = 'postgres', 'url' = 'hunter2')",
        "SET 'my.password' = 'hunter2'",
    ],
)
def test_errors_show_no_secrets(env: hw.Environment, text: str) -> None:
    assert "hunter2" not in refused(env, text)
