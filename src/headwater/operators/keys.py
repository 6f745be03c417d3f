"""The keys of a batch's rows as Python values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any

import pyarrow as pa

from headwater.data.batch import Batch
from headwater.data.rows import decode, make_rows, row_class
from headwater.graph.edges import Key

_NO_KEY = True


def key_arrays(batch: Batch, key: Key) -> list[pa.Array | pa.ChunkedArray]:
    """The columns whose values make a row's key; none where there is no key."""
    if batch.key is not None:
        return [batch.key]
    return [batch.table.column(name) for name in key.columns]


def keys_of(batch: Batch, key: Key, decoded: Mapping[str, list[Any]] | None = None) -> Iterable[Any]:
    """One key for each row: a value, a row of several columns, or always the same where there is no key.

    `decoded` holds columns whose Python values are at hand already.
    """
    if batch.key is not None:
        return decode(batch.key)
    if key.is_nothing:
        return repeat(_NO_KEY, len(batch))
    if decoded is None:
        decoded = {name: decode(batch.table.column(name)) for name in key.columns}
    columns = [decoded[name] for name in key.columns]
    return columns[0] if len(columns) == 1 else make_rows(row_class(key.columns), columns)
