"""A driver killed after a database has committed an epoch, and before the job knows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
import tables_job
from tests.parts.postgres import PostgresServer

pytestmark = [pytest.mark.recovery, pytest.mark.spark, pytest.mark.timeout(600)]


def test_killed_between_the_commit_of_the_database_and_its_acknowledgement(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    tables_job.write_events(log)
    run(tmp_path, log, postgres, "PUBLISHING", "1")  # one of the two tables has the epoch
    assert len(amounts(postgres)) == 2 * tables_job.ROWS_PER_EPOCH
    run(tmp_path, log, postgres, "PUBLISHED", "3")
    run(tmp_path, log, postgres)
    assert amounts(postgres) == list(range(tables_job.ROWS))
    assert dict(query(postgres, 'select "user", total from totals')) == tables_job.totals()
    run(tmp_path, log, postgres)
    assert amounts(postgres) == list(range(tables_job.ROWS)), "a finished job changes nothing"


def run(folder: Path, log: Path, server: PostgresServer, *kill_at: str) -> None:
    done = subprocess.run(
        [sys.executable, tables_job.__file__, str(folder), str(log), *kill_at],
        env={**os.environ, "DATABASE": server.conninfo},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        cwd=folder,
        timeout=250,
        check=False,
    )
    assert done.returncode == (-signal.SIGKILL if kill_at else 0), done.stdout[-3000:]
    assert server.password not in done.stdout


def amounts(server: PostgresServer) -> list[int]:
    return [amount for (amount,) in query(server, "select amount from events order by amount")]


def query(server: PostgresServer, text: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        return connection.execute(text.encode()).fetchall()
