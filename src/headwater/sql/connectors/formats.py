"""Formats of records by their options, and where reading begins."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from headwater import connectors
from headwater.connectors.formats import Format, format_of
from headwater.sql.connectors.options import Options

RECORD_FORMATS: Final = ("json", "csv", "avro", "raw", "debezium-json")
_STARTS: Final = {"earliest-offset": "earliest", "earliest": "earliest", "latest-offset": "latest", "latest": "latest"}
_START, _AT = "scan.startup.mode", "scan.startup.timestamp-millis"


def record_format(options: Options) -> str:
    """The format of a record's value."""
    known = options.text("format", "value.format")
    if known is not None:
        key = "format" if options.has("format") else "value.format"
        return options.choice(key, RECORD_FORMATS)
    return options.choice("format", RECORD_FORMATS)


def format_named(name: str, options: Options) -> Format:
    """What reads and writes values of a format; that of Avro needs the writer's schema."""
    if name == "avro":
        return connectors.avro(options.required("avro.schema", "value.avro.schema"))
    return format_of(name, "kafka")


def startup(options: Options, *, has_times: bool = False) -> Any:
    """Where a job begins to read when it first starts."""
    known = (*_STARTS, *(["timestamp"] if has_times else []))
    found = options.choice(_START, known, "earliest-offset")
    at_ms = options.whole(_AT, least=0) if has_times else None
    if found != "timestamp":
        if at_ms is not None:
            raise options.bad(_AT, f"is for '{_START}' = 'timestamp'", "set that, or leave it out")
        return _STARTS[found]
    if at_ms is None:
        options.required(_AT)
    return dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(milliseconds=at_ms or 0)
