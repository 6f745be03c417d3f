"""'connector' = 'blackhole': rows that go nowhere."""

from __future__ import annotations

from headwater import connectors
from headwater.sql.connectors.contract import Made, Wanted


def blackhole(wanted: Wanted) -> Made:
    """Takes changes too."""
    wanted.refuse_metadata()
    wanted.refuse_partitions()
    return Made(sink=connectors.blackhole())
