"""What the client and the topic take: records that are too large or for no partition are refused when they are staged.

After the commit nothing could be done about them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headwater.connectors.errors import NotWritable
from headwater.connectors.kafka.encoding import HEADER, KEY, PARTITION, VALUE
from headwater.connectors.kafka.send_errors import record_named
from headwater.errors import RowError

CLIENT_BYTES = 1_000_000
"""librdkafka's own limit, if `message.max.bytes` does not say another."""
_FRAME_BYTES = 36
"""What the client counts for a record besides its parts."""
_HEADER_BYTES = 10
"""What it counts at most for a header besides its name and value."""
_BATCH_BYTES = 61
"""What the topic counts besides, for a batch of one record."""


@dataclass(frozen=True)
class Limits:
    """The most that is taken, as it was known when the sink was opened."""

    client_bytes: int
    topic_bytes: int | None
    """None if it is not known, or if records are packed, so that only the broker knows how small they become."""
    partitions: int

    def check(self, records: pa.Table, step: str) -> None:
        """Refuse records, as `Encoding` gives them, that cannot be sent."""
        if not len(records):
            return
        largest = pc.max(records.column(PARTITION)).as_py()
        if largest >= self.partitions:
            there = f"the topic has {self.partitions}, of which the last is {self.partitions - 1}"
            raise RowError.value_does_not_fit(step, "partition", largest, "a partition", there)
        sizes = pa.chunked_array([pa.nulls(len(records), pa.int64()).fill_null(_FRAME_BYTES)])
        for name in records.column_names:
            if name in (KEY, VALUE) or name.startswith(HEADER):
                sizes = pc.add(sizes, pc.fill_null(pc.binary_length(records.column(name)), 0))
            if name.startswith(HEADER):
                sizes = pc.add(sizes, len(name.removeprefix(HEADER).encode()) + _HEADER_BYTES)
        size_bytes = pc.max(sizes).as_py()
        whose, most = self._least()
        if size_bytes > most:
            at = pc.index(sizes, size_bytes).as_py()
            raise NotWritable.record_too_large(
                step, record_named(records.column(KEY)[at].as_py()), size_bytes, whose, most
            )

    def _least(self) -> tuple[str, int]:
        topic_bytes = None if self.topic_bytes is None else self.topic_bytes - _BATCH_BYTES
        if topic_bytes is None or self.client_bytes <= topic_bytes:
            return "this client's", self.client_bytes
        return "the topic's", topic_bytes
