"""What a PostgreSQL column does not take is refused before the commit: by us exactly where the server would."""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from tests.connectors.published import Published
from tests.parts.postgres import PostgresServer

import headwater as hw
from headwater.connectors.postgres import PostgresSink

CANDIDATES: list[tuple[str, str, list[Any]]] = [
    ("text", "string", ["", "a", "a\0b", "\0", "é", "\U0001f600", "x" * 100_000, None]),
    ("varchar(3)", "string", ["", "abc", "éèê", "abcd", "abc   ", "abc  d", "a\0", None]),
    ("char(3)", "string", ["", "abc", "abc ", "abcd", None]),
    ("text not null", "string", ["", "a", None]),
    ("text not null default 'x'", "string", ["a", None]),
    ("mood", "string", ["sad", "it's", "Sad", "", "sad ", None]),
    ("mood[]", "array<string>", [[], ["sad", None], ["sad", "mad"], None]),
    ("varchar(3)[]", "array<string>", [["abc", None], ["abcd"], [], ["a", "\0"]]),
    (
        "uuid",
        "string",
        [
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "{A0EEBC999C0B4EF8BB6D6BB9BD380A11}",
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1",
            "{a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "",
            None,
        ],
    ),
    ("json", "string", ["{}", "1", " [1, 2]", "", "{", "NaN", '"\\u0000"', '"\n"', '{"a": 1e999999}', "01", None]),
    (
        "jsonb",
        "string",
        [
            "{}",
            '"\\u0000"',
            '{"\\u0000": 1}',
            '"\\ud800"',
            '"\\ud83d\\ude00"',
            "1e999999",
            "1e100000",
            "1e-15000",
            "-",
            "[1,]",
        ],
    ),
    ("jsonb", "map<string,string>", [{"a": "b"}, {"a": "\0"}, {"\0": "b"}, {"a": None}]),
    ("json", "map<string,string>", [{"a": "\0"}, {"\0": "b"}]),
    ("jsonb", "struct<x:double,t:array<string>>", [(float("nan"), ["a"]), (1.5, ["a\0"]), (1e308, None)]),
    ("timestamptz", "timestamp", [dt.datetime.min.replace(tzinfo=dt.UTC), dt.datetime.max.replace(tzinfo=dt.UTC)]),
    ("date", "date", [dt.date.min, dt.date.max]),
    ("interval", "interval", [dt.timedelta(days=106_751_991), dt.timedelta(days=-106_751_991)]),
    ("real", "float", [3.4028234663852886e38, 1e-45, float("inf"), float("nan"), -0.0]),
    ("double precision", "double", [1.7976931348623157e308, 5e-324, float("-inf")]),
    ("numeric", "decimal(38,10)", [None]),
    ("short_text", "string", ["abc", "abcd", None]),
]


@pytest.fixture
def fresh(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """The server with an empty schema of the test's own, which comes first on the search path of all connections."""
    postgres.run("drop schema if exists t cascade", "create schema t", "alter role headwater set search_path = t")
    postgres.run("create type t.mood as enum ('sad', 'it''s')", "create domain t.short_text as varchar(3) not null")
    yield postgres
    postgres.run("drop schema t cascade", "alter role headwater reset search_path")


Opened = Callable[..., Published[PostgresSink]]


@pytest.fixture
def opened(fresh: PostgresServer, tmp_path: Path) -> Iterator[Opened]:
    """Makes a sink, which is closed at the end."""
    sinks: list[PostgresSink] = []

    def opened(schema: str, **settings: Any) -> Published[PostgresSink]:
        sinks.append(hw.connectors.postgres(fresh.conninfo, "target", **settings))
        return Published(sinks[-1], schema, tmp_path).open()

    yield opened
    for sink in sinks:
        sink.close()


def stage(out: Published[PostgresSink], folder: Path, *rows: Any) -> None:
    """As a task does it, which has a copy of the sink."""
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, out.schema.arrow, strict=True)]
    pickle.loads(pickle.dumps(out.sink)).stage(pa.table(arrays, schema=out.schema.arrow), folder / "staged.arrow")


@pytest.mark.parametrize("candidates", CANDIDATES, ids=[f"{column} from {dtype}" for column, dtype, _ in CANDIDATES])
def test_a_value_is_refused_before_the_commit_if_the_server_would_refuse_it_after(
    fresh: PostgresServer, opened: Opened, tmp_path: Path, candidates: tuple[str, str, list[Any]]
) -> None:
    column, dtype, values = candidates
    fresh.run(f"create table target (n bigint, v {column})")
    out = opened(f"n bigint, v {dtype}")
    room = out.sink._room
    for number, value in enumerate(values):
        ours = told(lambda row=(number, value): stage(out, tmp_path, row))
        out.sink._room = None
        theirs = told(lambda number=number, value=value: out.publish(number, [(number, value)]))
        out.sink._room = room
        assert ours is None or "step 'out', field 'v'" in ours, value
        assert theirs is None or "change the table so that it takes the row" in theirs, value
        assert (ours is None) == (theirs is None), (value, ours, theirs)


def told(work: Callable[[], None]) -> str | None:
    """What goes wrong, if something does."""
    try:
        work()
    except (hw.RowError, hw.PublishError) as error:
        return str(error)
    return None


def test_a_change_that_is_taken_back_needs_its_key_alone(fresh: PostgresServer, opened: Opened, tmp_path: Path) -> None:
    fresh.run("create table target (id bigint primary key, v text not null)")
    schema = "id bigint, v string, row_kind string"
    out = opened(schema, mode="upsert", key="id")
    stage(out, tmp_path, (1, None, "-D"))
    for row, told in (
        ((1, None, "+I"), "field 'v': value None does not fit text: the column is not null"),
        ((None, "a", "-D"), "field 'id': value None does not fit int64: a key to upsert by must not be null"),
        ((1, "a", "?"), "a row of a changelog is one of these"),
    ):
        with pytest.raises(hw.RowError, match=told):
            stage(out, tmp_path, row)


def test_a_row_that_only_the_server_can_refuse_is_written_when_the_table_takes_it(
    fresh: PostgresServer, opened: Opened, tmp_path: Path
) -> None:
    fresh.run("create table target (n bigint constraint small check (n < 10))")
    out = opened("n bigint")
    with pytest.raises(hw.PublishError, match=r'violates check constraint "small".*change the table.*nothing is lost'):
        out.publish(0, [(5,), (50,)])
    fresh.run("alter table t.target drop constraint small")
    out.publish(0, [(5,), (50,)])
    with psycopg.connect(fresh.conninfo) as connection:
        assert connection.execute("select n from target order by n").fetchall() == [(5,), (50,)]
