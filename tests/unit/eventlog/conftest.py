"""Topics in a temporary folder, and programs that use them from other processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import headwater.eventlog
from headwater.eventlog import EventLog, Topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCES = Path(headwater.eventlog.__file__).parents[2]
NUMBERS = pa.schema([("n", pa.int64())])


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    return EventLog(tmp_path / "log")


@pytest.fixture
def numbers(log: EventLog) -> Topic:
    """One partition of whole numbers, in segments of the default size."""
    return log.create_topic("numbers", NUMBERS)


@pytest.fixture
def rows() -> Callable[..., list[object]]:
    """Read a column of [start, end) as a list."""

    def read(
        topic: Topic, start: int = 0, end: int | None = None, partition: int = 0, column: str = "n"
    ) -> list[object]:
        return [v for batch in topic.read(partition, start, end) for v in batch.column(column).to_pylist()]

    return read


@pytest.fixture
def program() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start Python code in its own process; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[bytes]] = []

    def start(code: str, *arguments: object) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
            stdout=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
