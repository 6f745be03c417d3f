"""'connector' = 'log': a topic of the embedded event log."""

from __future__ import annotations

from headwater import connectors
from headwater.sql.connectors.contract import Made, Wanted
from headwater.sql.connectors.formats import startup


def log(wanted: Wanted) -> Made:
    """Rows are read with the columns that the topic has; writing to it is for `hw.EventLog`."""
    wanted.refuse_metadata()
    wanted.refuse_partitions()
    options = wanted.options
    source = connectors.log(options.required("path"), options.required("topic"), start=startup(options))
    return Made(source=source)
