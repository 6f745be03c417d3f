"""A job run, watched, looked into, saved, stopped and restored from a shell.

What runs a job is a process of its own; other commands are given to this one, which starts none for each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headwater as hw
from headwater.cli.app import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.recovery, pytest.mark.timeout(600)]

COMMAND = [sys.executable, "-m", "headwater.cli"]
JOB = """
import headwater as hw

class Total(hw.KeyedProcessFunction):
    total = hw.ValueState("long", default=0)

    def process(self, order, ctx):
        self.total.set(self.total.get() + order.n)
        yield {"user": order.user, "total": self.total.get()}

def build(env):
    orders = env.source(hw.connectors.log("events", "orders"), "user string, n long", name="orders")
    totals = orders.key_by("user").process(Total(), "user string, total long").with_uid("totals")
    totals.sink(hw.connectors.files("out", format="json"))
"""
LIMIT_S = 240


def headwater(folder: Path, *arguments: object, code: int = 0) -> str:
    """What a command says that is given to this process."""
    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, chdir(folder), redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["headwater", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert ended.value.code == code, out.getvalue() + err.getvalue()
    return (out if code == 0 else err).getvalue()


def in_a_process(folder: Path, *arguments: object, code: int = 0) -> str:
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def until(folder: Path, epochs: int) -> dict[str, Any]:
    """The job's status when so many epochs are published, and it tells of them."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        if (folder / "state" / "job.json").exists():
            job = hw.control.job(folder / "state")
            if min(job.published, job.status.published) >= epochs - 1:
                found: dict[str, Any] = json.loads(headwater(folder, "status", "state", "--json"))
                return found
        time.sleep(0.1)
    raise AssertionError("the job has published nothing")


def rows(folder: Path) -> list[tuple[str, int]]:
    found = [json.loads(line) for file in (folder / "out").rglob("*.json*") for line in file.read_text().splitlines()]
    return sorted((row["user"], row["total"]) for row in found if "user" in row)


def test_a_job_is_run_watched_and_upgraded_from_a_shell(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    topic = hw.EventLog(tmp_path / "events").create_topic("orders", "user string, n long")
    topic.append([{"user": "ann", "n": 1}, {"user": "bob", "n": 2}, {"user": "ann", "n": 3}])
    run = [*COMMAND, "run", "job.py", "--job-dir", "state", "--log-level", "error"]
    with subprocess.Popen(run, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        try:
            status = until(tmp_path, 1)
            assert (status["state"], status["process"]["pid"]) == ("running", job.pid)
            assert status["steps"]["totals"]["rows_in"] == 3
            assert "job  " in in_a_process(tmp_path, "status", "state")
            assert [one["state"] for one in json.loads(headwater(tmp_path, "list", "--json"))] == ["running"]
            assert headwater(tmp_path, "state", "show", "state", "totals", "total", "--key", "ann").strip() == "4"
            query = "SELECT count(*) AS users, sum(value) AS total FROM state"
            found = json.loads(
                headwater(tmp_path, "state", "show", "state", "totals", "total", "--sql", query, "--json")
            )
            assert found["rows"] == [{"users": 2, "total": 6}]
            assert "no state 'nothing'" in headwater(tmp_path, "state", "show", "state", "totals", "nothing", code=1)
            assert "saved" in headwater(tmp_path, "savepoint", "take", "state", "saved")
            assert "is in use" in in_a_process(tmp_path, "run", "job.py", "--job-dir", "state", code=1)
            assert "last" in headwater(tmp_path, "stop", "state", "--savepoint", "last")
            out, err = job.communicate(timeout=LIMIT_S)
        finally:
            job.kill()
    assert (job.returncode, out, err) == (0, "", "")
    assert "'job' was stopped" in headwater(tmp_path, "logs", "state")
    assert list((tmp_path / "state" / "control").rglob("*.*")) == []
    assert "name its file with --file" in headwater(tmp_path, "state", "show", "state", "totals", "total", code=1)
    ended = ["state", "show", "state", "totals", "total", "--file", "job.py"]
    assert json.loads(headwater(tmp_path, *ended, "--key", "ann", "--json"))["value"] == 4
    assert "no state 'nothing'" in headwater(tmp_path, *ended[:4], "nothing", *ended[5:], code=1)
    assert "can go on" in headwater(tmp_path, "savepoint", "check", "last", "job.py")
    assert "goes on after epoch 0" in headwater(tmp_path, "checkpoints", "rewind", "state", "0", "--yes")

    topic.append([{"user": "ann", "n": 5}])
    restore = ["savepoint", "restore", "last", "job.py", "--job-dir", "again", "--engine", "local", "--bounded"]
    in_a_process(tmp_path, *restore)
    assert rows(tmp_path) == [("ann", 1), ("ann", 4), ("ann", 9), ("bob", 2)]
