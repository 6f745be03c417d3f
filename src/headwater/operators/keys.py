"""The keys of rows: the columns that make them, as Python values, and as hashes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.batch import Batch, flat
from headwater.data.rows import decode, make_rows, row_class
from headwater.graph.edges import Key
from headwater.state.keys import Hashes, hash_keys
from headwater.state.spread import BY_KEY, TO_FIRST, Spread

NO_KEY = True
"""The key of all rows of steps that have none."""


def key_arrays(batch: Batch, key: Key) -> list[pa.Array | pa.ChunkedArray]:
    """The columns whose values make a row's key; none where there is no key."""
    if batch.key is not None:
        return [batch.key]
    return [batch.table.column(name) for name in key.columns]


def key_spread(key: Key) -> Spread:
    """Where state of the key goes."""
    return TO_FIRST if key.is_nothing else BY_KEY


def is_whole(columns: Sequence[pa.Array | pa.ChunkedArray], rows: int) -> npt.NDArray[np.bool_]:
    """Which keys have no null in them; in SQL the others are equal to nothing."""
    whole = np.ones(rows, np.bool_)
    for column in columns:
        array = flat(column)
        if array.null_count:
            whole &= np.asarray(array.is_valid())
        if pa.types.is_struct(array.type):
            whole &= is_whole(array.flatten(), rows)
    return whole


def hash_columns(columns: Sequence[pa.Array]) -> Hashes:
    """The hash of each key, which one column or several make."""
    return hash_keys(
        columns[0] if len(columns) == 1 else pa.StructArray.from_arrays(columns, [str(n) for n in range(len(columns))])
    )


def keys_of(batch: Batch, key: Key, decoded: Mapping[str, list[Any]] | None = None) -> Iterable[Any]:
    """One key for each row: a value, a row of several columns, or always the same where there is no key.

    `decoded` holds columns whose Python values are at hand already.
    """
    if batch.key is not None:
        return decode(batch.key)
    if key.is_nothing:
        return repeat(NO_KEY, len(batch))
    if decoded is None:
        decoded = {name: decode(batch.table.column(name)) for name in key.columns}
    columns = [decoded[name] for name in key.columns]
    return columns[0] if len(columns) == 1 else make_rows(row_class(key.columns), columns)
