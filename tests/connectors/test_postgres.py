"""Lookups in a real PostgreSQL: types, caches, errors, and a server that goes away in the middle of a job."""

from __future__ import annotations

import builtins
import datetime as dt
import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from tests.parts.postgres import PostgresServer

import headwater as hw
from headwater.connectors import PostgresTable
from headwater.streams.stream import Stream
from headwater.testing import Harness

ORDERS = "user long, amount long"
USERS = "id long, name string"


@pytest.fixture(scope="module", autouse=True)
def tables(postgres: PostgresServer) -> None:
    postgres.run(
        "create table users (id int primary key, name text)",
        "insert into users values (1, 'ann'), (2, 'bob'), (3, null)",
        "create schema app",
        'create table app."Many" (a int, b varchar(5), v int)',
        """insert into app."Many" values (1, 'x', 30), (1, 'x', 10), (1, 'y', 20), (2, 'x', 40), (null, 'x', 50)""",
    )


@pytest.fixture
def users(postgres: PostgresServer) -> PostgresTable:
    return PostgresTable(postgres.conninfo, "users", USERS)


def stream_of(rows: list[Any], schema: str = ORDERS, **settings: Any) -> Stream:
    return hw.Environment("postgres", engine="local", **settings).from_rows(rows, schema)


def plain(stream: Stream) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in stream.collect()]


@pytest.mark.parametrize("cache", [None, 2, "full"])
def test_rows_get_the_columns_of_their_key(users: PostgresTable, cache: Any) -> None:
    rows = [(2, 10), (9, 20), (None, 30), (1, 40), (3, 50), (2, 60)]
    joined = stream_of(rows, max_rows_per_epoch=4).lookup_join(users, on={"user": "id"}, cache=cache)
    assert joined.schema.ddl() == "user bigint, amount bigint, name string"
    assert [row.name for row in joined.collect()] == ["bob", None, None, "ann", None, "bob"]
    inner = stream_of(rows).lookup_join(users, on={"user": "id"}, how="inner", cache=cache)
    assert [row.amount for row in inner.collect()] == [10, 40, 50, 60]


@pytest.mark.parametrize("cache", [None, "full"])
def test_several_key_columns_and_several_matches_in_an_order_of_their_own(postgres: PostgresServer, cache: Any) -> None:
    many = PostgresTable(postgres.conninfo, "app.Many", "a int, b string, v int")
    rows = [(1, "x"), (2, "x"), (2, "y"), (None, "x"), (1, None)]
    assert plain(stream_of(rows, "a long, b string").lookup_join(many, on=["a", "b"], cache=cache)) == [
        (1, "x", 10),
        (1, "x", 30),
        (2, "x", 40),
        (2, "y", None),
        (None, "x", None),
        (1, None, None),
    ]


def test_only_keys_that_are_not_at_hand_are_asked_for(users: PostgresTable, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = note_queries(monkeypatch)
    with Harness(lambda s: s.lookup_join(users, on={"user": "id"}, cache=10), ORDERS) as harness:
        for user in (1, 2, 1, 9, 9, 2):
            harness.push((user, 0))
        assert [row.name for row in harness.take()] == ["ann", "bob", "ann", None, None, "bob"]
    assert asked == [[[1]], [[2]], [[9]]]


def test_a_batch_asks_once_for_all_its_keys(users: PostgresTable, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = note_queries(monkeypatch)
    rows = [(n % 7, n) for n in range(100)]
    assert len(stream_of(rows).lookup_join(users, on={"user": "id"}).collect()) == 100
    assert asked == [[[0, 1, 2, 3, 4, 5, 6]]]


def note_queries(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The keys of every lookup from here on."""
    asked: list[Any] = []
    execute = psycopg.Connection.execute

    def noted(self: Any, query: Any, parameters: Any = None, **settings: Any) -> Any:
        if "WITH ORDINALITY AS asked" in repr(query):
            asked.append(parameters)
        return execute(self, query, parameters, **settings)

    monkeypatch.setattr(psycopg.Connection, "execute", noted)
    return asked


@pytest.mark.parametrize("cache", [10, "full"])
def test_a_change_is_seen_when_what_is_kept_is_too_old(postgres: PostgresServer, cache: Any) -> None:
    postgres.run("drop table if exists changing", "create table changing (id int, name text)")
    postgres.run("insert into changing values (1, 'old')")
    table = PostgresTable(postgres.conninfo, "changing", USERS)
    with Harness(lambda s: s.lookup_join(table, on={"user": "id"}, cache=cache, ttl="10 s"), ORDERS) as harness:
        harness.push((1, 0))
        postgres.run("update changing set name = 'new'")
        harness.advance_to(9_999)
        harness.push((1, 0))
        harness.advance_to(10_000)
        harness.push((1, 0))
        assert [row.name for row in harness.take()] == ["old", "old", "new"]


MOMENT = dt.datetime(2026, 1, 1, 12, 30, 0, 5, tzinfo=dt.UTC)
TYPES: dict[str, tuple[str, str, Any]] = {
    "boolean": ("boolean", "true", True),
    "smallint": ("smallint", "-5", -5),
    "int": ("int", "7", 7),
    "int of smallint": ("smallint", "7", 7),
    "bigint": ("bigint", str(1 << 40), 1 << 40),
    "decimal(10,2)": ("numeric(10,2)", "1.50", Decimal("1.50")),
    "decimal(5,0) of int": ("int", "5", Decimal(5)),
    "string": ("text", "'é%s'", "é%s"),
    "string of char": ("char(5)", "'ab'", "ab"),
    "string of uuid": ("uuid", "'6ecd8c99-4036-403d-bf84-cf8400f67836'", "6ecd8c99-4036-403d-bf84-cf8400f67836"),
    "binary": ("bytea", r"'\x00ff'", b"\x00\xff"),
    "date": ("date", "'1969-12-31'", dt.date(1969, 12, 31)),
    "timestamp": ("timestamptz", "'2026-01-01 13:30:00.000005+01'", MOMENT),
    "timestamp_ntz": ("timestamp", "'2026-01-01 12:30:00.000005'", MOMENT.replace(tzinfo=None)),
}
"""By our type: PostgreSQL's, a value as it writes it, and as Python sees it."""
VALUES: dict[str, tuple[str, str, Any]] = {
    **TYPES,
    "double": ("double precision", "1.5", 1.5),
    "float": ("real", "1.5", 1.5),
    "double of real": ("real", "1.5", 1.5),
    "string of json": ("jsonb", """'{"a": 1}'""", '{"a": 1}'),
    "array<int>": ("int[]", "'{1,null,3}'", [1, None, 3]),
    "array<string>": ("text[]", "'{a,null}'", ["a", None]),
    "array<timestamp>": ("timestamptz[]", "array['2026-01-01 12:30:00.000005+00'::timestamptz]", [MOMENT]),
}


def typed(postgres: PostgresServer, name: str) -> tuple[str, Any, PostgresTable]:
    theirs, text, value = VALUES[name]
    ours, _, _ = name.partition(" of ")
    postgres.run("drop table if exists typed", f"create table typed (k {theirs}, n int, v {theirs})")
    postgres.run(f"insert into typed values ({text}, 1, {text}), (null, 2, null)")
    return ours, value, PostgresTable(postgres.conninfo, "typed", f"k {ours}, n int, v {ours}")


@pytest.mark.parametrize("cache", [None, "full"])
@pytest.mark.parametrize("name", TYPES)
def test_keys_of_many_types(postgres: PostgresServer, name: str, cache: Any) -> None:
    ours, value, table = typed(postgres, name)
    joined = stream_of([(value,), (None,)], f"k {ours}").lookup_join(table, on="k", cache=cache)
    assert plain(joined) == [(value, 1, value), (None, None, None)]


@pytest.mark.parametrize("cache", [None, "full"])
@pytest.mark.parametrize("name", VALUES)
def test_values_of_many_types(postgres: PostgresServer, name: str, cache: Any) -> None:
    _, value, table = typed(postgres, name)
    joined = stream_of([(1,), (2,)], "n long").lookup_join(table, on="n", columns=["v"], cache=cache)
    assert plain(joined) == [(1, value), (2, None)]


def test_names_and_keys_are_never_part_of_the_text_of_a_query(postgres: PostgresServer) -> None:
    bad = 'x"; drop table users; --'
    quoted = '"' + bad.replace('"', '""') + '"'
    postgres.run(f"create table {quoted} ({quoted} text, name text)")
    postgres.run(f"insert into {quoted} values ('it''s; drop table users', 'safe')")
    table = PostgresTable(postgres.conninfo, bad, f"`{bad}` string, name string")
    joined = stream_of([("it's; drop table users",), ("%s",), ("",)], "k string").lookup_join(table, on={"k": bad})
    assert [row.name for row in joined.collect()] == ["safe", None, None]
    postgres.run(f"drop table {quoted}", "select * from users")


# -- what goes wrong ------------------------------------------------------------------------------------------------


def failing(table: PostgresTable, **settings: Any) -> Callable[[], Any]:
    return stream_of([(1, 1)]).lookup_join(table, on={"user": "id"}, name="find", **settings).collect


def test_a_server_that_is_not_there_is_told(postgres: PostgresServer) -> None:
    table = PostgresTable(f"host=127.0.0.1 port=1 password={postgres.password}", "users", USERS)
    with pytest.raises(
        hw.SourceError,
        match=r"step 'find': PostgreSQL table users at 127.0.0.1:1/ cannot be read: .*refused.*; see that the server runs",
    ) as failed:
        failing(table)()
    assert postgres.password not in str(failed.value)


def test_a_wrong_password_is_told_and_not_shown(postgres: PostgresServer) -> None:
    wrong = postgres.conninfo.replace(postgres.password, "hunter2")
    with pytest.raises(hw.SourceError, match="password authentication failed") as failed:
        failing(PostgresTable(wrong, "users", USERS))()
    assert "hunter2" not in str(failed.value)


@pytest.mark.parametrize("cache", [None, "full"])
@pytest.mark.parametrize(
    ("name", "schema", "problem"),
    [
        ("nothing", USERS, 'relation "nothing" does not exist; mend the table, or its declaration'),
        ("users", "id long, size int", 'column "size" does not exist; mend the table'),
        ("users", "id long, name long", "column 'name' of .* is text, which cannot be read as bigint"),
        ("users", "id short, name string", "column 'id' of .*, which cannot be read as smallint"),
    ],
)
def test_a_table_that_is_not_as_declared_is_told(
    postgres: PostgresServer, name: str, schema: str, problem: str, cache: Any
) -> None:
    with pytest.raises(hw.HeadwaterError, match=f"step 'find'.*{problem}"):
        failing(PostgresTable(postgres.conninfo, name, schema), cache=cache)()


def test_a_value_that_does_not_fit_is_told(postgres: PostgresServer) -> None:
    postgres.run("drop table if exists loose", "create table loose (id int, n numeric)")
    postgres.run("insert into loose values (1, 1.234)")
    with pytest.raises(hw.RowError, match=r"step 'find', field 'n': value Decimal\('1.234'\) does not fit decimal"):
        failing(PostgresTable(postgres.conninfo, "loose", "id int, n decimal(10,2)"))()


def test_a_connection_can_come_from_the_environment(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    table = PostgresTable("env:USERS_DB", "users", USERS)
    monkeypatch.setenv("USERS_DB", postgres.conninfo)
    assert failing(table)() == [(1, 1, "ann")]
    monkeypatch.setenv("USERS_DB", "postgresql//me:hunter2@here")
    with pytest.raises(hw.SourceError, match="what USERS_DB holds is not a connection; set it to") as failed:
        failing(table)()
    assert "hunter2" not in str(failed.value)
    monkeypatch.delenv("USERS_DB")
    with pytest.raises(hw.SourceError, match="USERS_DB is not in the environment of this process; set it where"):
        failing(table)()


def test_secrets_are_not_shown(postgres: PostgresServer) -> None:
    table = PostgresTable(postgres.conninfo, "users", USERS)
    env = hw.Environment("secrets", engine="local")
    env.from_rows([], ORDERS).lookup_join(table, on={"user": "id"}).sink(hw.connectors.memory())
    shown = [repr(table), table.describe(), env.describe(), env.explain(), *map(repr, env.graph)]
    assert not [text for text in shown if postgres.password in text]
    assert table.describe() == f"PostgreSQL table users at 127.0.0.1:{postgres.port}/postgres"
    from_environment = PostgresTable("env:USERS_DB", "users", USERS)
    assert postgres.password.encode() not in pickle.dumps(from_environment)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("host=h =x:hunter2", "users", USERS), "needs a connection; got 'what cannot be read'; write 'host="),
        (("host=h", "app..users", USERS), "needs a table's name; got 'app..users'"),
        (
            ("host=h", "users", "id long, place struct<x:int>"),
            "cannot read column 'place' as it is declared; .* string",
        ),
    ],
)
def test_bad_arguments_are_refused_when_the_graph_is_built(arguments: Any, problem: str) -> None:
    with pytest.raises(hw.GraphError, match=problem) as refused:
        PostgresTable(*arguments)
    assert "hunter2" not in str(refused.value)


def test_without_psycopg_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("psycopg"):
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(hw.JobError, match=r"needs the package psycopg; pip install 'headwater\[postgres\]'"):
        PostgresTable("host=h", "users", USERS)


# -- a server that goes away ----------------------------------------------------------------------------------------


def test_a_connection_that_the_server_has_closed_is_made_again(postgres: PostgresServer, users: PostgresTable) -> None:
    with Harness(lambda s: s.lookup_join(users, on={"user": "id"}), ORDERS) as harness:
        harness.push((1, 0))
        postgres.stop()
        postgres.start()
        harness.push((2, 0))
        assert [row.name for row in harness.take()] == ["ann", "bob"]


def test_a_job_whose_server_goes_away_fails_between_epochs_and_runs_when_it_is_back(
    postgres: PostgresServer, users: PostgresTable
) -> None:
    names = [None, "ann", "bob", None]
    expected = [(n % 4, n, names[n % 4]) for n in range(12)]
    failed: list[str] = []

    def run(on_step: Any) -> list[Any]:
        env = hw.Environment("gone", engine="local", max_rows_per_epoch=3)
        sink = hw.connectors.memory()
        env.from_rows([(n % 4, n) for n in range(12)], ORDERS).lookup_join(users, on={"user": "id"}).sink(sink)
        try:
            env.run(on_step=on_step)
        except hw.SourceError as error:
            failed.append(str(error))
        return sink.rows

    def stop_after_two(step: hw.EpochStep, epoch: int) -> None:
        if step == hw.EpochStep.PUBLISHED and epoch == 1:
            postgres.stop()

    try:
        assert run(stop_after_two) == expected[:6]  # whole epochs, and nothing of the one that failed
    finally:
        postgres.start()
    (told,) = failed
    assert "see that the server runs and answers, and start the job again" in told
    assert run(lambda step, epoch: None) == expected
    assert failed == [told]


def test_connections_are_closed_at_the_end(postgres: PostgresServer, users: PostgresTable) -> None:
    count = "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"
    with psycopg.connect(postgres.conninfo, autocommit=True) as watcher:

        def until(connections: int) -> None:
            """The server takes a moment to see that a client has gone; the test's timeout ends a wait for nothing."""
            while watcher.execute(count).fetchone() != (connections,):
                pass

        until(0)
        harness = Harness(lambda s: s.lookup_join(users, on={"user": "id"}), ORDERS)
        harness.push((1, 0))
        until(1)
        harness.close()
        until(0)
