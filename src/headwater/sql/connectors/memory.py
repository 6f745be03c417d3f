"""'connector' = 'memory': rows that stay in this process."""

from __future__ import annotations

from headwater import connectors
from headwater.sql.connectors.contract import Made, Wanted


def memory(wanted: Wanted) -> Made:
    """Written to; `env.table_rows(name)` gives what is there."""
    wanted.refuse_metadata()
    wanted.refuse_partitions()
    return Made(sink=connectors.memory())
