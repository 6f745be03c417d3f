"""What is odd about the rows that a split gives to an epoch. The driver, which hears of all splits, tells it once."""

from __future__ import annotations

from headwater.data.batch import MIN_TIMESTAMP, Batch
from headwater.graph.nodes import SourceNode

YEAR_3000_MS = 32_503_680_000_000
"""Event time after this was most likely meant in another unit."""


class Noticed:
    """Looks at the rows of one split in one epoch, a batch at a time."""

    def __init__(self, node: SourceNode) -> None:
        names = node.schema.names if node.source.finds_columns_by_name else []
        self._absent = dict.fromkeys(names)
        self._furthest_ms = MIN_TIMESTAMP

    def see(self, batch: Batch) -> None:
        """Take rows, at least one."""
        self._furthest_ms = max(self._furthest_ms, int(batch.timestamps.max()))
        for name in list(self._absent):
            if batch.table.column(name).null_count < len(batch):
                del self._absent[name]

    @property
    def furthest_ms(self) -> int | None:
        """The largest timestamp, where it is far ahead of all that is likely."""
        return self._furthest_ms if self._furthest_ms > YEAR_3000_MS else None

    @property
    def absent(self) -> tuple[str, ...]:
        """The columns in which no row had a value, of a source that looks for them by name."""
        return tuple(self._absent)
