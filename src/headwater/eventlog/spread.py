"""Spreading rows over partitions by a hash of a column that is the same in every process, version and type width."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.eventlog.errors import LogArgument

if TYPE_CHECKING:
    import numpy.typing as npt

NULL_PARTITION = 0
"""Rows without a key have one place, as any other key."""


def partition_of(column: pa.ChunkedArray, partitions: int, name: str) -> npt.NDArray[np.int64]:
    """Return the partition of each row: numbers by value, text and bytes by crc32, nulls in one place."""
    try:
        encoded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    except pa.ArrowNotImplementedError:
        raise LogArgument.of(f"the key column {name!r}", "of a flat type Arrow can hash", str(column.type)) from None
    hashes = _mixed(_numbers(encoded.dictionary))
    places = (hashes % np.uint64(partitions)).astype(np.int64)
    places = np.append(places, NULL_PARTITION)  # index -1, where null rows point
    rows: npt.NDArray[np.int64] = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    return places[rows]


def split(table: pa.Table, by: str, partitions: int) -> dict[int, pa.Table]:
    """Return the rows of each partition that gets any, in their order."""
    places = partition_of(table.column(by), partitions, by)
    ordered = table.take(pa.array(np.argsort(places, kind="stable")))
    counts = np.bincount(places, minlength=partitions)
    ends = np.cumsum(counts)
    return {p: ordered.slice(int(ends[p] - counts[p]), int(counts[p])) for p in range(partitions) if counts[p]}


def _numbers(values: pa.Array) -> npt.NDArray[np.uint64]:
    """Return a 64-bit number per distinct value."""
    kind = values.type
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int64())
    elif pa.types.is_date32(kind) or pa.types.is_time32(kind):
        values = values.cast(pa.int32()).cast(pa.int64())
    elif pa.types.is_signed_integer(kind) or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind)):
        values = values.cast(pa.int64())
    elif pa.types.is_unsigned_integer(kind):
        values = values.cast(pa.uint64())
    elif pa.types.is_floating(kind):
        numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0  # -0.0 and 0.0 are one key
        numbers[np.isnan(numbers)] = np.nan
        return np.ascontiguousarray(numbers).view(np.uint64)
    else:
        return np.array([zlib.crc32(_key_bytes(value)) for value in values.to_pylist()], dtype=np.uint64)
    whole: npt.NDArray[np.int64 | np.uint64] = values.to_numpy(zero_copy_only=False)
    return whole.view(np.uint64)


def _key_bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Apply the finaliser of splitmix64: neighbouring numbers land far apart."""
    with np.errstate(over="ignore"):
        numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
        numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return numbers ^ (numbers >> np.uint64(31))
