"""The driver and everything it started, killed around the commit of an epoch; and a driver that crashes at every step."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

import pytest
import totals_job
from crash import Crash

import headwater as hw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.recovery, pytest.mark.spark, pytest.mark.timeout(1500)]

JOB = Path(totals_job.__file__)
KILLS = [("MANIFEST", 1), ("COMMITTED", 2), ("PUBLISHING", 3)]
"""Before the commit, after it, and when one of the two outputs has the epoch."""
Files = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    totals_job.write_events(folder)
    return folder


@pytest.fixture(scope="module")
def expected(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Files:
    """What the uninterrupted run publishes."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    totals_job.build(folder, log=log, engine="local").run(bounded=True)
    files = totals_job.published(folder)
    rows = [row for name, file in files.items() if name.startswith("totals-out") for row in file]
    assert sum(row["n"] > 0 for row in rows) == totals_job.ROWS
    return files


def test_killed_before_the_commit_after_it_and_while_it_is_published(
    log: Path, expected: Files, spark: SparkSession, tmp_path: Path
) -> None:
    killed: list[int] = []
    for step, epoch in KILLS:
        process = _start(tmp_path, log, step, str(epoch))
        output, _ = process.communicate(timeout=300)
        assert process.returncode == -signal.SIGKILL, output[-3000:]
        _check_after(step, epoch, expected, tmp_path)
        killed.append(process.pid)
        left = [one for one in killed if any(Path(gettempdir()).glob(f"headwater-spark-*-{one}-*"))]
        assert left in ([], [process.pid]), "what Spark has on the local disk is removed by the next process"
    totals_job.build(tmp_path, log=log, spark=spark).run(bounded=True)
    assert totals_job.published(tmp_path) == expected


@pytest.mark.long  # tests/spark/test_available_now.py crashes such runs before the commit and after it
def test_runs_over_what_there_is_crashed_in_the_middle_with_rows_that_came_meanwhile(
    expected: Files, spark: SparkSession, tmp_path: Path
) -> None:
    """What a kill leaves behind is as above: here it counts how far the next run goes."""
    log, half = tmp_path / "log", totals_job.ROWS // 2
    for first, (step, epoch) in ((0, ("MANIFEST", 1)), (half, ("COMMITTED", 5))):
        totals_job.write_events(log, first, first + half)
        crash = Crash(step, epoch)
        with crash.is_seen():
            totals_job.build(tmp_path, log=log, spark=spark).run(available_now=True, on_step=crash)
        _check_after(step, epoch, expected, tmp_path)
    for _ in range(2):  # the second time there is nothing new
        status = totals_job.build(tmp_path, log=log, spark=spark).run(available_now=True).status()
        [read] = status.positions.values()
        assert (status.state, sum(read.values())) == ("stopped", totals_job.ROWS)
        seen = _rows(totals_job.published(tmp_path))
        assert Counter(row for row in seen if _is_counted(row)) == Counter(filter(_is_counted, _rows(expected)))
    totals_job.build(tmp_path, log=log, spark=spark).run(bounded=True)
    assert Counter(_rows(totals_job.published(tmp_path))) == Counter(_rows(expected))


def test_crashed_at_each_step_of_an_epoch(log: Path, expected: Files, spark: SparkSession, tmp_path: Path) -> None:
    """One job that crashes once after every step, each in a later epoch, then is left to finish."""
    for epoch, step in enumerate(hw.EpochStep):
        crash = Crash(step.name, epoch)
        with crash.is_seen():
            totals_job.build(tmp_path, log=log, spark=spark).run(bounded=True, on_step=crash)
        _check_after(step.name, epoch, expected, tmp_path)
    for _ in range(2):  # the second time it has nothing to do, and changes nothing
        totals_job.build(tmp_path, log=log, spark=spark).run(bounded=True)
        assert totals_job.published(tmp_path) == expected


@pytest.mark.long
def test_killed_at_random_moments(log: Path, expected: Files, spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(7)
    for _ in range(3):
        process = _start(tmp_path, log)
        assert process.stdout is not None
        for _ in range(chance.randrange(1, 12)):
            process.stdout.readline()
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        seen = totals_job.published(tmp_path)
        assert seen == {name: rows for name, rows in expected.items() if name in seen}
    totals_job.build(tmp_path, log=log, spark=spark).run(bounded=True)
    assert totals_job.published(tmp_path) == expected


def _check_after(step: str, epoch: int, expected: Files, folder: Path) -> None:
    seen = totals_job.published(folder)
    assert seen == {name: rows for name, rows in expected.items() if name in seen}, f"after {step}"
    assert all(_epoch_of(name) <= epoch for name in seen), f"after {step}"


def _rows(files: Files) -> list[tuple[Any, ...]]:
    """Each row, with the output that it is in."""
    return [(name.split("-")[0], *row.values()) for name, rows in files.items() for row in rows]


def _is_counted(row: tuple[Any, ...]) -> bool:
    """Whether a row came of one that was read, and not of a timer, of which the last fire when the input ends."""
    return row[0] == "initials" or row[2] > 0


def _start(folder: Path, log: Path, *kill_at: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(JOB), str(folder), str(log), *kill_at]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, cwd=folder
    )


def _epoch_of(name: str) -> int:
    return int(name.split("-")[2])
