"""The ends of a job: `hw.connectors.kafka(...)`, `log(...)`, `files(...)`, `generator(...)`, …; tables to ask.

Each end is imported when it is first asked for: a worker deals with those of one job, and comes up faster without others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow as pa

from headwater.connectors.contract import Changes, DeadLetters, Positions, Sink, Source, Staged, read_staged
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError, SourceError
from headwater.retry import OF_DATABASE, Retry

if TYPE_CHECKING:
    from headwater.connectors.blackhole import BlackholeSink
    from headwater.connectors.console import ConsoleSink
    from headwater.connectors.dataframes import DeltaSink
    from headwater.connectors.files.sink import FilesSink
    from headwater.connectors.files.source import FilesSource
    from headwater.connectors.formats import AvroFormat, Format
    from headwater.connectors.generator import GeneratorSource
    from headwater.connectors.kafka.encoding import Partition
    from headwater.connectors.kafka.sink import KafkaSink
    from headwater.connectors.kafka.source import KafkaSource
    from headwater.connectors.kafka.start import StartLike
    from headwater.connectors.log import LogSource
    from headwater.connectors.memory import MemorySink
    from headwater.connectors.postgres import PostgresSink, PostgresTable
    from headwater.connectors.socket_source import SocketSource
    from headwater.data.schema import Schema
    from headwater.words import (
        BadRecords,
        Delivery,
        FileFormat,
        FileOrder,
        LostRecords,
        RecordFormat,
        SinkMode,
        StartName,
    )

__all__ = [
    "Changes",
    "DeadLetters",
    "Positions",
    "PostgresTable",
    "Sink",
    "Source",
    "Staged",
    "avro",
    "blackhole",
    "console",
    "delta",
    "files",
    "generator",
    "infer_schema",
    "kafka",
    "kafka_sink",
    "log",
    "memory",
    "postgres",
    "read_files",
    "read_staged",
    "socket",
]


def log(path: str | os.PathLike[str], topic: str, *, start: StartName = "earliest") -> LogSource:
    """A topic of the embedded event log in folder `path`, from its 'earliest' row or from the 'latest' at the first start."""
    from headwater.connectors.log import LogSource

    return LogSource(path, topic, start)


def kafka(  # noqa: PLR0913  each is a choice of its own, and all but two have a default
    topics: str | Iterable[str] | None = None,
    servers: str | Iterable[str] = "",
    *,
    pattern: str | None = None,
    format: Format | RecordFormat = "json",  # noqa: A002
    start: StartLike = "earliest",
    metadata: Mapping[str, str] | None = None,
    bad_records: BadRecords = "fail",
    group: str | None = None,
    options: Mapping[str, Any] | None = None,
    on_lost: LostRecords = "fail",
    timeout: Duration = "30 s",
) -> KafkaSource:
    """Kafka topics, by name or by `pattern`; each partition is a split with a watermark of its own.

    `format` says what a record's value is: 'json', 'csv', 'raw' or `avro(…)`; `metadata` which columns hold its key,
    timestamp, headers, topic, partition or offset. `start` is 'earliest', 'latest', a time, or offsets by topic and
    partition. A record that cannot be read makes the job 'fail', or goes to its 'dead_letters'; so does ('fail') one
    that has expired unread, unless the job is to 'skip' it. `group` gets the offsets of what is published, for others
    to see. `options` go to librdkafka; a value 'env:NAME' is read where it is used, and none is ever shown.
    """
    from headwater.connectors.formats import format_of
    from headwater.connectors.kafka.connection import Connection
    from headwater.connectors.kafka.source import KafkaSource, Reading, Topics
    from headwater.connectors.kafka.start import Start

    _choose("kafka", "bad_records", bad_records, ("fail", "dead_letters"))
    _choose("kafka", "on_lost", on_lost, ("fail", "skip"))
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
    format: Format | RecordFormat = "json",  # noqa: A002
    headers: Mapping[str, str] | None = None,
    mode: SinkMode = "append",
    delivery: Delivery = "exactly_once",
    partition: Partition | None = None,
    options: Mapping[str, Any] | None = None,
    timeout: Duration = "60 s",
) -> KafkaSink:
    """A Kafka topic: each epoch is a transaction, or with `delivery="at_least_once"` records without one.

    `key` is a column, or several, which make a JSON object; `headers` are columns by the headers' names; `partition` a
    column or a function of the row, where Kafka's own choice by key is not wanted. With `mode="upsert"` a deletion in a
    changelog is a tombstone. `timeout` limits a transaction and every wait. `options` are as for `kafka`.
    """
    from headwater.connectors.formats import format_of
    from headwater.connectors.kafka.encoding import Encoding
    from headwater.connectors.kafka.sending import SinkConnection
    from headwater.connectors.kafka.sink import KafkaSink

    _choose("kafka_sink", "mode", mode, ("append", "upsert"))
    _choose("kafka_sink", "delivery", delivery, ("exactly_once", "at_least_once"))
    keys = (key,) if isinstance(key, str) else tuple(key or ())
    encoding = Encoding(format_of(format, "kafka_sink"), keys, headers, partition, is_upsert=mode == "upsert")
    connection = SinkConnection(servers, options, timeout, f"Kafka topic {topic}")
    return KafkaSink(topic, connection, encoding, is_exactly_once=delivery == "exactly_once")


def avro(schema: str | dict[str, Any], *, framed: bool = False) -> AvroFormat:
    """Values that are Avro records of a schema, given as JSON; `framed` ones have a schema registry's five bytes first."""
    from headwater.connectors.formats import AvroFormat

    return AvroFormat(schema, framed=framed)


def generator(
    make: Callable[[int], Any], *, count: int | None = None, rate: float | None = None, splits: int = 1
) -> GeneratorSource:
    """Rows `make(0), make(1), …`, up to `count` of them, at `rate` rows a second or as fast as they are read."""
    from headwater.connectors.generator import GeneratorSource

    return GeneratorSource(make, count, rate, splits)


def files(
    folder: str | os.PathLike[str],
    *,
    format: FileFormat = "parquet",  # noqa: A002
    partition_by: Sequence[str] = (),
    roll_bytes: int | None = None,
    roll_every: Duration | None = None,
) -> FilesSink:
    """Parquet, JSON-lines ('json') or CSV files in a folder in which every visible row is committed.

    With `partition_by` there is a folder for each value of these columns, as `day=2024-01-01/`. Each epoch writes its own
    files. With `roll_bytes` or `roll_every` those of several epochs become one, which is seen when it has about that size,
    when its first row has waited so long, or when the job ends; files of more than `roll_bytes` are split.
    """
    from headwater.connectors.files.partitions import Partitions
    from headwater.connectors.files.rolling import Limits
    from headwater.connectors.files.sink import FilesSink

    if isinstance(partition_by, str):
        raise GraphError.bad_argument("files", "partitions by a list of columns", partition_by, f"[{partition_by!r}]")
    if roll_bytes is not None and roll_bytes < 1:
        raise GraphError.bad_argument("files", "rolls files of a size", roll_bytes, "give roll_bytes=128 << 20 or so")
    age_ms = None if roll_every is None else duration_ms(roll_every, what="roll_every")
    limits = None if roll_bytes is None and age_ms is None else Limits(roll_bytes, age_ms)
    return FilesSink(folder, format, partitions=Partitions(partition_by), limits=limits)


def read_files(  # noqa: PLR0913  each is a choice of its own, and all but one have a default
    folder: str | os.PathLike[str],
    *,
    format: FileFormat = "parquet",  # noqa: A002
    pattern: str = "*",
    order: FileOrder = "modified",
    watch: bool = True,
    splits: int = 1,
    max_files_per_epoch: int = 1000,
    settle: Duration = "1 s",
    bad_records: BadRecords = "fail",
    metadata: Mapping[str, str] | None = None,
    max_unpacked_bytes: int = 1 << 30,
) -> FilesSource:
    """Parquet, JSON-lines ('json') or CSV files of a folder, and those that come into it later, each once and whole.

    Files are read in the `order` of their modification or their names, as far as they are found together; with
    `watch=False` the input is what is there when the job first starts. A file that was written to within `settle` is left
    for later. An epoch reads `max_files_per_epoch` at most, whatever `max_rows_per_epoch` says: rows are not counted
    beforehand. One that cannot be read stops the job, or with `bad_records="dead_letters"` becomes a row there. `metadata`
    maps columns to what they get of the file: 'path', 'size_bytes' or 'modified'. A file that unpacks to more than
    `max_unpacked_bytes`, and to more than 100 times its own size, cannot be read.
    """
    from headwater.connectors.files.lookout import Lookout
    from headwater.connectors.files.source import FilesSource

    settle_ms = duration_ms(settle, what="settle")
    return FilesSource(
        Lookout(Path(folder).absolute(), pattern, order, settle_ms),
        format,
        watch=watch,
        splits=splits,
        max_files_per_epoch=max_files_per_epoch,
        bad_records=bad_records,
        metadata=metadata or {},
        max_unpacked_bytes=max_unpacked_bytes,
    )


def infer_schema(
    folder: str | os.PathLike[str],
    format: FileFormat = "parquet",  # noqa: A002
    *,
    pattern: str = "*",
) -> Schema:
    """The schema of the files in a folder, as the first of them by name has it; of text, as its first rows look."""
    from headwater.connectors.files.formats import READERS, carried, schema_of
    from headwater.connectors.files.lookout import Lookout

    if format not in READERS:
        raise GraphError.bad_argument("infer_schema", f"reads {', '.join(READERS)}", format, "choose one of them")
    path = Lookout(Path(folder).absolute(), pattern, "name", 0).first()
    if path is None:
        raise SourceError.unreadable(str(folder), f"there is no file that fits {pattern!r}", "declare the schema")
    try:
        found = schema_of(path, format)
    except (OSError, EOFError, ValueError, pa.ArrowException) as error:
        raise SourceError.unreadable(str(path), str(error), "declare the schema, or repair the file") from None
    return carried(found)


def postgres(
    connection: str,
    table: str,
    *,
    mode: SinkMode = "append",
    key: str | Sequence[str] | None = None,
    retry: Retry = OF_DATABASE,
    create: bool = False,
) -> PostgresSink:
    """A PostgreSQL table: rows are appended, or by `mode="upsert"` there is one for each `key`, the newest.

    `connection` is a conninfo string, a postgresql:// address, or 'env:NAME' for one in the driver's environment.
    A database that goes away is tried again as `retry` says; `create=True` makes a table that is not there.
    """
    from headwater.connectors.postgres import PostgresSink

    return PostgresSink(connection, table, mode=mode, key=key, retry=retry, create=create)


def socket(
    host: str,
    port: int,
    *,
    format: Format | RecordFormat = "raw",  # noqa: A002
    bad_records: BadRecords = "fail",
    timeout: Duration = "10 s",
) -> SocketSource:
    """Lines that a TCP server sends, as `nc -lk 9999` does; for trying things out.

    Not replayable: what was sent and not yet received when the job fails is lost, and `explain_guarantees()` says so.
    """
    from headwater.connectors.formats import format_of
    from headwater.connectors.socket_source import SocketSource

    _choose("socket", "bad_records", bad_records, ("fail", "dead_letters"))
    has_dead_letters = bad_records == "dead_letters"
    return SocketSource(host, port, format_of(format, "socket"), timeout, has_dead_letters=has_dead_letters)


def blackhole() -> BlackholeSink:
    """Takes all rows and keeps none, for measurements."""
    from headwater.connectors.blackhole import BlackholeSink

    return BlackholeSink()


def console(stream: TextIO | None = None) -> ConsoleSink:
    """Prints each committed row as a JSON line."""
    from headwater.connectors.console import ConsoleSink

    return ConsoleSink(stream)


def delta(path: str | os.PathLike[str]) -> DeltaSink:
    """Appends to a Delta table, each epoch once. The session needs Delta, as the package delta-spark sets it up."""
    from headwater.connectors.dataframes import DeltaSink

    return DeltaSink(os.fspath(path))


def memory() -> MemorySink:
    """Keeps committed rows in this process, in `.rows`."""
    from headwater.connectors.memory import MemorySink

    return MemorySink()


def _choose(step: str, name: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise GraphError.bad_argument(step, f"needs {name}= {' or '.join(known)}", given, "choose one of them")


class _Ends(ModuleType):
    """This module: a module in it that is imported does not take the place of the function of its name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in __all__):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Ends


def __getattr__(name: str) -> object:
    if name != "PostgresTable":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    from headwater.connectors.postgres import PostgresTable

    return PostgresTable


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
