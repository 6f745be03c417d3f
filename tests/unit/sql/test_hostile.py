"""Text that nobody means well with: it is refused or taken as what it says, it never hangs, and never runs as code."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.parts.examples import examples

import headwater as hw
from headwater.errors import HeadwaterError
from headwater.sql.errors import SqlError
from headwater.sql.statements.shown import name_text
from headwater.sql.text.reading import read_statements

PIECES = [
    "SELECT",
    "CREATE",
    "TABLE",
    "INSERT",
    "INTO",
    "WITH",
    "VALUES",
    "FROM",
    "WHERE",
    "(",
    ")",
    ",",
    ";",
    "'",
    "''",
    '"',
    "`",
    "``",
    "--",
    "/*",
    "*/",
    "/*+",
    "'a'",
    "`b`",
    "1",
    "1.5",
    "*",
    "=",
    "=>",
    ".",
    "[",
    "]",
    "<",
    ">",
    "AS",
    "ROW<a",
    "INT>",
    "ARRAY<",
    "NOT",
    "NULL",
    "PRIMARY",
    "KEY",
    "ENFORCED",
    "WATERMARK",
    "FOR",
    "METADATA",
    "BEGIN",
    "END",
    "EXECUTE",
    "STATEMENT",
    "SET",
    "EXPLAIN",
    "INTERVAL",
    "'1'",
    "SECOND",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "CAST",
    "COPY",
    "read_csv('/etc/passwd')",
    "ATTACH",
    "PRAGMA",
    "$$",
    "\\",
    "\x00",
    "\n",
    "\t",
    "é",
    "🦆",
    "DROP",
    "DESCRIBE",
    "SHOW",
    "LIKE",
    "PARTITIONED",
    "BY",
    "OVER",
    "TABLE(TUMBLE(",
    "DESCRIPTOR(",
    "EXCLUDING",
    "OPTIONS",
]
names = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=20).filter(
    lambda name: name.strip() and not name.startswith("__") and name != "row_kind"
)


@examples(300)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join))
def test_any_words_are_read_or_refused(text: str) -> None:
    with contextlib.suppress(SqlError):
        read_statements(text)


@examples(100)
@given(st.text(max_size=200))
def test_any_text_is_run_or_refused(text: str) -> None:
    env = hw.Environment("hostile", engine="local")
    with contextlib.suppress(SqlError):
        env.execute_sql(text)


@examples(60)
@given(names, names, st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30))
def test_names_and_literals_stay_what_they_are(table: str, column: str, value: str) -> None:
    env = hw.Environment("hostile", engine="local")
    literal = "'" + value.replace("'", "''") + "'"
    env.run_sql(f"""
        CREATE TABLE {name_text(table)} ({name_text(column)} STRING) WITH ('connector' = 'memory');
        INSERT INTO {name_text(table)} SELECT {name_text(column)}
          FROM (SELECT {literal} AS {name_text(column)}) AS t WHERE {name_text(column)} = {literal};
    """)
    assert [tuple(row) for row in env.table_rows(table)] == [(value,)]


@examples(100)
@given(names, st.text(max_size=30))
@example(")", "")
def test_any_option_is_taken_or_refused(key: str, value: str) -> None:
    env = hw.Environment("hostile", engine="local")
    options = ", ".join(
        f"'{k.replace(chr(39), chr(39) * 2)}' = '{v.replace(chr(39), chr(39) * 2)}'"
        for k, v in {"connector": "generator", "number-of-rows": "1", key: value}.items()
    )
    with pytest.raises(SqlError, match=r"has no option|is given twice"):
        env.execute_sql(f"CREATE TABLE t (a INT) WITH ({options})")


NOTHING_IS_CODE = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT getenv('HOME')",
    "SELECT current_setting('threads')",
    "COPY (SELECT 1) TO '/tmp/headwater-hostile.csv'",
    "ATTACH '/tmp/headwater-hostile.db'",
    "PRAGMA database_list",
    "INSTALL httpfs",
    "SELECT a FROM (VALUES (1)) AS t (a) WHERE a = (SELECT COUNT(*) FROM duckdb_settings())",
    "SELECT * FROM batch",
    "SELECT * FROM information_schema.tables",
]


@pytest.mark.parametrize("text", NOTHING_IS_CODE)
def test_nothing_of_duckdb_can_be_asked_for(text: str) -> None:
    env = hw.Environment("hostile", engine="local")
    with pytest.raises(HeadwaterError):
        env.sql(text).collect()


LARGE = {
    "parentheses": "SELECT " + "(" * 1000 + "1" + ")" * 1000,
    "open parentheses": "SELECT " + "(" * 100_000,
    "subqueries": "SELECT * FROM (" * 1000 + "t" + ")" * 1000,
    "types": "CREATE TABLE t (a " + "ARRAY<" * 5000 + "INT" + ">" * 5000 + ") WITH ('connector' = 'memory')",
    "rows": "CREATE TABLE t (a " + "ROW<a " * 5000 + "INT" + ">" * 5000 + ") WITH ('connector' = 'memory')",
    "columns": "SELECT " + "a," * 60_000 + "a FROM t",
    "a literal": "SELECT '" + "x" * 900_000 + "' FROM t",
    "an open literal": "SELECT '" + "x" * 900_000,
    "comments": "/*" * 100_000,
    "lines": "SELECT\n" * 50_000,
    "statements": "SELECT 1;" * 40_000,
    "additions": "SELECT " + "1 + " * 20_000 + "1",
    "not": "SELECT " + "NOT " * 20_000 + "true",
    "unions": " UNION ALL ".join(["SELECT 1"] * 5000),
    "options": "CREATE TABLE t (a INT) WITH (" + ", ".join(f"'o{i}' = '{i}'" for i in range(10_000)) + ")",
    "cases": "SELECT " + "CASE WHEN true THEN " * 500 + "1" + " END" * 500,
}


@pytest.mark.parametrize("what", LARGE)
def test_large_and_deep_text_is_refused_soon(what: str) -> None:
    env = hw.Environment("hostile", engine="local")
    with pytest.raises(SqlError):
        env.execute_sql(LARGE[what])


def test_a_statement_of_a_megabyte_says_so() -> None:
    with pytest.raises(SqlError, match="at most 1000000 characters"):
        read_statements("SELECT " + json.dumps("x" * 1_000_001))
