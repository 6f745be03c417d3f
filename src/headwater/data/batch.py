"""A batch of rows on its way between steps: an Arrow table, event times, and where there are some, keys and row kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.row_kinds import Kinds, inserts

MIN_TIMESTAMP = -(1 << 63)
"""The watermark before the first event, and the timestamp of a row that has none."""
MAX_TIMESTAMP = (1 << 63) - 1
"""The watermark at the end of input."""
FURTHEST_MS = MAX_TIMESTAMP // 1000
"""How far from 1970 a time can be, either way, that is shown in a column of timestamps, which count microseconds."""

Timestamps = npt.NDArray[np.int64]


@dataclass(slots=True)
class Batch:
    """Rows in order. `key` is set only when the key is the result of a function, `kinds` only in a changelog."""

    table: pa.Table
    timestamps: Timestamps
    key: pa.Array | None = None
    kinds: Kinds | None = None
    """What each row does; None where all insert."""

    def __len__(self) -> int:
        return len(self.timestamps)

    def take(self, order: npt.NDArray[np.int64]) -> Batch:
        indices = pa.array(order)
        return Batch(
            self.table.take(indices),
            self.timestamps[order],
            None if self.key is None else self.key.take(indices),
            None if self.kinds is None else self.kinds[order],
        )

    def slice(self, start: int, count: int) -> Batch:
        return Batch(
            self.table.slice(start, count),
            self.timestamps[start : start + count],
            None if self.key is None else self.key.slice(start, count),
            None if self.kinds is None else self.kinds[start : start + count],
        )

    def results(self, table: pa.Table, places: Sequence[int] | npt.NDArray[np.int64]) -> Batch:
        """What was made of rows: each with the time and the kind of the row at its place."""
        return Batch(table, self.timestamps[places], kinds=None if self.kinds is None else self.kinds[places])


def flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def concat(batches: Sequence[Batch]) -> Batch:
    """Batches of one schema, end to end; the key stays only when all of them have one."""
    if len(batches) == 1:
        return batches[0]
    key = None
    if all(b.key is not None for b in batches):
        key = pa.concat_arrays([b.key for b in batches])
    kinds = None
    if any(b.kinds is not None for b in batches):
        kinds = np.concatenate([inserts(len(b)) if b.kinds is None else b.kinds for b in batches])
    timestamps = np.concatenate([b.timestamps for b in batches])
    return Batch(pa.concat_tables([b.table for b in batches]), timestamps, key, kinds)


def no_timestamps(count: int) -> Timestamps:
    """The timestamps of rows that have none."""
    return np.full(count, MIN_TIMESTAMP, np.int64)


def timestamp_list(timestamps: Timestamps) -> list[int | None]:
    """The timestamps as Python values, None where a row has none."""
    if len(timestamps) and timestamps.min() == MIN_TIMESTAMP:
        return [None if t == MIN_TIMESTAMP else t for t in timestamps.tolist()]
    return timestamps.tolist()  # type: ignore[no-any-return]


def timestamp_array(values: Sequence[int | None]) -> Timestamps:
    """The reverse of `timestamp_list`."""
    try:
        return np.array(values, np.int64) if values else no_timestamps(0)
    except TypeError:
        return np.array([MIN_TIMESTAMP if v is None else v for v in values], np.int64)
