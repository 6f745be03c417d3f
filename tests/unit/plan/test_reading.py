"""Sources are asked for what a job uses of their rows."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw

TABLE = """
CREATE TABLE events (
    kind INT, at TIMESTAMP(3), name STRING,
    bid ROW<price BIGINT, bidder BIGINT, made TIMESTAMP(3)>,
    own ROW<`it's` BIGINT, `a"b` BIGINT>,
    made AS CASE WHEN kind = 0 THEN at ELSE bid.made END,
    file STRING METADATA FROM 'path' VIRTUAL,
    WATERMARK FOR made AS made - INTERVAL '1' SECOND
) WITH ('connector' = 'files', 'path' = '{path}', 'format' = '{format}', 'source.settle' = '0 s')
"""
TIMES = "kind int, at timestamp_ntz, "
FILE = "file string"


def environment(path: Path, form: str = "json") -> hw.Environment:
    env = hw.Environment("reading", engine="local", parallelism=1)
    env.execute_sql(TABLE.replace("{path}", str(path)).replace("{format}", form))
    return env


def read(env: hw.Environment, *queries: str) -> str:
    for at, query in enumerate(queries):
        env.sql(query).sink(hw.connectors.blackhole(), name=f"sink{at}")
    (source,) = env.plan().sources()
    return source.schema.ddl()


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT file FROM events", f"{TIMES}bid struct<made:timestamp_ntz>, {FILE}"),
        ("SELECT file, bid.price + 1 FROM events", f"{TIMES}bid struct<price:bigint,made:timestamp_ntz>, {FILE}"),
        (
            "SELECT name, file FROM events WHERE bid.bidder > 5",
            f"{TIMES}name string, bid struct<bidder:bigint,made:timestamp_ntz>, {FILE}",
        ),
        (
            "SELECT file, own.`it's` AS x, own.`a\"b` AS y FROM events",
            f"{TIMES}bid struct<made:timestamp_ntz>, own struct<`it's`:bigint,`a\"b`:bigint>, {FILE}",
        ),
        (
            "SELECT file, bid FROM events",
            f"{TIMES}bid struct<price:bigint,bidder:bigint,made:timestamp_ntz>, {FILE}",
        ),
        (
            "SELECT file, bid IS NULL AS n FROM events",
            f"{TIMES}bid struct<price:bigint,bidder:bigint,made:timestamp_ntz>, {FILE}",
        ),
        (
            "SELECT x.p, file FROM (SELECT bid.price AS p, bid.bidder AS b, name, file FROM events) AS x",
            f"{TIMES}bid struct<price:bigint,made:timestamp_ntz>, {FILE}",
        ),
    ],
)
def test_a_source_reads_the_columns_and_fields_that_a_query_uses(tmp_path: Path, query: str, columns: str) -> None:
    assert read(environment(tmp_path), query) == columns


def test_a_source_reads_what_any_of_several_queries_uses(tmp_path: Path) -> None:
    found = read(environment(tmp_path), "SELECT file, bid.price FROM events", "SELECT name, bid.bidder FROM events")
    assert found == f"{TIMES}name string, bid struct<price:bigint,bidder:bigint,made:timestamp_ntz>, {FILE}"


def test_all_is_read_where_not_all_say_what_they_use_or_the_source_needs_it(tmp_path: Path) -> None:
    everything = environment(tmp_path)
    everything.sql("SELECT * FROM events").to_stream().map(lambda row: row, "n int")
    assert "bid struct<price:bigint,bidder:bigint,made:timestamp_ntz>" in read(everything, "SELECT file FROM events")
    assert "name string" in read(environment(tmp_path), "SELECT bid.price FROM events")  # and not the file's name


def test_rows_of_parquet_are_as_if_all_had_been_read(tmp_path: Path) -> None:
    at = dt.datetime(2026, 1, 1)  # noqa: DTZ001  TIMESTAMP has no zone
    bids = [{"price": 7, "bidder": 1, "made": at}, None]
    pq.write_table(
        pa.table({"kind": [1, 0], "at": [None, at], "name": ["a", "b"], "bid": bids}), tmp_path / "a.parquet"
    )
    env = environment(tmp_path, "parquet")
    assert [tuple(row) for row in env.sql("SELECT bid.price AS price, file FROM events").collect()] == [
        (7, "a.parquet"),
        (None, "a.parquet"),
    ]
    assert (
        read(env, "SELECT bid.price, file FROM events") == f"{TIMES}bid struct<price:bigint,made:timestamp_ntz>, {FILE}"
    )


def test_rows_are_as_if_all_had_been_read_and_nonsense_that_nobody_reads_harms_nobody(tmp_path: Path) -> None:
    lines = [
        '{"kind": 0, "at": "2026-01-01 00:00:00", "name": 5, "bid": null}',
        '{"kind": 1, "name": [], "bid": {"price": 7, "bidder": "?", "made": "2026-01-01 00:00:01"}}',
    ]
    (tmp_path / "a.json").write_text("\n".join(lines))
    found = environment(tmp_path).sql("SELECT kind, bid.price AS price, file FROM events").collect()
    assert [tuple(row) for row in found] == [(0, None, "a.json"), (1, 7, "a.json")]
