"""A driver between Kafka and PostgreSQL, killed when one system has committed an epoch, and before the job knows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from tests.connectors import ends_job
from tests.parts.kafka import KafkaBroker
from tests.parts.postgres import PostgresServer
from tests.parts.topics import messages
from tests.recovery.crash import Crash

import headwater as hw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.recovery, pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def database(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> PostgresServer:
    """The server, where the job looks for it."""
    monkeypatch.setenv("DATABASE", postgres.conninfo)
    return postgres


def test_every_event_is_once_in_each_output_whichever_has_it_when_the_driver_dies(
    kafka: KafkaBroker, topic: str, database: PostgresServer, spark: SparkSession, tmp_path: Path
) -> None:
    """Killed when one of the three outputs has the epoch; crashed when all have it; then left to finish, twice."""
    kafka.create_topic(f"{topic}-out", 1)
    write_events(kafka, topic)
    run_and_kill(tmp_path, kafka, topic, database)
    assert len(sent(kafka, topic)) == 2 * ends_job.ROWS_PER_EPOCH
    assert len(kept(database)) == 1 * ends_job.ROWS_PER_EPOCH
    crash = Crash("PUBLISHED", 2)
    with crash.is_seen():
        ends_job.build(tmp_path, kafka.servers, topic, spark=spark).run(bounded=True, on_step=crash)
    assert len(sent(kafka, topic)) == len(kept(database)) == 3 * ends_job.ROWS_PER_EPOCH
    for _ in range(2):  # the second time it has nothing to do, and changes nothing
        ends_job.build(tmp_path, kafka.servers, topic, spark=spark).run(bounded=True)
        assert sent(kafka, topic) == kept(database) == list(range(ends_job.ROWS))
        assert dict(query(database, 'select "user", total from totals')) == ends_job.totals()


def write_events(kafka: KafkaBroker, topic: str) -> None:
    env = hw.Environment("given", engine="local")
    env.from_rows(ends_job.events(), ends_job.SCHEMA).sink(hw.connectors.kafka_sink(topic, kafka.servers))
    env.run()


def run_and_kill(folder: Path, kafka: KafkaBroker, topic: str, server: PostgresServer) -> None:
    path = os.pathsep.join([str(Path(hw.__file__).parents[1]), str(Path.cwd())])
    done = subprocess.run(
        [sys.executable, ends_job.__file__, str(folder), kafka.servers, topic],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        cwd=folder,
        timeout=250,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stdout[-3000:]
    assert server.password not in done.stdout


def sent(kafka: KafkaBroker, topic: str) -> list[int]:
    return [json.loads(message.value())["amount"] for message in messages(kafka.servers, f"{topic}-out")]


def kept(server: PostgresServer) -> list[int]:
    return [amount for (amount,) in query(server, "select amount from events order by amount")]


def query(server: PostgresServer, text: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        return connection.execute(text.encode()).fetchall()
