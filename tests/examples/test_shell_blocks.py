"""The commands in shell blocks of the documents are run, page by page, as a reader types them one after the other.

They run in this process. A job that a page starts runs on the Spark of the tests, until the page or the test stops it:
what follows on the page is typed beside it, in "another shell". Servers are processes of their own. A block that cannot
run here says why: ```sh no-run: needs Kafka.
"""

from __future__ import annotations

import io
import json
import logging
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.parts.shell_blocks import PAGES, PROJECT, shell_blocks
from typer.main import get_command

import headwater as hw
from headwater.cli.app import app
from headwater.web import serve
from headwater.web.watched import WatchedJobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TUTORIAL = PROJECT / "docs" / "tutorial.md"
PATIENCE_S = 120
ORDERS = "user string, amount int"
PROGRAM = """
import headwater as hw

class Totals(hw.KeyedProcessFunction):
    {state} = hw.ValueState("{type}", default=0)

    def process(self, order, ctx):
        self.{state}.set(self.{state}.get() + order.amount)
        yield ctx.key, self.{state}.get()

def build(env):
    orders = env.source(hw.connectors.log("events", "orders"), "user string, amount int", name="orders")
    totals = orders.key_by("user").process(Totals(), "user string, total bigint").with_uid("totals")
    totals.sink(hw.connectors.files("out"))

if {own_folder}:
    own = hw.Environment("totals", job_dir="jobs/shown")
    build(own)
    build = lambda: own
"""
NOT_OURS = ("cd", "pip", "python", "echo")
"""Beside commands of ours. The tutorial's test installs, and runs the tests of a new project."""


def written(file: Path, state: str = "total", dtype: str = "int", *, own_folder: bool = False) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(PROGRAM.format(state=state, type=dtype, own_folder=own_folder))


def typed(line: str, text: str = "") -> int:
    """Run a command of ours; gives its exit code."""
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    words = shlex.split(line, comments=True)
    assert words[0] == "headwater", line
    return get_command(app)(words[1:], standalone_mode=False) or 0


@contextmanager
def served(line: str) -> Iterator[str]:
    """A server as a process of its own; gives the line that has its address."""
    command = [sys.executable, "-m", "headwater.cli", *shlex.split(line, comments=True)[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield next(line for line in server.stdout if "http://" in line)
            server.terminate()
            assert server.wait(PATIENCE_S) in (0, 143)
        finally:
            server.kill()


def asked(line: str) -> str:
    """What a server of ours answers."""
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stdout.startswith('{"error"'), done.stdout
    return done.stdout


class Reader:
    """Types the commands of a page, from its first line to its last."""

    def __init__(self, page: str, places: Mapping[str, str | Callable[[], str]] | None = None) -> None:
        """`places` take the place of what a page names and a test cannot have: folders, epochs."""
        self._lines = [
            line
            for block in shell_blocks(PROJECT / page)
            if block.reason is None
            for line in block.body.replace("\\\n", " ").splitlines()
        ]
        self._places = {"/srv/jobs": "jobs", **(places or {})}
        self._failure: list[BaseException] = []

    def read(self) -> None:
        while self._lines:
            self._do(self._lines.pop(0))
        assert self._failure == []

    def _do(self, line: str) -> None:
        for name, place in self._places.items():
            if name in line:
                line = line.replace(name, place if isinstance(place, str) else place())
        words = shlex.split(line, comments=True)
        if " | " in line:
            said, line = line.split(" | ")
            assert typed(line, f"{shlex.split(said)[1]}\n") == 0
        elif words[:2] == ["headwater", "run"]:
            self._run(line, words)
        elif words[:2] == ["headwater", "ui"]:
            with served(line) as link:
                assert link.startswith("http://127.0.0.1:")
        elif words[:1] == ["headwater"]:
            assert typed(line, "y\n") == 0, line
        elif words and words[0] == "curl":
            asked(line)
        else:
            assert not words or words[0] in NOT_OURS, line

    def _run(self, line: str, words: list[str]) -> None:
        """A job until it is stopped, by what follows on the page or behind its end."""
        folder = words[words.index("--job-dir") + 1] if "--job-dir" in words else "jobs/shown"
        beside = threading.Thread(target=self._beside, args=(Path(folder),))
        beside.start()
        assert typed(line) == 0
        beside.join(PATIENCE_S)

    def _beside(self, folder: Path) -> None:
        following = None
        try:
            until_published(folder)
            while self._lines and not self._lines[0].startswith(("headwater stop", "headwater run")):
                line = self._lines.pop(0)
                if "--follow" in line:
                    following = threading.Thread(target=typed, args=(line,))
                    following.start()
                elif line:
                    self._do(line)
        except BaseException as error:
            self._failure.append(error)
        stopping = bool(self._lines) and self._lines[0].startswith("headwater stop")
        assert typed(self._lines.pop(0) if stopping else f"headwater stop {folder}") == 0
        if following is not None:
            following.join(PATIENCE_S)


def until_published(folder: Path, epoch: int = 0) -> None:
    """Wait until a job has given so much, so that there is something to look at."""
    deadline = time.monotonic() + PATIENCE_S
    while not (folder / "job.json").exists() or not _has(hw.control.job(folder), epoch):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _has(job: hw.control.JobView, epoch: int) -> bool:
    return job.state == "running" and job.published >= epoch


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the reader is; what commands leave behind in the process is taken back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setattr("sys.path", [*sys.path])
    log = logging.getLogger("headwater")
    handlers, level = log.handlers[:], log.level
    yield tmp_path
    for handler in [one for one in log.handlers if one not in handlers]:
        log.removeHandler(handler)
        handler.close()
    log.setLevel(level)


def orders(rows: list[tuple[str, int]]) -> Any:
    topic = hw.EventLog("events").create_topic("orders", ORDERS)
    topic.append(rows)
    return topic


@pytest.mark.spark
def test_the_command_line(folder: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    typed("headwater new shop")
    monkeypatch.chdir("shop")
    reader = Reader("docs/howto/command-line.md")
    assert reader._lines.pop(0) == "headwater new shop && cd shop"
    reader.read()


@pytest.mark.spark
def test_upgrading_a_job_and_the_runbook(folder: Path, spark: SparkSession) -> None:
    topic = orders([("ann", 20), ("bob", 5)])
    written(folder / "job.py")
    written(folder / "totals_2.py", dtype="bigint")
    env = hw.Environment("totals", job_dir="jobs/totals", checkpoint_interval="100 ms")
    scope: dict[str, Any] = {}
    exec(PROGRAM.format(state="total", type="int", own_folder=False), scope)
    scope["build"](env)
    env.start()
    until_published(folder / "jobs" / "totals")
    (folder / "jobs" / "totals" / "job.log").write_text("INFO headwater.job: it runs\n")
    topic.append([("ann", 7)])
    until_published(folder / "jobs" / "totals", epoch=1)
    Reader("docs/howto/upgrade-a-job.md").read()
    Reader("docs/howto/runbook.md", {" 42": " 0"}).read()


@pytest.mark.spark
def test_the_dashboard(folder: Path, spark: SparkSession) -> None:
    orders([("ann", 20)])
    (folder / "jobs").mkdir()
    written(folder / "job.py", own_folder=True)
    with serve(["jobs"], token="secret") as dashboard:
        there = {
            "127.0.0.1:PORT/api": f"{dashboard.url.removeprefix('http://')}/api",
            "$TOKEN": dashboard.token,
            "/ID/": lambda: f"/{WatchedJobs([Path('jobs')]).all()[0].id}/",
        }
        Reader("docs/howto/dashboard.md", there).read()
    assert (folder / "jobs" / "savepoints" / "before-upgrade").is_dir()


def test_checking_a_savepoint(folder: Path) -> None:
    env = hw.Environment("totals", engine="local")
    orders([("ann", 20)])
    scope: dict[str, Any] = {}
    exec(PROGRAM.format(state="total", type="int", own_folder=False), scope)
    scope["build"](env)
    env.run(bounded=True).savepoint("after-orders")
    written(folder / "jobs" / "totals.py", state="sum", dtype="bigint")
    Reader("docs/concepts/savepoints.md").read()


def test_rows_over_http(folder: Path) -> None:
    install, serve_rows, ask = (
        line for block in shell_blocks(PROJECT / "docs/connectors/push.md") for line in lines_of(block.body)
    )
    assert install.startswith("pip")
    with served(serve_rows.replace("8080", "0")) as said:
        address = re.search(r"http://127\.0\.0\.1:\d+", said)
        assert address is not None, said
        answer = json.loads(asked(ask.replace("http://127.0.0.1:8080", address[0])))
        assert answer == {"appended": 2, "offsets": {"0": [0, 2]}}


def lines_of(body: str) -> list[str]:
    return body.replace("\\\n", " ").splitlines()


RUN = {"command-line", "upgrade-a-job", "runbook", "dashboard", "savepoints", "push"}
"""The pages that tests above run."""


def test_every_block_is_run_or_says_why_not() -> None:
    blocks = [block for page in PAGES if page != TUTORIAL for block in shell_blocks(page)]
    assert [f"{one.page}, line {one.line}" for one in blocks if one.info and not one.reason] == []
    assert {Path(one.page).stem for one in blocks if one.reason is None} == RUN
    services = [one for one in blocks if one.reason is not None and "needs" in one.reason]
    assert (len(blocks), len(services)) == (23, 3)
