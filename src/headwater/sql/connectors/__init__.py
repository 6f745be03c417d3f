"""The connectors that CREATE TABLE knows: from options, under Flink's names where it has one, to sources and sinks."""

from __future__ import annotations

from typing import Final

from headwater.errors import HeadwaterError
from headwater.sql.connectors.blackhole import blackhole
from headwater.sql.connectors.console import console
from headwater.sql.connectors.contract import Connect, Made, Wanted
from headwater.sql.connectors.files import files
from headwater.sql.connectors.generator import generator
from headwater.sql.connectors.kafka import kafka, upsert_kafka
from headwater.sql.connectors.log import log
from headwater.sql.connectors.memory import memory
from headwater.sql.connectors.postgres import postgres
from headwater.sql.errors import SqlError

__all__ = ["CONNECTORS", "Made", "Wanted", "connected"]

CONNECTORS: Final[dict[str, Connect]] = {
    "log": log,
    "kafka": kafka,
    "upsert-kafka": upsert_kafka,
    "files": files,
    "filesystem": files,
    "postgres": postgres,
    "generator": generator,
    "datagen": generator,
    "memory": memory,
    "console": console,
    "print": console,
    "blackhole": blackhole,
}


def connected(wanted: Wanted) -> Made:
    """The ends of a table, as its options say."""
    options = wanted.options
    name = options.choice("connector", tuple(CONNECTORS))
    try:
        made = CONNECTORS[name](wanted)
    except SqlError:
        raise
    except HeadwaterError as error:
        raise SqlError.bad_table(options.place, wanted.name, str(error)) from None
    options.finish(name)
    return made
