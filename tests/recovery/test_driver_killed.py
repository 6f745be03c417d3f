"""The driver and everything it started, killed at each step of the epoch protocol and at random moments."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import totals_job

import headwater as hw

pytestmark = [pytest.mark.recovery, pytest.mark.spark, pytest.mark.timeout(1500)]

JOB = Path(totals_job.__file__)
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
    _run(folder, log)
    files = totals_job.published(folder)
    rows = [row for name, file in files.items() if name.startswith("totals-out") for row in file]
    assert sum(row["n"] > 0 for row in rows) == totals_job.ROWS
    return files


def test_killed_after_each_step_of_an_epoch(log: Path, expected: Files, tmp_path: Path) -> None:
    """One job, killed once after every step, each in a later epoch, then left to finish."""
    for epoch, step in enumerate(hw.EpochStep):
        _run(tmp_path, log, step.name, str(epoch))
        seen = totals_job.published(tmp_path)
        assert seen == {name: rows for name, rows in expected.items() if name in seen}, f"after {step.name}"
        assert all(_epoch_of(name) <= epoch for name in seen), f"after {step.name}"
    _run(tmp_path, log)
    assert totals_job.published(tmp_path) == expected
    _run(tmp_path, log)
    assert totals_job.published(tmp_path) == expected, "a finished job changes nothing"


def test_killed_at_random_moments(log: Path, expected: Files, tmp_path: Path) -> None:
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
    _run(tmp_path, log)
    assert totals_job.published(tmp_path) == expected


def _run(folder: Path, log: Path, *kill_at: str) -> None:
    process = _start(folder, log, *kill_at)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == (-signal.SIGKILL if kill_at else 0), output[-3000:]


def _start(folder: Path, log: Path, *kill_at: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(JOB), str(folder), str(log), *kill_at]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True, cwd=folder
    )


def _epoch_of(name: str) -> int:
    return int(name.split("-")[2])
