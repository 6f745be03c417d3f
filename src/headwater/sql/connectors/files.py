"""'connector' = 'files', or Flink's 'filesystem': files of a folder, read as they come and written in epochs."""

from __future__ import annotations

from typing import Any

from headwater import connectors
from headwater.sql.connectors.contract import Made, Wanted
from headwater.sql.connectors.debezium import debezium
from headwater.sql.errors import SqlError
from headwater.sql.looked_up import LookedUp

_FORMATS = ("parquet", "json", "csv", "debezium-json")
_FACTS = {"path": "path", "file.path": "path", "file.size": "size_bytes", "file.modification-time": "modified"}
"""METADATA keys: ours and Flink's."""


def files(wanted: Wanted) -> Made:
    """Without 'source.monitor-interval' what is there when the job starts is all, as Flink has it."""
    options = wanted.options
    path = options.required("path").removeprefix("file://")
    given = options.choice("format", _FORMATS)
    is_debezium = given == "debezium-json"
    name: Any = "json" if is_debezium else given
    wanted.refuse_metadata(tuple(_FACTS))
    reading: dict[str, Any] = {
        "watch": options.duration("source.monitor-interval") is not None,
        "pattern": options.text("source.path.pattern") or "*",
        "metadata": {column: _FACTS[key] for column, key in wanted.metadata.items()},
    }
    for option, setting in (("source.splits", "splits"), ("source.max-files-per-epoch", "max_files_per_epoch")):
        if (number := options.whole(option, least=1)) is not None:
            reading[setting] = number
    if (settle := options.duration("source.settle")) is not None:
        reading["settle"] = settle
    roll_bytes, roll_every = options.whole("sink.roll-bytes", least=1), options.duration("sink.roll-interval")
    if is_debezium:
        records = connectors.read_files(path, format="json", **reading)
        return Made(source=debezium(wanted, records), changes=True, tells_kinds=True)
    for column in wanted.partitioned_by:
        if column not in wanted.schema.names:
            raise SqlError.no_column(options.place, column, wanted.schema.names)
    source = None if wanted.partitioned_by else connectors.read_files(path, format=name, **reading)
    sink = connectors.files(
        path, format=name, partition_by=wanted.partitioned_by, roll_bytes=roll_bytes, roll_every=roll_every
    )
    lookup = None if source is None else LookedUp(lambda: source.whole(wanted.schema))
    return Made(source=source, sink=sink, lookup=lookup)
