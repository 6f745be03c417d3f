"""Tables by their options: what is read and written through each connector that needs no server."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.connectors.contract import Source
from headwater.data.schema import Schema
from headwater.errors import HeadwaterError
from headwater.sql.connectors.newest import NewestSource


@pytest.fixture
def env() -> hw.Environment:
    return hw.Environment("sql", engine="local")


def test_log_is_read_with_its_watermark(env: hw.Environment, tmp_path: Path) -> None:
    topic = hw.EventLog(tmp_path).create_topic("clicks", "user string, ts timestamp_ntz", partitions=1)
    topic.append([("ann", dt.datetime.fromisoformat(f"2024-01-01T00:00:{second:02d}")) for second in (1, 4, 11, 2)])
    env.run_sql(
        f"""
        CREATE TABLE clicks (`user` STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
          'connector' = 'log', 'path' = '{tmp_path}', 'topic' = 'clicks', 'scan.startup.mode' = 'earliest-offset');
        CREATE TABLE per_window (n BIGINT) WITH ('connector' = 'memory');
        INSERT INTO per_window SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '10' SECOND))
          GROUP BY window_start, window_end;
    """,
        bounded=True,
    )
    assert [row.n for row in env.table_rows("per_window")] == [3, 1]


def test_files_are_written_and_read(env: hw.Environment, tmp_path: Path) -> None:
    table = f"(k STRING, n INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'json')"
    env.run_sql(f"CREATE TABLE o {table}; INSERT INTO o VALUES ('a', 1), ('b''c', 2)")
    other = hw.Environment("other", engine="local")
    other.execute_sql(
        f"CREATE TABLE i (k STRING, n INT, path STRING METADATA VIRTUAL) WITH ('connector' = 'files', "
        f"'path' = '{tmp_path}/out', 'format' = 'json', 'source.settle' = '0 s', 'source.path.pattern' = '*.jsonl')"
    )
    rows = other.sql("SELECT * FROM i").collect()
    assert [(row.k, row.n) for row in rows] == [("a", 1), ("b'c", 2)]
    assert all(row.path.endswith(".jsonl") for row in rows)


def test_files_are_partitioned(env: hw.Environment, tmp_path: Path) -> None:
    env.run_sql(f"""
        CREATE TABLE o (k STRING, n INT) PARTITIONED BY (k)
          WITH ('connector' = 'files', 'path' = '{tmp_path}/out', 'format' = 'csv');
        INSERT INTO o VALUES ('a', 1), ('b', 2);
    """)
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if "=" in path.name) == ["k=a", "k=b"]


GENERATED = """CREATE TABLE g (i BIGINT, n INT, d DOUBLE, s STRING, b BOOLEAN, t TIMESTAMP(3)) WITH (
  'connector' = 'datagen', 'number-of-rows' = '{rows}', 'fields.i.kind' = 'sequence', 'fields.i.start' = '5',
  'fields.n.min' = '-3', 'fields.n.max' = '3', 'fields.s.length' = '20', 'fields.t.start' = '2024-01-01 00:00:00')"""


def test_a_generator_gives_the_same_rows_each_time(env: hw.Environment) -> None:
    env.execute_sql(GENERATED.format(rows=1000))
    rows = env.sql("SELECT * FROM g").collect()
    assert rows == env.sql("SELECT * FROM g").collect()
    assert [row.i for row in rows] == list(range(5, 1005))
    assert {row.n for row in rows} == set(range(-3, 4))
    assert {len(row.s) for row in rows} == {20}
    assert len({row.s for row in rows}) == 1000
    assert {row.b for row in rows} == {True, False}
    assert [row.t.second for row in rows[:3]] == [0, 1, 2]


def test_a_generator_ends_with_its_sequence(env: hw.Environment) -> None:
    env.execute_sql(
        "CREATE TABLE g (i INT) WITH ('connector' = 'generator', 'splits' = '2', 'fields.i.kind' = 'sequence', "
        "'fields.i.start' = '1', 'fields.i.end' = '4')"
    )
    assert sorted(row.i for row in env.sql("SELECT i FROM g").collect()) == [1, 2, 3, 4]


def changes(records: list[dict[str, Any]], folder: Path) -> str:
    """A table of Debezium's records."""
    folder.mkdir()
    (folder / "changes.json").write_text("".join(json.dumps(record) + "\n" for record in records))
    return f"('connector' = 'files', 'path' = '{folder}', 'format' = 'debezium-json', 'source.settle' = '0 s')"


CHANGES = [
    {"before": None, "after": {"id": 1, "v": "a"}, "op": "c"},
    {"before": None, "after": {"id": 2, "v": "b"}, "op": "r"},
    {"before": {"id": 1, "v": "a"}, "after": {"id": 1, "v": "c"}, "op": "u"},
    {"before": {"id": 2, "v": "b"}, "after": None, "op": "d"},
]


@pytest.mark.parametrize("key", ["", ", PRIMARY KEY (id) NOT ENFORCED"])
def test_changes_of_debezium_are_taken_back(env: hw.Environment, tmp_path: Path, key: str) -> None:
    options = changes(CHANGES, tmp_path / "in")
    env.execute_sql(f"CREATE TABLE t (id INT, v STRING{key}) WITH {options}")
    rows = env.sql("SELECT v, COUNT(*) AS n FROM t GROUP BY v").collect()
    assert [(row.v, row.n) for row in final(rows)] == [("c", 1)]


def test_a_change_of_debezium_is_two_rows(env: hw.Environment, tmp_path: Path) -> None:
    options = changes(CHANGES, tmp_path / "in")
    env.execute_sql(f"CREATE TABLE t (id INT, v STRING) WITH {options}")
    rows = env.sql("SELECT * FROM t").collect()
    assert [(row.id, row.v, row.row_kind) for row in rows] == [
        (1, "a", "+I"),
        (2, "b", "+I"),
        (1, "a", "-U"),
        (1, "c", "+U"),
        (2, "b", "-D"),
    ]


def test_debezium_without_the_row_before_asks_for_the_key(env: hw.Environment, tmp_path: Path) -> None:
    records = [{"before": None, "after": {"id": 1, "v": "c"}, "op": "u"}]
    options = changes(records, tmp_path / "in")
    env.execute_sql(f"CREATE TABLE t (id INT, v STRING) WITH {options}")
    with pytest.raises(HeadwaterError, match="'before' is null"):
        env.sql("SELECT * FROM t").collect()
    env.execute_sql(f"CREATE TABLE k (id INT, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH {options}")
    assert [row.v for row in final(env.sql("SELECT * FROM k").collect())] == ["c"]


def test_debezium_with_another_op_is_refused(env: hw.Environment, tmp_path: Path) -> None:
    options = changes([{"before": None, "after": {"id": 1}, "op": "x"}], tmp_path / "in")
    env.execute_sql(f"CREATE TABLE t (id INT) WITH {options}")
    with pytest.raises(HeadwaterError, match="op is 'x'"):
        env.sql("SELECT * FROM t").collect()


class Records(Source):
    """Records as they come from a topic."""

    def __init__(self, rows: list[tuple[Any, ...]], schema: pa.Schema) -> None:
        self._batch = pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)

    def describe(self) -> str:
        return "records"

    def check(self, schema: Schema) -> None:
        assert schema.arrow == self._batch.schema

    def earliest(self) -> dict[str, int]:
        return {"0": 0}

    def latest(self, start: dict[str, int], elapsed_ms: int) -> dict[str, int]:
        return {"0": len(self._batch)}

    def read(self, split: str, start: int, end: int) -> Any:
        yield self._batch.slice(start, end - start)


def newest(fields: str, key: tuple[str, ...], rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    schema = Schema.of(fields).arrow
    source = NewestSource(Records(rows, schema.append(pa.field("__key", pa.binary()))), key, ())
    source.check(Schema.of(f"{fields}, row_kind string"))
    (batch,) = source.read("0", 0, len(rows))
    return [tuple(row.values()) for row in batch.to_pylist()]


def test_a_record_without_value_takes_the_row_of_its_key_away() -> None:
    rows = [(1, "a", b"1"), (None, None, b"1"), (2, None, b"2")]
    assert newest("id long, v string", ("id",), rows) == [(1, "a", "+U"), (1, None, "-D"), (2, None, "+U")]


def test_a_key_of_several_columns_is_an_object() -> None:
    rows = [(None, None, None, b'{"a": 1, "b": "x"}')]
    assert newest("a long, b string, v string", ("a", "b"), rows) == [(1, "x", None, "-D")]


def test_a_key_that_is_text_may_hold_anything() -> None:
    assert newest("k string, v string", ("k",), [(None, None, b'x"}, {')]) == [('x"}, {', None, "-D")]


def test_a_key_that_cannot_be_read_is_told() -> None:
    with pytest.raises(HeadwaterError, match="the key of a record without value cannot be read"):
        newest("id long, v string", ("id",), [(None, None, b"one")])


def final(rows: list[Any]) -> list[Any]:
    """The rows that are there after all changes."""
    there: list[Any] = []
    for row in rows:
        plain = row._replace(row_kind="")
        if row.row_kind in ("+I", "+U"):
            there.append(plain)
        else:
            there.remove(plain)
    return there
