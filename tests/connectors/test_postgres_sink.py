"""Epochs written to a real PostgreSQL: once each, by append and by key, whatever the server, rivals or types do."""

from __future__ import annotations

import datetime as dt
import pickle
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.connectors.published import Published
from tests.parts.postgres import PostgresServer
from tests.parts.waiting import until

import headwater as hw
from headwater.connectors.contract import Staged
from headwater.connectors.postgres import PostgresSink
from headwater.testing.conformance import check_sink

QUICK = hw.Retry(attempts=100, delay="50 ms", backoff=1.0, max_delay="50 ms")
"""For servers that come back within a test."""
CHANGES = hw.Schema.of("id long, name string, row_kind string")


@pytest.fixture
def fresh(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """The server with an empty schema of the test's own, which comes first on the search path of all connections."""
    postgres.run("drop schema if exists t cascade", "create schema t", "alter role headwater set search_path = t")
    yield postgres
    postgres.run("drop schema t cascade", "alter role headwater reset search_path")


@pytest.fixture
def made(fresh: PostgresServer, tmp_path: Path) -> Iterator[Callable[..., Published]]:
    """Makes sinks; they are closed at the end."""
    sinks: list[PostgresSink] = []

    def make(table: str, schema: str | hw.Schema = "n long", uid: str = "out", **settings: Any) -> Published:
        settings = {"connection": fresh.conninfo, "retry": QUICK, **settings}
        sinks.append(hw.connectors.postgres(table=table, **settings))
        return Published(sinks[-1], hw.Schema.of(schema), tmp_path, uid)

    yield make
    for sink in sinks:
        sink.close()


def rows_of(server: PostgresServer, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


def numbers(server: PostgresServer, table: str = "numbers") -> list[int]:
    return [n for (n,) in rows_of(server, f"select n from {table} order by n")]


@pytest.mark.parametrize("settings", [{}, {"mode": "upsert", "key": "n"}], ids=["append", "upsert"])
def test_it_keeps_the_contract(
    fresh: PostgresServer, made: Callable[..., Published], tmp_path: Path, settings: dict[str, Any]
) -> None:
    fresh.run("create table pairs (n bigint primary key, name text)")
    check_sink(
        lambda: made("pairs", **settings).sink,
        "n long, name string",
        [(n, None if n == 2 else f"name {n}") for n in range(9)],
        lambda: rows_of(fresh, "select n, name from pairs order by n"),
        tmp_path,
        secrets=[fresh.password],
    )


# -- append ---------------------------------------------------------------------------------------------------------


def test_a_job_appends_its_rows(fresh: PostgresServer) -> None:
    fresh.run("create table totals (user_name text, total double precision, at timestamptz default now())")
    env = hw.Environment("totals", engine="local", max_rows_per_epoch=2)
    orders = env.from_rows(
        [("ann", 1.5), ("bob", 2.0), ("it's; \\.", None), (None, 4.0)], "user_name string, total double"
    )
    orders.sink(hw.connectors.postgres(fresh.conninfo, "totals"), name="totals")
    assert [str(path.guarantee) for path in env.guarantees()] == ["exactly-once"]
    env.run()
    written = rows_of(fresh, "select user_name, total from totals order by total nulls first")
    assert written == [("it's; \\.", None), ("ann", 1.5), ("bob", 2.0), (None, 4.0)]
    assert rows_of(fresh, "select target, sink, epoch from headwater_epochs") == [("totals", "totals", 1)]


def test_an_epoch_that_is_published_again_changes_nothing(
    fresh: PostgresServer, made: Callable[..., Published]
) -> None:
    fresh.run("create table numbers (n bigint)")
    out = made("numbers").open(resumed=False)
    out.publish(0, [(1,), (2,)], [(3,)])
    out.publish(0, [(1,), (2,)], [(3,)])
    out.publish(1)
    out.publish(2, [(4,)])
    again = made("numbers").open()
    again.publish(2, [(4,)])
    again.publish(3, [(5,)])
    assert numbers(fresh) == [1, 2, 3, 4, 5]


def test_text_comes_through_as_it_is(fresh: PostgresServer, made: Callable[..., Published]) -> None:
    texts = ["", "\\.", "a\n\\.\nb", '"', '""', "a,b", "\\N", "\t\r\n", "é𝄞", "NULL", " x ", "'", "\\x41", "%s", "{}"]
    made("texts", "at int, value string", create=True).open().publish(0, list(enumerate([*texts, None])))
    assert [value for (value,) in rows_of(fresh, "select value from texts order by at")] == [*texts, None]


def test_many_rows_come_through_in_pieces(fresh: PostgresServer, made: Callable[..., Published]) -> None:
    made("numbers", create=True).open().publish(0, [(n,) for n in range(50_001)], [(-1,)])
    assert rows_of(fresh, "select count(*), sum(n) from numbers") == [(50_002, Decimal(50_000 * 50_001 // 2 - 1))]


MOMENT = dt.datetime(2026, 1, 1, 12, 30, 0, 5, tzinfo=dt.UTC)
TYPES: dict[str, tuple[str, Any]] = {
    "boolean": ("boolean", True),
    "tinyint": ("smallint", -128),
    "smallint": ("smallint", -5),
    "int": ("integer", 1 << 30),
    "bigint": ("bigint", -(1 << 63)),
    "float": ("real", 1.5),
    "double": ("double precision", 0.1),
    "decimal(38,10)": ("numeric", Decimal("12345678901234567890.0123456789")),
    "string": ("text", "é%s"),
    "binary": ("bytea", b"\x00\xff\\"),
    "date": ("date", dt.date(1969, 12, 31)),
    "timestamp": ("timestamp with time zone", MOMENT),
    "timestamp_ntz": ("timestamp without time zone", MOMENT.replace(tzinfo=None)),
    "interval": ("interval", dt.timedelta(days=-3, microseconds=7)),
    "void": ("text", None),
    "array<int>": ("ARRAY", [1, None, 3]),
    "array<string>": ("ARRAY", ['a"b', None, "c\\,{}", "", "NULL"]),
    "array<timestamp>": ("ARRAY", [MOMENT]),
    "array<binary>": ("ARRAY", [b"\\\x00"]),
    "array<decimal(5,2)>": ("ARRAY", []),
    "struct<x:int,y:array<string>>": ("jsonb", {"x": 1, "y": ["a", None]}),
    "map<string,double>": ("jsonb", {"a": 1.5}),
    "map<date,int>": ("jsonb", {dt.date(2026, 1, 1): 2}),
    "array<struct<at:date>>": ("jsonb", [{"at": dt.date(2026, 1, 1)}, None]),
    "array<array<int>>": ("jsonb", [[1], [], [2, 3]]),
}
"""By type: what a column that is made for it is, and a value."""
AS_JSON = {"map<date,int>": {"2026-01-01": 2}, "array<struct<at:date>>": [{"at": "2026-01-01"}, None]}


@pytest.mark.parametrize("name", TYPES)
def test_values_of_all_types_and_nulls(fresh: PostgresServer, made: Callable[..., Published], name: str) -> None:
    made_type, value = TYPES[name]
    given = list(value.items()) if name.startswith("map") else value
    made("typed", f"at int, value {name}", create=True).open().publish(0, [(1, given), (2, None)])
    kind = "select data_type from information_schema.columns where table_name = 'typed' and column_name = 'value'"
    assert rows_of(fresh, kind) == [(made_type,)]
    assert rows_of(fresh, "select value from typed order by at") == [(AS_JSON.get(name, value),), (None,)]


@pytest.mark.parametrize(
    ("types", "value", "found"),
    [
        (("float", "double precision"), 0.1, 0.10000000149011612),
        (("double", "double precision"), float("inf"), float("inf")),
        (("int", "numeric(12,1)"), 7, Decimal("7.0")),
        (("decimal(5,2)", "numeric(6,3)"), Decimal("123.45"), Decimal("123.450")),
        (("string", "uuid"), "6ecd8c99-4036-403d-bf84-cf8400f67836", "6ecd8c99-4036-403d-bf84-cf8400f67836"),
        (("string", "jsonb"), '{"a": [1]}', '{"a": [1]}'),
        (("string", "mood"), "calm", "calm"),
        (("string", "short"), "ab", "ab"),
        (("array<int>", "jsonb"), [1, None], "[1, null]"),
        (("array<string>", "mood[]"), ["calm"], "{calm}"),
    ],
)
def test_columns_of_other_types_that_hold_every_value(
    fresh: PostgresServer, made: Callable[..., Published], types: tuple[str, str], value: Any, found: Any
) -> None:
    ours, theirs = types
    fresh.run(
        "create type mood as enum ('calm')", "create domain short as varchar(3)", f"create table typed (value {theirs})"
    )
    made("typed", f"value {ours}").open().publish(0, [(value,)])
    shown = "value::text" if isinstance(found, str) else "value"
    assert rows_of(fresh, f"select {shown} from typed") == [(found,)]


def test_names_are_never_part_of_the_text_of_a_statement(fresh: PostgresServer, made: Callable[..., Published]) -> None:
    bad = 'x"; drop table numbers; --{}%s'
    out = made(bad, f"`{bad}` long, b string", uid="out", mode="upsert", key=bad, create=True).open()
    out.publish(0, [(1, "a"), (1, "b")])
    quoted = '"' + bad.replace('"', '""') + '"'
    assert rows_of(fresh, f"select * from {quoted}") == [(1, "b")]


# -- upsert ---------------------------------------------------------------------------------------------------------


def test_the_last_row_of_a_key_counts(fresh: PostgresServer, made: Callable[..., Published]) -> None:
    fresh.run("create table users (id int8 primary key, name text, seen timestamptz default now())")
    out = made("users", "id long, name string", mode="upsert", key="id").open()
    out.publish(0, [(1, "a"), (2, "b"), (1, "c")], [(2, "d"), (3, None)])
    assert rows_of(fresh, "select id, name from users order by id") == [(1, "c"), (2, "d"), (3, None)]
    out.publish(1, [(1, "e")], [(4, "f")])
    out.publish(1, [(1, "never")])
    assert rows_of(fresh, "select id, name from users order by id") == [(1, "e"), (2, "d"), (3, None), (4, "f")]


def test_a_changelog_inserts_changes_and_deletes(fresh: PostgresServer, made: Callable[..., Published]) -> None:
    out = made("users", CHANGES, mode="upsert", key=["id"], create=True).open()
    out.publish(0, [(1, "a", "+I"), (2, "b", "+I"), (3, "c", "+I"), (4, "d", "+I"), (4, None, "-D")])
    out.publish(1, [(1, "a", "-U"), (1, "A", "+U"), (2, "b", "-D"), (3, "c", "-D"), (3, "C", "+I"), (9, "x", "-D")])
    assert rows_of(fresh, "select id, name from users order by id") == [(1, "A"), (3, "C")]


def test_the_first_half_of_a_change_without_the_other_takes_the_row_away(
    fresh: PostgresServer, made: Callable[..., Published]
) -> None:
    """As when a row leaves a join by the change, or goes to another key."""
    out = made("users", CHANGES, mode="upsert", key="id", create=True).open()
    out.publish(0, [(1, "a", "+I"), (2, "b", "+I")])
    out.publish(1, [(1, "a", "-U"), (7, "a", "+U"), (2, "b", "-U"), (2, "B", "+U")])
    assert rows_of(fresh, "select id, name from users order by id") == [(2, "B"), (7, "a")]


def test_what_a_deletion_gives_up_can_be_had_in_the_same_epoch(
    fresh: PostgresServer, made: Callable[..., Published]
) -> None:
    fresh.run("create table users (id int8, name text unique)", "create unique index on users (id) include (name)")
    out = made("users", CHANGES, mode="upsert", key="id").open()
    out.publish(0, [(1, "ann", "+I")])
    out.publish(1, [(2, "ann", "+I"), (1, "ann", "-D")])
    assert rows_of(fresh, "select id, name from users") == [(2, "ann")]


def test_keys_are_those_of_the_database(fresh: PostgresServer, made: Callable[..., Published]) -> None:
    fresh.run("create table prices (of numeric, day date, primary key (day, of))")
    out = made("prices", "of decimal(4,2), day date", mode="upsert", key=["of", "day"]).open()
    day = dt.date(2026, 1, 1)
    out.publish(0, [(Decimal("1.00"), day), (Decimal("1.00"), day)])
    out.publish(1, [(Decimal("1.00"), day)])
    assert rows_of(fresh, "select of, day from prices") == [(Decimal("1.00"), day)]


def test_a_join_keeps_a_table_up_to_date(fresh: PostgresServer) -> None:
    env = hw.Environment("joined", engine="local", max_rows_per_epoch=1)
    users = (
        env.from_rows([("ann", "Oslo"), ("bob", "Rome")], "user string, city string").with_uid("users").key_by("user")
    )
    orders = env.from_rows(
        [("ann", 1, "+I"), ("bob", 2, "+I"), ("ann", 1, "-D")], "user string, amount long, row_kind string"
    ).with_uid("orders")
    joined = users.join_regular(orders.as_changelog().key_by("user"), how="left")
    joined.sink(hw.connectors.postgres(fresh.conninfo, "joined", mode="upsert", key="user", create=True), name="joined")
    env.run()
    assert rows_of(fresh, 'select * from joined order by "user"') == [("ann", "Oslo", None), ("bob", "Rome", 2)]


def test_a_null_in_a_key_is_told(made: Callable[..., Published]) -> None:
    out = made("users", "id long, name string", mode="upsert", key="id", create=True).open()
    with pytest.raises(hw.RowError, match=r"step 'out', field 'id': value None .*a key to upsert by must not be null"):
        out.publish(0, [(None, "x")])


# -- whose table it is ----------------------------------------------------------------------------------------------


def test_two_jobs_write_to_one_table_under_names_of_their_own(
    fresh: PostgresServer, made: Callable[..., Published]
) -> None:
    fresh.run("create table numbers (n bigint)")
    one, other = made("numbers", uid="one").open("a"), made("numbers", uid="other").open("b")
    for epoch in range(3):
        one.publish(epoch, [(epoch,)])
        other.publish(epoch, [(10 + epoch,)])
    assert numbers(fresh) == [0, 1, 2, 10, 11, 12]


def test_another_job_with_the_same_sink_is_refused(fresh: PostgresServer, made: Callable[..., Published]) -> None:
    made("numbers", create=True).open("a").publish(0, [(1,)])
    told = (
        "numbers at .* holds the output of another run .sink 'out' of job a, this one is b.; give this sink another uid"
    )
    with pytest.raises(hw.PublishError, match=told):
        made("numbers").open("b", resumed=False)
    made("others", create=True).open("b", resumed=False)


def test_output_goes_on_under_a_job_that_goes_on_from_a_savepoint(
    fresh: PostgresServer, made: Callable[..., Published]
) -> None:
    old = made("numbers", create=True).open("a")
    old.publish(0, [(1,)])
    new = made("numbers").open("b", after=("a", 0))
    new.open("b", after=("a", 0))  # as after a crash
    for go_on in (lambda: old.publish(1, [(2,)]), lambda: made("numbers").open("a")):
        with pytest.raises(
            hw.PublishError, match="was handed over to job b, which goes on from the savepoint of epoch 0"
        ):
            go_on()
    new.publish(1, [(20,)])
    made("numbers").open("c", after=("b", 1)).publish(2, [(30,)])
    assert numbers(fresh) == [1, 20, 30]


def test_output_from_after_the_savepoint_is_refused(fresh: PostgresServer, made: Callable[..., Published]) -> None:
    out = made("numbers", create=True).open("a")
    out.publish(0, [(1,)])
    out.publish(1, [(2,)])
    with pytest.raises(
        hw.PublishError, match=r"output from after the savepoint, which is of epoch 0 \(it has epoch 1\)"
    ):
        made("numbers").open("b", after=("a", 0))
    out.publish(2, [(3,)])
    assert numbers(fresh) == [1, 2, 3]


def test_savepoint_can_be_started_from_again_until_a_job_has_published(
    fresh: PostgresServer, made: Callable[..., Published]
) -> None:
    failed = made("numbers", create=True).open("b", after=("a", 4))
    second = made("numbers").open("c", after=("a", 4))
    with pytest.raises(hw.PublishError, match="holds the output of another run"):
        failed.publish(5, [(1,)])
    second.publish(5, [(2,)])
    with pytest.raises(hw.PublishError, match="output from after the savepoint"):
        made("numbers").open("d", after=("a", 4))
    with pytest.raises(hw.PublishError, match="holds the output of another run"):
        made("numbers").open("d", after=("z", 9))
    assert numbers(fresh) == [2]


def test_of_two_runs_of_a_job_one_waits_and_sees_what_the_other_has_published(
    fresh: PostgresServer, made: Callable[..., Published]
) -> None:
    zombie = made("numbers", create=True).open()
    run = made("numbers").open()
    with psycopg.connect(fresh.conninfo) as gate:
        gate.execute("select * from headwater_epochs for update")
        both = [threading.Thread(target=one.publish, args=(0, [(1,), (2,)])) for one in (zombie, run)]
        for thread in both:
            thread.start()
        until(lambda: waiting(fresh) == 2)
    for thread in both:
        thread.join()
    assert numbers(fresh) == [1, 2]


def waiting(server: PostgresServer) -> int:
    """How many connections wait for a lock."""
    ((count,),) = rows_of(server, "select count(*) from pg_stat_activity where wait_event_type = 'Lock'")
    return int(count)


# -- a server that goes away ----------------------------------------------------------------------------------------


def test_a_server_is_restarted_between_epochs(fresh: PostgresServer, made: Callable[..., Published]) -> None:
    out = made("numbers", create=True).open()
    out.publish(0, [(1,)])
    fresh.stop()
    fresh.start()
    out.publish(1, [(2,)])
    assert numbers(fresh) == [1, 2]


def test_a_server_that_is_away_for_a_while_is_waited_for(fresh: PostgresServer, made: Callable[..., Published]) -> None:
    out = made("numbers", create=True).open()
    fresh.stop()
    publishing = threading.Thread(target=out.publish, args=(0, [(1,)]))
    publishing.start()
    fresh.start()
    publishing.join()
    assert numbers(fresh) == [1]


def test_a_server_that_stays_away_is_told(fresh: PostgresServer, made: Callable[..., Published]) -> None:
    out = made("numbers", create=True, retry=hw.Retry(attempts=3, delay="1 ms")).open()
    fresh.stop()
    try:
        told = "sink 'out' could not publish epoch 0: PostgreSQL table numbers .*connection.*tried 3 times.*nothing is lost"
        with pytest.raises(hw.PublishError, match=told):
            out.publish(0, [(1,)])
    finally:
        fresh.start()
    out.publish(0, [(1,)])
    assert numbers(fresh) == [1]


def test_a_backend_that_is_killed_in_the_middle_of_a_copy(
    fresh: PostgresServer, made: Callable[..., Published]
) -> None:
    """The row 5 waits in a trigger, with the rows before it written, until the backend is killed."""
    fresh.run(
        "create table numbers (n bigint)",
        "create function stop_at_5() returns trigger language plpgsql as "
        "$$ begin if new.n = 5 then perform pg_advisory_xact_lock(42); end if; return new; end $$",
        "create trigger stop before insert on numbers for each row execute function stop_at_5()",
    )
    out = made("numbers").open()
    with psycopg.connect(fresh.conninfo) as gate:
        gate.execute("select pg_advisory_xact_lock(42)")
        publishing = threading.Thread(target=out.publish, args=(0, [(n,) for n in range(10)]))
        publishing.start()
        until(lambda: waiting(fresh) == 1)
        fresh.run(
            "select pg_terminate_backend(pid) from pg_stat_activity where query like 'COPY%' and pid <> pg_backend_pid()"
        )
    publishing.join()
    assert numbers(fresh) == list(range(10))


def test_a_commit_whose_answer_is_lost_is_looked_up(
    fresh: PostgresServer, made: Callable[..., Published], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = made("numbers", create=True).open()
    leave, lost = psycopg.Transaction.__exit__, []

    def commit_and_lose(self: Any, *raised: Any) -> Any:
        done = leave(self, *raised)
        if not lost:
            lost.append(self)
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return done

    monkeypatch.setattr(psycopg.Transaction, "__exit__", commit_and_lose)
    out.publish(0, [(1,)])
    assert lost
    assert numbers(fresh) == [1]


def test_a_serialization_failure_is_tried_again(fresh: PostgresServer, made: Callable[..., Published]) -> None:
    conninfo = f"{fresh.conninfo} options='-c default_transaction_isolation=serializable'"
    out = made("numbers", create=True, connection=conninfo).open()
    with psycopg.connect(fresh.conninfo) as gate:
        gate.execute("update headwater_epochs set changed = now()")
        publishing = threading.Thread(target=out.publish, args=(0, [(1,)]))
        publishing.start()
        until(lambda: waiting(fresh) == 1)
    publishing.join()
    assert numbers(fresh) == [1]


# -- what is refused ------------------------------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_told_at_once(made: Callable[..., Published]) -> None:
    out = made("numbers", connection="host=127.0.0.1 port=1 password=hunter2")
    told = (
        "sink 'out': PostgreSQL table numbers at 127.0.0.1:1/ cannot be written: .*refused.*; see that the server runs"
    )
    with pytest.raises(hw.PublishError, match=told) as refused:
        out.open()
    assert "hunter2" not in str(refused.value)


def test_a_wrong_password_is_told_and_not_shown(fresh: PostgresServer, made: Callable[..., Published]) -> None:
    wrong = fresh.conninfo.replace(fresh.password, "hunter2")
    with pytest.raises(hw.PublishError, match="password authentication failed") as refused:
        made("numbers", connection=wrong).open()
    assert "hunter2" not in str(refused.value)


def test_a_connection_can_come_from_the_environment(
    fresh: PostgresServer, made: Callable[..., Published], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = made("numbers", connection="env:OUT_DB", create=True)
    with pytest.raises(hw.PublishError, match="OUT_DB is not in the environment of this process; set it where"):
        out.open()
    monkeypatch.setenv("OUT_DB", fresh.conninfo)
    out.open().publish(0, [(1,)])
    assert numbers(fresh) == [1]


@pytest.mark.parametrize(
    ("table", "settings", "problem"),
    [
        (None, {}, "there is no such table; create it, or write create=True"),
        ("v bigint", {}, "has no column 'n'; its columns are v; add it"),
        ("n integer", {}, "column 'n' of .* is integer, which does not hold every bigint; change the column's type"),
        ("n text", {}, "column 'n' of .* is text, which does not hold every bigint"),
        ("n numeric(18,0)", {}, r"column 'n' of .* is numeric\(18,0\), which does not hold every bigint"),
        ("n bigint generated always as (1) stored", {}, "column 'n' of .* is generated"),
        ("n bigint, v int not null", {}, "column 'v' of .* must have a value, and the stream has no such column"),
        ("n bigint", {"mode": "upsert", "key": "n"}, r"it has no unique index on \(n\).*ADD PRIMARY KEY \(n\)"),
        ("n bigint primary key", {"mode": "upsert", "key": "m"}, "there is no field 'm'; the fields are n"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_at_the_start(
    fresh: PostgresServer, made: Callable[..., Published], table: str | None, settings: dict[str, Any], problem: str
) -> None:
    if table is not None:
        fresh.run(f"create table numbers ({table})")
    with pytest.raises(hw.HeadwaterError, match=f"'out'.*{problem}"):
        made("numbers", **settings).open()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("decimal(5,2)", "numeric(5,1)"),
        ("decimal(5,2)", "numeric(4,2)"),
        ("timestamp", "timestamp"),
        ("timestamp", "timestamptz(3)"),
        ("double", "real"),
        ("string", "integer"),
        ("string", "bytea"),
        ("struct<x:int>", "text"),
        ("array<int>", "text[]"),
        ("array<array<int>>", "integer[]"),
    ],
)
def test_types_that_would_change_a_value_are_refused(
    fresh: PostgresServer, made: Callable[..., Published], ours: str, theirs: str
) -> None:
    fresh.run(f"create table numbers (n {theirs})")
    with pytest.raises(hw.SchemaError, match=r"column 'n' of .* does not hold every"):
        made("numbers", f"n {ours}").open()


def test_a_row_that_the_table_refuses_is_told_and_nothing_of_its_epoch_is_written(
    fresh: PostgresServer, made: Callable[..., Published]
) -> None:
    fresh.run("create table numbers (n bigint check (n < 3))")
    out = made("numbers").open()
    with pytest.raises(
        hw.PublishError, match=r"epoch 0: .*violates check constraint .*COPY numbers, line 3.*nothing is lost"
    ):
        out.publish(0, [(1,), (2,), (3,)])
    assert numbers(fresh) == []
    fresh.run("alter table numbers drop constraint numbers_n_check")
    out.publish(0, [(1,), (2,), (3,)])
    assert numbers(fresh) == [1, 2, 3]


def test_a_staged_file_that_is_gone_is_told(
    fresh: PostgresServer, made: Callable[..., Published], tmp_path: Path
) -> None:
    out = made("numbers", create=True).open()
    with pytest.raises(hw.PublishError, match=r"the staged file .*gone.arrow is neither there nor published"):
        out.sink.publish(0, [Staged("out", str(tmp_path / "gone.arrow"), "gone.arrow", 1, 1)])


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"connection": "host=h =x:hunter2"}, "needs a connection; got 'what cannot be read'"),
        ({"table": "app..users"}, "needs a table's name; got 'app..users'"),
        ({"mode": "replace"}, "writes by append or upsert; got 'replace'"),
        ({"mode": "upsert"}, "needs a key to upsert by; got None"),
        ({"key": "id"}, "has no use for a key when it appends; got 'id'"),
        ({"retry": 3}, "needs a retry; got 3"),
    ],
)
def test_bad_arguments_are_refused_when_the_graph_is_built(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(hw.GraphError, match=problem) as refused:
        hw.connectors.postgres(**{"connection": "host=h", "table": "t", **settings})
    assert "hunter2" not in str(refused.value)


def test_secrets_are_neither_shown_nor_sent_to_tasks(postgres: PostgresServer) -> None:
    sink = hw.connectors.postgres(postgres.conninfo, "numbers")
    env = hw.Environment("secrets", engine="local")
    env.from_rows([], "n long").sink(sink)
    shown = [repr(sink), sink.describe(), env.describe(), env.explain(), str(env.guarantees()), *map(repr, env.graph)]
    assert not [text for text in shown if postgres.password in text]
    assert sink.describe() == f"PostgreSQL table numbers at 127.0.0.1:{postgres.port}/postgres, by append"
    assert postgres.password.encode() not in pickle.dumps(sink)


def test_connections_are_closed_at_the_end_of_a_job(fresh: PostgresServer) -> None:
    count = "select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"
    env = hw.Environment("closed", engine="local")
    env.from_rows([(1,)], "n long").sink(hw.connectors.postgres(fresh.conninfo, "numbers", create=True))
    env.run()
    until(lambda: rows_of(fresh, count) == [(0,)])
