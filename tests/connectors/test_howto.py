"""The how-to "From Kafka to PostgreSQL", run as it is written, against a broker and a server."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from confluent_kafka import Producer
from tests.parts.topics import messages
from typer.testing import CliRunner

from headwater.cli.app import app

if TYPE_CHECKING:
    from tests.parts.kafka import KafkaBroker
    from tests.parts.postgres import PostgresServer

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "kafka-to-postgres.md"


def test_orders_become_totals_in_a_table_and_minutes_in_a_topic(
    kafka: KafkaBroker, postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (program,) = re.findall(r"^```python[^\n]*\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "job.py").write_text(program)
    monkeypatch.setenv("SHOP_KAFKA", kafka.servers)
    monkeypatch.setenv("SHOP_DB", postgres.conninfo)
    for topic in ("orders", "minutes"):
        kafka.create_topic(topic)
    try:
        producer = Producer({"bootstrap.servers": kafka.servers})
        for number in range(6):
            order = {"id": number, "user": "ann" if number % 2 else "bob", "amount": 1.5 * number}
            producer.produce("orders", json.dumps({**order, "at": f"2026-01-01T00:00:{number * 10:02}Z"}))
        producer.produce("orders", b"no order")
        assert producer.flush(20) == 0
        done = CliRunner().invoke(app, ["run", str(tmp_path / "job.py"), "--engine", "local", "--bounded"])
        assert done.exit_code == 0, done.output
        with psycopg.connect(postgres.conninfo) as database:
            totals = database.execute('SELECT "user", spent, orders FROM totals ORDER BY 1').fetchall()
            bad = database.execute("SELECT count(*) FROM bad_orders").fetchone()
            database.execute("DROP TABLE totals, bad_orders")
        assert totals == [("ann", 13.5, 3), ("bob", 9.0, 3)]
        assert bad == (1,)
        minutes = [json.loads(message.value()) for message in messages(kafka.servers, "minutes")]
        assert sum(one["spent"] for one in minutes) == 22.5
    finally:
        for topic in ("orders", "minutes"):
            kafka.delete_topic(topic)
