"""What a savepoint needs and does not get: room on the disk, state that can be read. The job itself goes on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow as pa
import pytest

import headwater as hw
from headwater.savepoints.files import Savepoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.recovery, pytest.mark.spark, pytest.mark.timeout(900)]

KEYS = 5000
FULL_BYTES = 100_000
"""What a file may have on a disk that is full; the state has more, what else is written has less."""


class Texts(hw.KeyedProcessFunction):
    """Keeps texts that cannot be made smaller."""

    text = hw.ValueState("string")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.text.set(hashlib.sha512(f"{event.k} {event.n}".encode()).hexdigest())
        yield {"k": event.k, "n": event.n}


class Running:
    """A job that does not end."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self._topic = hw.EventLog(folder / "log").create_topic("texts", hw.Schema.of("k long, n long").arrow)
        self._rounds = 0
        self.append()
        env = hw.Environment("texts", job_dir=folder / "job", checkpoint_interval="20 ms", **settings)
        source = env.source(hw.connectors.log(folder / "log", "texts"), "k long, n long")
        texts = source.key_by("k").process(Texts(), "k long, n long", name="texts")
        texts.where("k < 10").sink(hw.connectors.files(folder / "out", format="json")).with_uid("out")
        self.job = env.start()
        self.check_goes_on()

    def append(self) -> None:
        self._topic.append(pa.table({"k": range(KEYS), "n": [self._rounds] * KEYS}))
        self._rounds += 1

    def check_goes_on(self) -> None:
        """New rows come out, each once, and a savepoint can be taken."""
        self.append()
        while len(rows := self._rows()) < 10 * self._rounds:
            assert not self.job.wait(0.05)
        assert rows == sorted((k, n) for k in range(10) for n in range(self._rounds))
        path = self.job.savepoint(self.folder / f"savepoint-{self._rounds}")
        assert sum(file.rows for file in Savepoint.open(path).description.steps["texts"].states["text"]) == KEYS

    def _rows(self) -> list[tuple[int, int]]:
        lines = [line for file in (self.folder / "out").glob("*.jsonl") for line in file.read_text().splitlines()]
        return sorted((row["k"], row["n"]) for row in map(json.loads, lines))

    def check_refused(self, path: Path, *facts: str) -> None:
        """A savepoint cannot be taken, and nothing of it is there."""
        with pytest.raises(hw.SavepointError) as refused:
            self.job.savepoint(path)
        for fact in (f"the savepoint {path} could not be taken: ", *facts, "mend the cause and take it again"):
            assert fact in str(refused.value)
        assert not path.exists()


@pytest.fixture(scope="module")
def running(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(tmp_path_factory.mktemp("job äö 100% #1"), spark=spark)
    yield running
    running.job.stop()


def test_disk_that_is_full_for_tasks(running: Running, tmp_path: Path) -> None:
    path = tmp_path / "saved"
    with full_disk_for_tasks():
        running.check_refused(path, f"{path / 'state' / 'texts' / 'text'}/0000", ".parquet: [Errno 27] File too large;")
    running.check_goes_on()


def test_state_that_is_damaged(running: Running, tmp_path: Path) -> None:
    state = running.folder / "job" / "checkpoint" / "state"
    kept = {file: file.read_bytes() for file in state.rglob("*") if file.suffix in {".changelog", ".zip"}}
    for file in kept:
        file.write_bytes(b"damaged")
    try:
        facts = (f" is damaged: {state}/", "restore the file from a copy of the job folder")
        running.check_refused(tmp_path / "saved", *facts)
        with pytest.raises(hw.JobError) as refused:
            running.job.state("texts", "text")
        assert all(fact in str(refused.value) for fact in facts)
    finally:
        for file, content in kept.items():
            file.write_bytes(content)
    running.check_goes_on()


def test_disk_that_is_full_for_the_driver(tmp_path: Path) -> None:
    """On the local engine, in a process whose files are kept small."""
    done = subprocess.run([sys.executable, __file__, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@contextlib.contextmanager
def full_disk_for_tasks() -> Iterator[None]:
    """Let the processes that run Spark's tasks, and those that they fork, write small files only."""
    for _ in range(2):  # the second time finds what was forked meanwhile
        let_tasks_write(FULL_BYTES)
    yield
    let_tasks_write(resource.RLIM_INFINITY)


def let_tasks_write(size_bytes: int) -> None:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            if "pyspark.daemon" in process.cmdline():
                process.rlimit(psutil.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))


def main() -> None:
    folder = Path(sys.argv[1])
    running = Running(folder, engine="local")
    resource.setrlimit(resource.RLIMIT_FSIZE, (FULL_BYTES, resource.RLIM_INFINITY))
    running.check_refused(folder / "saved", ".parquet: [Errno 27] File too large;")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    running.check_goes_on()
    running.job.stop()


if __name__ == "__main__":
    main()
