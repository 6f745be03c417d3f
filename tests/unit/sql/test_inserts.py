"""INSERT INTO: by position, cast as Flink casts, checked for NULL, and refused where changes cannot go."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.errors import HeadwaterError
from headwater.sql.errors import SqlError

MEMORY = "WITH ('connector' = 'memory')"


@pytest.fixture
def env() -> hw.Environment:
    made = hw.Environment("sql", engine="local")
    rows = [("ann", 1, 2.5), ("bob", 2, None), ("ann", 3, 4.0)]
    made.create_view("sales", made.from_rows(rows, "who string, n int, price double"))
    return made


def rows_of(env: hw.Environment, name: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in env.table_rows(name)]


def refused(env: hw.Environment, script: str) -> str:
    with pytest.raises(SqlError) as failed:
        env.run_sql(script)
    return str(failed.value)


def test_columns_in_quotes_may_be_named_as_words_and_signs(env: hw.Environment) -> None:
    env.run_sql(f"""
        CREATE TABLE o (`select` INT, `)` INT) {MEMORY};
        INSERT INTO o (`select`, `)`) SELECT n, n + 1 FROM sales WHERE n < 2;
    """)
    assert rows_of(env, "o") == [(1, 2)]


def test_columns_are_cast_by_position(env: hw.Environment) -> None:
    env.run_sql(f"""
        CREATE TABLE o (a STRING, b BIGINT, c DECIMAL(10, 2), d DOUBLE) {MEMORY};
        INSERT INTO o SELECT who, n, n, n FROM sales WHERE n < 3;
    """)
    assert rows_of(env, "o") == [("ann", 1, Decimal("1.00"), 1.0), ("bob", 2, Decimal("2.00"), 2.0)]


def test_a_list_of_columns_leaves_the_others_null(env: hw.Environment) -> None:
    env.run_sql(
        f"CREATE TABLE o (a STRING, b INT, c DOUBLE) {MEMORY}; INSERT INTO o (c, a) SELECT price, who FROM sales"
    )
    assert rows_of(env, "o") == [("ann", None, 2.5), ("bob", None, None), ("ann", None, 4.0)]


def test_several_inserts_into_one_table_are_one_sink(env: hw.Environment) -> None:
    env.run_sql(f"""
        CREATE TABLE o (n INT) {MEMORY};
        EXECUTE STATEMENT SET BEGIN
          INSERT INTO o SELECT n FROM sales WHERE n = 1;
          INSERT INTO o SELECT n * 10 FROM sales WHERE n = 2;
        END;
        INSERT INTO o VALUES (100);
    """)
    assert sorted(rows_of(env, "o")) == [(1,), (20,), (100,)]


def test_changes_are_shown_where_they_can_be(env: hw.Environment) -> None:
    env.run_sql(
        f"CREATE TABLE o (who STRING, n INT) {MEMORY}; INSERT INTO o SELECT who, SUM(n) FROM sales GROUP BY who"
    )
    assert sorted(rows_of(env, "o")) == [("ann", 4, "+I"), ("bob", 2, "+I")]


def test_not_null_is_enforced(env: hw.Environment) -> None:
    env.execute_sql(f"CREATE TABLE o (who STRING, price DOUBLE NOT NULL) {MEMORY}")
    env.execute_sql("INSERT INTO o SELECT who, price FROM sales")
    with pytest.raises(HeadwaterError, match="column 'price' of table 'o' is NOT NULL"):
        env.run()


def test_steps_are_named_after_the_table(env: hw.Environment) -> None:
    env.execute_sql(f"CREATE TABLE o (who STRING, n BIGINT) {MEMORY}")
    env.execute_sql("INSERT INTO o SELECT who, COUNT(*) FROM sales GROUP BY who")
    uids = [env.graph.uid(node) for node in env.graph]
    assert {"o.aggregate", "o.sink"} <= set(uids)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("CREATE TABLE o (a INT) @; INSERT INTO o SELECT who FROM sales", "is of type string where int is needed"),
        ("CREATE TABLE o (a SMALLINT) @; INSERT INTO o SELECT n FROM sales", "is of type int where smallint is needed"),
        ("CREATE TABLE o (a INT, b INT) @; INSERT INTO o SELECT n FROM sales", "has 1 columns where 2 are needed"),
        ("CREATE TABLE o (a INT) @; INSERT INTO o (b) SELECT n FROM sales", "there is no column 'b'"),
        ("CREATE TABLE o (a INT, b INT NOT NULL) @; INSERT INTO o (a) SELECT n FROM sales", "the INSERT leaves it out"),
        ("INSERT INTO salez SELECT n FROM sales", "there is no table or view 'salez'"),
        ("INSERT INTO sales SELECT n FROM sales", "writing to table 'sales' is not supported"),
        ("CREATE VIEW v AS SELECT n FROM sales; INSERT INTO v SELECT 1", "writing to view 'v' is not supported"),
        ("SELECT n FROM sales", "a query cannot stand in a script"),
        ("SET 'parallelism.default' = '4'", "write Environment(parallelism=…)"),
        ("SET 'table.local-time-zone' = 'Europe/Paris'", "can only be 'UTC'"),
        ("SET 'table.local-time-zona' = 'UTC'", "the nearest are table.local-time-zone"),
        ("RESET 'nothing'", "there is no setting 'nothing'"),
    ],
)
def test_what_cannot_be_is_refused(env: hw.Environment, script: str, said: str) -> None:
    assert said in refused(env, script.replace("@", MEMORY))


def test_a_sink_without_changes_names_the_step_that_makes_them(env: hw.Environment, tmp_path: Path) -> None:
    said = refused(
        env,
        f"CREATE TABLE o (n BIGINT) WITH ('connector' = 'files', 'path' = '{tmp_path}', 'format' = 'json');\n"
        "INSERT INTO o SELECT COUNT(*) FROM sales GROUP BY who",
    )
    assert f"line 2, column 13: table 'o' (json files in {tmp_path}) only takes rows that are added" in said
    assert "GROUP BY who changes rows; declare a PRIMARY KEY with a connector that upserts" in said


def test_a_second_insert_into_a_table_asks_for_one(env: hw.Environment) -> None:
    env.execute_sql(f"CREATE TABLE o (n INT) {MEMORY}")
    env.execute_sql("INSERT INTO o SELECT n FROM sales")
    assert "the job writes to table 'o' already" in refused(env, "INSERT INTO o SELECT n FROM sales")


def test_settings_are_shown_and_forgotten(env: hw.Environment, capsys: pytest.CaptureFixture[str]) -> None:
    assert env.run_sql("SET 'table.local-time-zone' = 'utc'; SET; RESET;") is None
    assert capsys.readouterr().out.split() == ["key", "value", "-" * 21, "-----", "table.local-time-zone", "UTC"]
    assert env.execute_sql("SET") == []


def test_a_script_is_read_from_a_file(env: hw.Environment, tmp_path: Path) -> None:
    path = tmp_path / "job.sql"
    path.write_text(
        f"-- a comment; with a semicolon\nCREATE TABLE o (n INT) {MEMORY};\nINSERT INTO o SELECT n FROM sales;\n"
    )
    for given in (path, str(path)):
        other = hw.Environment("other", engine="local")
        other.create_view("sales", other.from_rows([(1,)], "n int"))
        assert other.run_sql(given) is not None
        assert rows_of(other, "o") == [(1,)]


def test_explain_says_how_a_query_would_run(env: hw.Environment) -> None:
    env.execute_sql(f"CREATE TABLE o (who STRING, n BIGINT) {MEMORY}")
    (state,) = env.execute_sql("EXPLAIN STATE SELECT who, COUNT(*) FROM sales GROUP BY who")
    assert "grows for ever" in state.plan
    plans = env.execute_sql("EXPLAIN INSERT INTO o SELECT who, COUNT(*) FROM sales GROUP BY who")
    assert len(plans) == 1
    assert "o.sink" not in [env.graph.uid(node) for node in env.graph]
    assert "EXPLAIN ANALYZE of a query is not supported" in refused(env, "EXPLAIN ANALYZE SELECT n FROM sales")


def test_idle_state_is_forgotten_as_set(env: hw.Environment) -> None:
    query = "SELECT who, COUNT(*) FROM sales GROUP BY who"
    assert "until never" in env.sql(query).explain("state")
    env.execute_sql("SET 'table.exec.state.ttl' = '1 h'")
    assert "until 1 h after the last row of its key" in env.sql(query).explain("state")
    joined = env.sql("SELECT a.n FROM sales AS a JOIN sales AS b ON a.who = b.who").explain("state")
    assert "until never" not in joined
    env.execute_sql("RESET 'table.exec.state.ttl'")
    assert "until never" in env.sql(query).explain("state")
    assert "write '1 h'" in refused(env, "SET 'table.exec.state.ttl' = 'soon'")
