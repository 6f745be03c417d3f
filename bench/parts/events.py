"""The events that benches read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

SCHEMA = "user long, ts timestamp, amount double"


def event_tables(rows: int, keys: int, rows_per_table: int, seed: int = 1) -> Iterator[pa.Table]:
    """Events of random users, a millisecond apart, up to two seconds out of order."""
    random = np.random.default_rng(seed)
    for start in range(0, rows, rows_per_table):
        count = min(rows_per_table, rows - start)
        millis = 1_700_000_000_000 + np.arange(start, start + count) - random.integers(0, 2_000, count)
        columns = {
            "user": pa.array(random.integers(0, keys, count), pa.int64()),
            "ts": pa.array(millis * 1000, pa.timestamp("us", "UTC")),
            "amount": pa.array(random.random(count) * 100),
        }
        yield pa.table(columns)
