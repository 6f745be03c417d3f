"""'connector' = 'kafka' and 'upsert-kafka': topics whose records are rows, or the newest row of each key."""

from __future__ import annotations

from typing import Any

from headwater import connectors
from headwater.connectors.kafka.records import PARTS
from headwater.data.schema import type_ddl
from headwater.sql.connectors.contract import Made, Wanted
from headwater.sql.connectors.debezium import debezium
from headwater.sql.connectors.formats import format_named, record_format, startup
from headwater.sql.connectors.newest import NewestSource
from headwater.sql.errors import SqlError

_SERVERS = "properties.bootstrap.servers"
_OWN = ("bootstrap.servers", "group.id")


def kafka(wanted: Wanted) -> Made:
    """Read and written; changes are read from records of Debezium, and never written."""
    options = wanted.options
    name = record_format(options)
    reading, connection = _reading(wanted), _connection(wanted)
    topics, pattern = _topics(wanted)
    if name == "debezium-json":
        source = connectors.kafka(topics, pattern=pattern, format="json", **reading, **connection)
        return Made(source=debezium(wanted, source), changes=True, tells_kinds=True)
    wanted.refuse_key("is for 'upsert-kafka': this one adds every row")
    format_ = format_named(name, options)
    key = options.names("key.fields", wanted.schema.names)
    if options.text("key.format") is not None:
        _key_format(wanted, key)
    options.choice("value.fields-include", ("all",), "all")
    source = connectors.kafka(topics, pattern=pattern, format=format_, **reading, **connection)
    sink = None
    if isinstance(topics, str):
        sink = connectors.kafka_sink(topics, key=key or None, format=format_, delivery=_delivery(wanted), **connection)
    return Made(source=source, sink=sink)


def upsert_kafka(wanted: Wanted) -> Made:
    """One row for each key: the value of its newest record, and none where that has no value."""
    wanted.require_key("is needed by 'upsert-kafka'")
    options = wanted.options
    name = options.choice("value.format", ("json", "csv", "avro"))
    format_ = format_named(name, options)
    _key_format(wanted, wanted.primary_key)
    options.choice("value.fields-include", ("all",), "all")
    connection, topic = _connection(wanted), options.required("topic")
    reading: dict[str, Any] = _reading(wanted)
    reading["metadata"] = {**reading["metadata"], NewestSource.KEY: "key"}
    source = connectors.kafka(topic, format=format_, **reading, **connection)
    sink = connectors.kafka_sink(
        topic, key=wanted.primary_key, format=format_, mode="upsert", delivery=_delivery(wanted), **connection
    )
    newest = NewestSource(source, wanted.primary_key, tuple(wanted.metadata))
    return Made(source=newest, sink=sink, changes=True, tells_kinds=True)


def _topics(wanted: Wanted) -> tuple[Any, str | None]:
    options = wanted.options
    pattern = options.text("topic-pattern")
    if pattern is not None and options.text("topic") is None:
        return None, pattern
    names = [name.strip() for name in options.required("topic").split(";") if name.strip()]
    return (names[0] if len(names) == 1 else names), pattern


def _connection(wanted: Wanted) -> dict[str, Any]:
    """Servers, and what librdkafka is told."""
    options = wanted.options
    servers = options.required(_SERVERS)
    given = options.starting("properties.")
    own = {name: value for name, value in given.items() if name not in _OWN}
    return {"servers": servers, "options": own}


def _reading(wanted: Wanted) -> dict[str, Any]:
    wanted.refuse_partitions()
    wanted.refuse_metadata(tuple(PARTS))
    options = wanted.options
    for column, part in wanted.metadata.items():
        found = wanted.schema.field(column).type
        if found not in PARTS[part]:
            types = " or ".join(map(type_ddl, PARTS[part]))
            raise SqlError.wrong_type(options.place, f"METADATA column {column!r}", type_ddl(found), types)
    return {
        "metadata": dict(wanted.metadata),
        "start": startup(options, has_times=True),
        "group": options.text("properties.group.id"),
        "on_lost": options.choice("scan.on-lost", ("fail", "skip"), "fail"),
    }


def _key_format(wanted: Wanted, key: tuple[str, ...]) -> None:
    """The key of one column is text, that of several is an object; there is no other form."""
    form = "raw" if len(key) <= 1 else "json"
    if wanted.options.choice("key.format", ("raw", "json"), form) != form:
        raise wanted.options.bad(
            "key.format", f"must be {form!r} for a key of {len(key)} columns", "change it, or leave it out"
        )


def _delivery(wanted: Wanted) -> Any:
    given = wanted.options.choice("sink.delivery-guarantee", ("exactly-once", "at-least-once"), "exactly-once")
    return given.replace("-", "_")
