"""'connector' = 'console', or Flink's 'print': rows as JSON lines on standard output."""

from __future__ import annotations

from headwater import connectors
from headwater.sql.connectors.contract import Made, Wanted


def console(wanted: Wanted) -> Made:
    """Shows changes with what each does."""
    wanted.refuse_metadata()
    wanted.refuse_partitions()
    return Made(sink=connectors.console())
