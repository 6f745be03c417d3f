"""Tables of SQL over real servers: Kafka's topics in and out, changes of Debezium, and PostgreSQL by key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from confluent_kafka import Producer
from tests.parts.topics import messages

import headwater as hw

if TYPE_CHECKING:
    from tests.parts.kafka import KafkaBroker
    from tests.parts.postgres import PostgresServer

ROWS = [("ann", 1), ("bob", 2), ("ann", 3)]


def send(kafka: KafkaBroker, topic: str, *records: tuple[str | None, dict[str, Any] | None]) -> None:
    producer = Producer({"bootstrap.servers": kafka.servers})
    for key, value in records:
        producer.produce(topic, None if value is None else json.dumps(value), key)
    assert producer.flush(30) == 0


def test_kafka_is_read_with_metadata_and_written_with_a_key(kafka: KafkaBroker, topic: str) -> None:
    send(kafka, topic, ("x", {"who": "ann", "n": 1}), ("y", {"who": "bob", "n": 2}))
    out = f"{topic}-out"
    kafka.create_topic(out)
    env = hw.Environment("sql", engine="local")
    options = f"'connector' = 'kafka', 'properties.bootstrap.servers' = '{kafka.servers}', 'format' = 'json'"
    env.run_sql(
        f"""
        CREATE TABLE i (who STRING, n INT, k STRING METADATA FROM 'key', `offset` BIGINT METADATA,
          ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', WATERMARK FOR ts AS ts) WITH ({options}, 'topic' = '{topic}');
        CREATE TABLE o (who STRING, k STRING, `offset` BIGINT) WITH ({options}, 'topic' = '{out}', 'key.fields' = 'who');
        INSERT INTO o SELECT who, k, `offset` FROM i WHERE ts > TIMESTAMP '2020-01-01 00:00:00';
        """,
        bounded=True,
    )
    assert [(m.key(), json.loads(m.value())) for m in messages(kafka.servers, out)] == [
        (b"ann", {"who": "ann", "k": "x", "offset": 0}),
        (b"bob", {"who": "bob", "k": "y", "offset": 1}),
    ]


def test_what_is_upserted_into_kafka_is_read_as_a_table(kafka: KafkaBroker, topic: str) -> None:
    totals = f"""CREATE TABLE totals (who STRING, total INT, PRIMARY KEY (who) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{kafka.servers}',
      'value.format' = 'json')"""
    env = hw.Environment("write", engine="local", max_rows_per_epoch=1)
    env.create_view("sales", env.from_rows(ROWS, "who string, n int"))
    env.run_sql(f"{totals}; INSERT INTO totals SELECT who, SUM(n) FROM sales GROUP BY who")
    send(kafka, topic, ("bob", None))
    env = hw.Environment("read", engine="local")
    env.execute_sql(totals)
    rows = env.sql("SELECT COUNT(*) AS n, SUM(total) AS total FROM totals").collect()
    assert [(row.n, row.total) for row in rows][-1] == (1, 4)


def test_changes_of_a_database_are_read_from_kafka(kafka: KafkaBroker, topic: str) -> None:
    ann, bob = {"id": 1, "name": "ann"}, {"id": 2, "name": "bob"}
    send(
        kafka,
        topic,
        ("1", {"before": None, "after": ann, "op": "c"}),
        ("2", {"before": None, "after": bob, "op": "r"}),
        ("1", {"before": ann, "after": {"id": 1, "name": "anna"}, "op": "u"}),
        ("2", {"before": bob, "after": None, "op": "d"}),
        ("2", None),  # as Debezium sends for compaction
    )
    env = hw.Environment("sql", engine="local")
    env.execute_sql(f"""CREATE TABLE users (id INT, name STRING, k STRING METADATA FROM 'key') WITH (
      'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{kafka.servers}',
      'format' = 'debezium-json')""")
    rows = env.sql("SELECT name, k FROM users").collect()
    assert [(row.row_kind, row.name, row.k) for row in rows] == [
        ("+I", "ann", "1"),
        ("+I", "bob", "2"),
        ("-U", "ann", "1"),
        ("+U", "anna", "1"),
        ("-D", "bob", "2"),
    ]


def test_a_primary_key_makes_postgres_upsert_whatever_names_there_are(postgres: PostgresServer) -> None:
    table, column = "tot'als; drop table x", 'wh"o; --'
    env = hw.Environment("sql", engine="local", max_rows_per_epoch=1)
    env.create_view("sales", env.from_rows([*ROWS, ("o'x\"; \\", 5)], "who string, n int"))
    try:
        env.run_sql(f"""
            CREATE TABLE totals (`{column}` STRING, total BIGINT, PRIMARY KEY (`{column}`) NOT ENFORCED) WITH (
              'connector' = 'postgres', 'url' = '{postgres.conninfo.replace("'", "''")}',
              'table-name' = '{table.replace("'", "''")}', 'create' = 'true');
            INSERT INTO totals SELECT who, SUM(n) FROM sales GROUP BY who;
        """)
        with psycopg.connect(postgres.conninfo) as connection:
            query = psycopg.sql.SQL("select * from {} order by 2").format(psycopg.sql.Identifier(table))
            assert connection.execute(query).fetchall() == [("bob", 2), ("ann", 4), ("o'x\"; \\", 5)]
    finally:
        with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
            connection.execute(psycopg.sql.SQL("drop table if exists {}").format(psycopg.sql.Identifier(table)))


@pytest.mark.parametrize(
    "cache", ["", ", 'lookup.cache' = 'FULL'", ", 'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '9'"]
)
def test_rows_are_looked_up_in_postgres(postgres: PostgresServer, cache: str) -> None:
    env = hw.Environment("sql", engine="local", max_rows_per_epoch=1)
    env.create_view("sales", env.from_rows(ROWS, "who string, n int"))
    with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
        connection.execute("create table looked_up (who text, city text, least bigint)")
        try:
            connection.execute("insert into looked_up values ('ann', 'Rome', 2), ('ann', 'Oslo', 9)")
            env.execute_sql(f"""
                CREATE TABLE places (who STRING, city STRING, least BIGINT) WITH ('connector' = 'postgres',
                  'table-name' = 'looked_up', 'url' = '{postgres.conninfo.replace("'", "''")}'{cache})""")
            found = env.sql("""
                SELECT s.who, s.n, p.who, city FROM sales AS s
                  LEFT JOIN places FOR SYSTEM_TIME AS OF PROCTIME() AS p ON s.who = p.who AND n > least
            """).collect()
        finally:
            connection.execute("drop table looked_up")
    assert [tuple(row) for row in found] == [
        ("ann", 1, None, None),
        ("bob", 2, None, None),
        ("ann", 3, "ann", "Rome"),
    ]


@pytest.mark.spark
def test_a_script_runs_on_spark(spark: Any, tmp_path: Any) -> None:
    env = hw.Environment("sql", spark=spark, parallelism=2)
    env.run_sql(f"""
        CREATE TABLE clicks (n INT, ts TIMESTAMP(3), k AS MOD(n, 2), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (
          'connector' = 'generator', 'number-of-rows' = '20', 'fields.n.kind' = 'sequence', 'fields.n.start' = '0');
        CREATE TABLE per_window (k INT, n BIGINT, `end` TIMESTAMP(3)) WITH ('connector' = 'memory');
        CREATE TABLE files (n INT) WITH ('connector' = 'files', 'path' = '{tmp_path}/out', 'format' = 'json');
        INSERT INTO per_window SELECT k, COUNT(*), window_end
          FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end;
        INSERT INTO files SELECT n FROM clicks WHERE n < 3;
    """)
    assert sorted((row.k, row.n, row.end.second) for row in env.table_rows("per_window")) == [
        (0, 5, 10),
        (0, 5, 20),
        (1, 5, 10),
        (1, 5, 20),
    ]
    lines = [line for path in (tmp_path / "out").glob("*.jsonl") for line in path.read_text().splitlines()]
    assert sorted(json.loads(line)["n"] for line in lines) == [0, 1, 2]
