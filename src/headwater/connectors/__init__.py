"""The ends of a job: `hw.connectors.log(...)`, `files(...)`, `generator(...)`, `memory()`, `console()`; tables to ask."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from headwater.connectors.console import ConsoleSink
from headwater.connectors.contract import DeadLetters, Positions, Sink, Source, Staged, read_staged
from headwater.connectors.files import FilesSink
from headwater.connectors.generator import GeneratorSource
from headwater.connectors.log import LogSource
from headwater.connectors.memory import MemorySink
from headwater.connectors.postgres import PostgresSink, PostgresTable
from headwater.connectors.postgres.sink import RETRY
from headwater.retry import Retry

__all__ = [
    "DeadLetters",
    "Positions",
    "PostgresTable",
    "Sink",
    "Source",
    "Staged",
    "console",
    "files",
    "generator",
    "log",
    "memory",
    "postgres",
    "read_staged",
]


def log(path: str | os.PathLike[str], topic: str, *, start: str = "earliest") -> LogSource:
    """A topic of the embedded event log in folder `path`, from its 'earliest' row or from the 'latest' at the first start."""
    return LogSource(path, topic, start)


def generator(
    make: Callable[[int], Any], *, count: int | None = None, rate: float | None = None, splits: int = 1
) -> GeneratorSource:
    """Rows `make(0), make(1), …`, up to `count` of them, at `rate` rows a second or as fast as they are read."""
    return GeneratorSource(make, count, rate, splits)


def files(folder: str | os.PathLike[str], *, format: str = "parquet") -> FilesSink:  # noqa: A002
    """Parquet, JSON-lines ('json') or CSV files in a folder in which every visible row is committed."""
    return FilesSink(folder, format)


def postgres(
    connection: str,
    table: str,
    *,
    mode: str = "append",
    key: str | Sequence[str] | None = None,
    retry: Retry = RETRY,
    create: bool = False,
) -> PostgresSink:
    """A PostgreSQL table: rows are appended, or by `mode="upsert"` there is one for each `key`, the newest.

    `connection` is a conninfo string, a postgresql:// address, or 'env:NAME' for one in the driver's environment.
    A database that goes away is tried again as `retry` says; `create=True` makes a table that is not there.
    """
    return PostgresSink(connection, table, mode=mode, key=key, retry=retry, create=create)


def console(stream: TextIO | None = None) -> ConsoleSink:
    """Prints each committed row as a JSON line."""
    return ConsoleSink(stream)


def memory() -> MemorySink:
    """Keeps committed rows in this process, in `.rows`."""
    return MemorySink()
