"""The ends of a job: `hw.connectors.kafka(...)`, `log(...)`, `files(...)`, `generator(...)`, …; tables to ask."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO

from headwater.connectors.console import ConsoleSink
from headwater.connectors.contract import DeadLetters, Positions, Sink, Source, Staged, read_staged
from headwater.connectors.files import FilesSink
from headwater.connectors.formats import AvroFormat, Format, format_of
from headwater.connectors.generator import GeneratorSource
from headwater.connectors.kafka.connection import Connection
from headwater.connectors.kafka.encoding import Encoding, Partition
from headwater.connectors.kafka.sending import SinkConnection
from headwater.connectors.kafka.sink import KafkaSink
from headwater.connectors.kafka.source import KafkaSource, Reading, Topics
from headwater.connectors.kafka.start import Start, StartLike
from headwater.connectors.log import LogSource
from headwater.connectors.memory import MemorySink
from headwater.connectors.postgres import PostgresSink, PostgresTable
from headwater.connectors.postgres.sink import RETRY
from headwater.durations import Duration
from headwater.errors import GraphError
from headwater.retry import Retry

__all__ = [
    "DeadLetters",
    "Positions",
    "PostgresTable",
    "Sink",
    "Source",
    "Staged",
    "avro",
    "console",
    "files",
    "generator",
    "kafka",
    "kafka_sink",
    "log",
    "memory",
    "postgres",
    "read_staged",
]


def log(path: str | os.PathLike[str], topic: str, *, start: str = "earliest") -> LogSource:
    """A topic of the embedded event log in folder `path`, from its 'earliest' row or from the 'latest' at the first start."""
    return LogSource(path, topic, start)


def kafka(  # noqa: PLR0913  each is a choice of its own, and all but two have a default
    topics: str | Iterable[str] | None = None,
    servers: str | Iterable[str] = "",
    *,
    pattern: str | None = None,
    format: Format | str = "json",  # noqa: A002
    start: StartLike = "earliest",
    metadata: Mapping[str, str] | None = None,
    bad_records: str = "fail",
    group: str | None = None,
    options: Mapping[str, Any] | None = None,
    on_lost: str = "fail",
    timeout: Duration = "30 s",
) -> KafkaSource:
    """Kafka topics, by name or by `pattern`; each partition is a split with a watermark of its own.

    `format` says what a record's value is: 'json', 'csv', 'raw' or `avro(…)`; `metadata` which columns hold its key,
    timestamp, headers, topic, partition or offset. `start` is 'earliest', 'latest', a time, or offsets by topic and
    partition. A record that cannot be read makes the job 'fail', or goes to its 'dead_letters'; so does ('fail') one
    that has expired unread, unless the job is to 'skip' it. `group` gets the offsets of what is published, for others
    to see. `options` go to librdkafka; a value 'env:NAME' is read where it is used, and none is ever shown.
    """
    _choose("bad_records", bad_records, ("fail", "dead_letters"))
    _choose("on_lost", on_lost, ("fail", "skip"))
    named = Topics.of(topics, pattern)
    reading = Reading(
        format=format_of(format, "kafka"),
        metadata=dict(metadata or {}),
        start=Start.of(start),
        has_dead_letters=bad_records == "dead_letters",
        skips_lost=on_lost == "skip",
        group=group,
    )
    return KafkaSource(named, Connection(servers, options, timeout, str(named)), reading)


def kafka_sink(
    topic: str,
    servers: str | Iterable[str],
    *,
    key: str | Sequence[str] | None = None,
    format: Format | str = "json",  # noqa: A002
    headers: Mapping[str, str] | None = None,
    mode: str = "append",
    delivery: str = "exactly_once",
    partition: Partition | None = None,
    options: Mapping[str, Any] | None = None,
    timeout: Duration = "60 s",
) -> KafkaSink:
    """A Kafka topic: each epoch is a transaction, or with `delivery="at_least_once"` records without one.

    `key` is a column, or several, which make a JSON object; `headers` are columns by the headers' names; `partition` a
    column or a function of the row, where Kafka's own choice by key is not wanted. With `mode="upsert"` a deletion in a
    changelog is a tombstone. `timeout` limits a transaction and every wait. `options` are as for `kafka`.
    """
    _choose("mode", mode, ("append", "upsert"))
    _choose("delivery", delivery, ("exactly_once", "at_least_once"))
    keys = (key,) if isinstance(key, str) else tuple(key or ())
    encoding = Encoding(format_of(format, "kafka_sink"), keys, headers, partition, is_upsert=mode == "upsert")
    connection = SinkConnection(servers, options, timeout, f"Kafka topic {topic}")
    return KafkaSink(topic, connection, encoding, is_exactly_once=delivery == "exactly_once")


def avro(schema: str | dict[str, Any], *, framed: bool = False) -> AvroFormat:
    """Values that are Avro records of a schema, given as JSON; `framed` ones have a schema registry's five bytes first."""
    return AvroFormat(schema, framed=framed)


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


def _choose(name: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise GraphError.bad_argument("kafka", f"needs {name}= {' or '.join(known)}", given, "choose one of them")
