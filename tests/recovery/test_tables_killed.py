"""A driver killed after a database has committed an epoch, and before the job knows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import tables_job
from crash import Crash
from tests.parts.postgres import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.recovery, pytest.mark.spark, pytest.mark.timeout(600)]


def test_killed_between_the_commit_of_the_database_and_its_acknowledgement(
    postgres: PostgresServer, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed when one of the two tables has the epoch; crashed when both have it; then left to finish, twice."""
    log = tmp_path / "log"
    tables_job.write_events(log)
    run_and_kill(tmp_path, log, postgres)
    assert len(amounts(postgres)) == 2 * tables_job.ROWS_PER_EPOCH
    monkeypatch.setenv("DATABASE", postgres.conninfo)
    crash = Crash("PUBLISHED", 3)
    with crash.is_seen():
        tables_job.build(tmp_path, log, spark=spark).run(bounded=True, on_step=crash)
    assert len(amounts(postgres)) == 4 * tables_job.ROWS_PER_EPOCH
    for _ in range(2):  # the second time it has nothing to do, and changes nothing
        tables_job.build(tmp_path, log, spark=spark).run(bounded=True)
        assert amounts(postgres) == list(range(tables_job.ROWS))
        assert dict(query(postgres, 'select "user", total from totals')) == tables_job.totals()


def run_and_kill(folder: Path, log: Path, server: PostgresServer) -> None:
    done = subprocess.run(
        [sys.executable, tables_job.__file__, str(folder), str(log), "PUBLISHING", "1"],
        env={**os.environ, "DATABASE": server.conninfo},
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


def amounts(server: PostgresServer) -> list[int]:
    return [amount for (amount,) in query(server, "select amount from events order by amount")]


def query(server: PostgresServer, text: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        return connection.execute(text.encode()).fetchall()
