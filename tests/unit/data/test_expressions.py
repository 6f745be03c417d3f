from __future__ import annotations

import datetime as dt
import subprocess
import sys
import threading
from decimal import Decimal
from typing import Any

import pytest

from headwater.errors import SchemaError, UserCodeError
from headwater.streams.environment import Environment
from headwater.streams.stream import Stream

SCHEMA = (
    "k string, n bigint, x double, tags array<string>, at timestamp, "
    "d decimal(10,2), s struct<a:int,b:string>, m map<string,int>"
)
AT = dt.datetime(2024, 5, 6, 7, 8, 9, tzinfo=dt.UTC)
ROWS = [
    ("a", 1, 0.5, ["p", "q"], AT, Decimal("1.25"), (7, "x"), {"u": 1}),
    ("B", None, None, None, None, None, None, None),
    ("c", 3, 2.5, [], AT, Decimal("2.50"), (8, None), {}),
]


@pytest.fixture
def stream() -> Stream:
    return Environment("expressions", engine="local").from_rows(ROWS, SCHEMA)


@pytest.mark.parametrize(
    ("expression", "ddl", "values"),
    [
        ("n", "n bigint", [1, None, 3]),
        ("N", "n bigint", [1, None, 3]),
        ("n + 1 as m1", "m1 bigint", [2, None, 4]),
        ("n * 2 as twice", "twice bigint", [2, None, 6]),
        ("cast(n as int) as n", "n int", [1, None, 3]),
        ("upper(k) as up", "up string", ["A", "B", "C"]),
        ("concat(k, '-', k) as kk", "kk string", ["a-a", "B-B", "c-c"]),
        ("coalesce(n, -1) as filled", "filled bigint", [1, -1, 3]),
        ("case when n > 1 then 'big' else 'small' end as size", "size string", ["small", "small", "big"]),
        ("if(n > 1, 1.5D, 0D) as v", "v double", [0.0, 0.0, 1.5]),
        ("n is null as missing", "missing boolean", [False, True, False]),
        ("s.a as a", "a int", [7, None, 8]),
        ("s.b", "b string", ["x", None, None]),
        ("tags[1] as first", "first string", ["p", None, None]),
        ("tags[5] as fifth", "fifth string", [None, None, None]),
        ("size(tags) as count", "count int", [2, None, 0]),
        ("year(at) as y", "y bigint", [2024, None, 2024]),
        (
            "date_format(at, 'yyyy-MM-dd HH:mm') as minute",
            "minute string",
            ["2024-05-06 07:08", None, "2024-05-06 07:08"],
        ),
        ("substring(k, 1, 1) as one", "one string", ["a", "B", "c"]),
        ("tags", "tags array<string>", [["p", "q"], None, []]),
        ("m", "m map<string,int>", [{"u": 1}, None, {}]),
        ("s", "s struct<a:int,b:string>", [(7, "x"), None, (8, None)]),
        ("at", "at timestamp", [AT, None, AT]),
        ("d", "d decimal(10,2)", [Decimal("1.25"), None, Decimal("2.50")]),
        ("'it''s' as quoted", "quoted string", ["it's"] * 3),
        (r"'a\n' as plain", "plain string", ["a\\n"] * 3),
        ("n / 2 as half", "half bigint", [0, None, 1]),
        ("cast(x as int) as cut", "cut int", [0, None, 2]),
        ("d / 3 as third", "third decimal(21,13)", [Decimal("0.4166666666667"), None, Decimal("0.8333333333333")]),
        (
            "at + interval '1' day as later",
            "later timestamp",
            [AT + dt.timedelta(days=1), None, AT + dt.timedelta(days=1)],
        ),
        ("m['u'] as u", "u int", [1, None, None]),
        ("cast(at as date) as day", "day date", [AT.date(), None, AT.date()]),
        ("json_value('{\"a\": {\"b\": 5}}', '$.a.b' returning int) as b", "b int", [5, 5, 5]),
    ],
)
def test_select_means_what_flink_sql_means(stream: Stream, expression: str, ddl: str, values: list[Any]) -> None:
    selected = stream.select(expression)
    assert selected.schema.ddl() == ddl
    assert [row[0] for row in selected.collect()] == values


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("n > 1", ["c"]),
        ("n is null or n = 1", ["a", "B"]),
        ("k in ('a', 'B')", ["a", "B"]),
        ("not (k = 'a')", ["B", "c"]),
        ("array_contains(tags, 'q')", ["a"]),
        ("k like '%c%' and x between 2 and 3", ["c"]),
        ("K == 'a'", ["a"]),
        ("at > timestamp '2024-01-01'", ["a", "c"]),
        ("1 = 0", []),
    ],
)
def test_where_keeps_the_rows_for_which_it_is_true(stream: Stream, condition: str, kept: list[str]) -> None:
    assert [row.k for row in stream.where(condition).collect()] == kept


def test_a_star_stands_for_all_columns(stream: Stream) -> None:
    selected = stream.select("*", "n + 1 as more")
    assert selected.schema.names == [*stream.schema.names, "more"]
    assert [row.more for row in selected.collect()] == [2, None, 4]
    assert stream.select("*").collect() == stream.collect()


def test_rows_keep_their_order_in_large_batches() -> None:
    stream = Environment("order", engine="local").from_rows([(i,) for i in range(300_000)], "n long")
    kept = stream.where("n % 3 = 0").select("n").collect()
    assert [row.n for row in kept] == list(range(0, 300_000, 3))


def test_a_column_named_like_a_keyword_can_be_used() -> None:
    stream = Environment("names", engine="local").from_rows([(1, 2)], "`order` int, `a b` int")
    assert stream.select("`order`", "`a b` as ab").collect() == [(1, 2)]


@pytest.mark.parametrize("expression", ["missing", "missing + 1 as m", "upper(missing) as m", "missing.field as m"])
def test_an_unknown_column_is_answered_with_the_known_ones(stream: Stream, expression: str) -> None:
    with pytest.raises(SchemaError, match=r"step 'select': there is no field 'missing'; the fields are k, n, x"):
        stream.select(expression)
    with pytest.raises(SchemaError, match="no field 'missing'"):
        stream.where("missing > 1")


@pytest.mark.parametrize(
    "expression",
    [
        "sum(n) as s",
        "count(*) as c",
        "max(n) + 1 as m",
        "row_number() over (order by n) as r",
        "(select 1) as one",
        "n in (select 1) as some",
        "select n",
        "n; n",
        "drop table batch",
        "insert into t values (1)",
        "create table t (n int)",
        "? as p",
        "",
    ],
)
def test_what_is_not_one_scalar_expression_is_refused(stream: Stream, expression: str) -> None:
    with pytest.raises(SchemaError, match="step 'select'"):
        stream.select(expression)
    with pytest.raises(SchemaError, match="step 'where'"):
        stream.where(expression)


def test_is_beside_a_comparison_needs_parentheses(stream: Stream) -> None:
    """Flink reads it as `(n > 1) IS TRUE`, others as `n > (1 IS TRUE)`."""
    for expression in ("n > 1 is not false", "n is null = true"):
        with pytest.raises(SchemaError, match="IS beside a comparison needs parentheses"):
            stream.where(expression)
    assert stream.where("(n > 1) is not false or (n is null) = true").collect()


@pytest.mark.parametrize(
    "expression",
    [
        "read_csv('/etc/passwd') as x",
        "getenv('HOME') as x",
        "nonsense(n) as x",
        "n +",
        "main.lower(k) as x",
        "list_transform(tags, x -> x) as x",
        "tags[1:2] as x",
        "n & 1 as x",
        "{a: 1} as x",
        "k collate nocase as x",
        "n as x from other",
        "distinct n as x",
        '"n" as x',
        "n, x",
        "trim(k",
        "cast(n as int",
        "1e as x",
        "x'4''1' as x",
        "x'123' as x",
        "null as x",
        "cast(d as decimal(5, n)) as x",
        "at + interval 'one' day as x",
        "regexp(k, 'a)') as x",
        "json_exists(k, '$.a' returning) as x",
        "json_value(k, '$..a') as x",
    ],
)
def test_what_cannot_be_computed_is_refused_when_the_graph_is_built(stream: Stream, expression: str) -> None:
    with pytest.raises(SchemaError, match="step 'select'"):
        stream.select(expression)


def test_a_computed_column_needs_a_name(stream: Stream) -> None:
    with pytest.raises(SchemaError, match="'n \\+ 1' has no name; write 'expression as name'"):
        stream.select("n + 1")


def test_names_of_columns_are_unique_and_not_reserved(stream: Stream) -> None:
    with pytest.raises(SchemaError, match="'n' appears twice"):
        stream.select("n", "x as n")
    with pytest.raises(SchemaError, match="two underscores"):
        stream.select("n as __ts")


@pytest.mark.parametrize("condition", ["n as m", "*"])
def test_where_takes_a_condition_only(stream: Stream, condition: str) -> None:
    with pytest.raises(SchemaError, match="is no condition"):
        stream.where(condition)


def test_a_failure_over_rows_names_the_step(stream: Stream) -> None:
    with pytest.raises(UserCodeError, match="step 'select' failed"):
        stream.select("n + 9223372036854775807 as big").collect()
    with pytest.raises(UserCodeError, match=r"step 'select' failed[^\n]*Division by zero"):
        stream.select("n / (n - n) as none").collect()
    with pytest.raises(UserCodeError, match=r"step 'select' failed[^\n]*cannot read a as int"):
        stream.select("cast(k as int) as number").collect()


@pytest.mark.parametrize(
    "call",
    [
        *(
            "now()",
            "current_timestamp",
            "current_timestamp()",
            "CURRENT_DATE",
            "localtimestamp",
            "unix_timestamp()",
            "today()",
        ),
        *("rand()", "random()", "rand_integer(5)", "uuid()", "uuidv4()", "uuidv7()", "gen_random_uuid()"),
    ],
)
def test_what_differs_on_a_replay_is_refused(stream: Stream, call: str) -> None:
    with pytest.raises(SchemaError, match=r"so a replay would differ; use a column, or ctx.now"):
        stream.select(f"{call} as x")
    with pytest.raises(SchemaError, match="so a replay would differ"):
        stream.where(f"n > 1 and coalesce({call}, {call}) is null")


def test_a_column_may_have_the_name_of_what_is_refused() -> None:
    stream = Environment("names", engine="local").from_rows([("a", 1)], "uuid string, current_date int")
    assert stream.select("uuid", "current_date + 1 as next").collect() == [("a", 2)]


def test_an_unknown_function_is_answered_with_the_nearest_names(stream: Stream) -> None:
    with pytest.raises(SchemaError, match=r"there is no function LOWR in 'lowr\(k\) as x'; the nearest are LOWER"):
        stream.select("lowr(k) as x")
    with pytest.raises(SchemaError, match=r"there is no function main\.random"):
        stream.select("main.random() as x")


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("lower(n) as x", r"LOWER in 'lower\(n\) as x' got \(bigint\); it takes \(string\) -> string"),
        ("n + k as x", r"\+ in 'n \+ k as x' got \(bigint, string\)"),
        ("not n as x", r"NOT in 'not n as x' got \(bigint\)"),
        ("case when n then 1 end as x", "a condition of CASE is boolean; got bigint"),
        ("cast(tags as int) as x", "there is no cast from array<string> to int"),
        ("s.z as x", "the row has no field 'z'; its fields are a, b"),
        ("n.z as x", "bigint has no field 'z'"),
        ("tags[0] as x", "the index of an array starts at 1; got 0"),
        ("regexp(k, '(?=a)') as x", "it looks ahead or behind"),
        ("regexp_extract(k, '(a)\\1', 1) as x", "it refers back to a group"),
        ("regexp(k, 'a*+') as x", "it has a possessive quantifier"),
        ("date_format(at, 'yyyy-QQ') as x", "'QQ' is not supported"),
        ("interval '1' day as x", "is of type interval day, which no column can hold"),
        ("timestamp '2024-13-01 00:00:00' as x", "TIMESTAMP '2024-13-01 00:00:00' is no timestamp"),
    ],
)
def test_wrong_arguments_are_told_with_what_is_taken(stream: Stream, expression: str, told: str) -> None:
    with pytest.raises(SchemaError, match=f"step 'select': .*({told})"):
        stream.select(expression)


def test_a_star_may_leave_columns_out(stream: Stream) -> None:
    for expression in ("* except (s, m)", "* EXCLUDE (s, M)"):
        assert stream.select(expression).schema.names == ["k", "n", "x", "tags", "at", "d"]
    with pytest.raises(SchemaError, match="no field 'z'"):
        stream.select("* except (z)")
    with pytest.raises(SchemaError, match="is not supported in an expression"):
        stream.select("* replace (n + 1 as n)")


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 2000 + "n" + ")" * 2000,
        "- " * 2000 + "n",
        "not " * 2000 + "true",
        "coalesce(" * 500 + "n" + ", n)" * 500,
        "case when true then " * 500 + "n" + " end" * 500,
        " + ".join(["n"] * 5000),
        "array[" * 500 + "1" + "]" * 500,
        " || ".join(["k"] * 30_000),
    ],
)
def test_what_is_nested_too_deeply_is_refused(stream: Stream, expression: str) -> None:
    with pytest.raises(SchemaError, match=r"levels deep|is too long"):
        stream.select(f"{expression} as x")


def test_long_chains_of_conditions_are_computed(stream: Stream) -> None:
    assert [row.k for row in stream.where(" or ".join(f"n = {i}" for i in range(3, 900))).collect()] == ["c"]
    assert [row.k for row in stream.where(" and ".join(f"n <> {i}" for i in range(3, 900))).collect()] == ["a"]
    assert stream.select(" + ".join(["n"] * 150) + " as sum").collect()[0] == (150,)


def test_names_of_parameters_inside_of_forms_are_no_columns() -> None:
    schema = "item array<int>, q decimal(5,2), text double, pair int"
    stream = Environment("names", engine="local").from_rows([([1, 2], Decimal("1.00"), 1e9, 2)], schema)
    selected = stream.select(
        "array_remove(item, pair) as a",
        "q / pair as b",
        "cast(text as string) as c",
        "cast(item as array<string>) as d",
    )
    assert selected.collect() == [([1], Decimal("0.5000000000000"), "1.0E9", ["1", "2"])]


def test_columns_that_are_intervals_pass_through() -> None:
    stream = Environment("intervals", engine="local").from_rows([(dt.timedelta(minutes=90), 1)], "i interval, n int")
    assert stream.where("n > 0").select("i", "n").collect() == [(dt.timedelta(minutes=90), 1)]


def test_a_process_can_be_started_from_another_thread(stream: Stream) -> None:
    """As Spark's JVM is: with a call between fork and exec."""
    assert stream.where("n > 0").collect()
    ended: list[int] = []

    def start() -> None:
        started = subprocess.Popen([sys.executable, "-c", ""], preexec_fn=lambda: None)  # noqa: PLW1509
        ended.append(started.wait())

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert ended == [0]
