"""Keys: the hash that places a key in its key group, the same in every process and version of Python.

The hash is part of the format of stored state: changing it would move keys to other groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.shapes import fits

Hashes = npt.NDArray[np.uint64]

DEFAULT_KEY_GROUPS = 128
MAX_KEY_GROUPS = 32_768
_PRIME = np.uint64(0x100000001B3)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_NULL = np.uint64(0x5851F42D4C957F2D)


def are_sizes(parallelism: object, groups: object) -> bool:
    """Whether a job can have so many subtasks and key groups."""
    return fits(parallelism, int) and fits(groups, int) and 1 <= parallelism <= groups <= MAX_KEY_GROUPS  # type: ignore[operator]


def hash_keys(array: pa.Array | pa.ChunkedArray) -> Hashes:
    """A 64-bit hash of each key."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    dtype = array.type
    if pa.types.is_struct(dtype):
        hashes = np.full(len(array), _GOLDEN, np.uint64)
        for child in array.flatten():
            hashes = _mix(hashes * _PRIME + hash_keys(child))
    elif pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        hashes = _hash_bytes(array)
    else:
        hashes = _mix(_as_words(array) * _GOLDEN)
    if array.null_count:
        hashes = np.where(array.is_null().to_numpy(zero_copy_only=False), _NULL, hashes)
    return hashes


def key_groups(array: pa.Array | pa.ChunkedArray, groups: int) -> npt.NDArray[np.int64]:
    """The key group of each key."""
    return (hash_keys(array) % np.uint64(groups)).astype(np.int64)


def subtasks_of(groups_of_rows: npt.NDArray[np.int64], groups: int, parallelism: int) -> npt.NDArray[np.int64]:
    """The subtask that owns each key group: contiguous ranges, as Flink divides them."""
    return groups_of_rows * parallelism // groups


def _as_words(array: pa.Array) -> Hashes:
    dtype = array.type
    if pa.types.is_boolean(dtype):
        array = array.cast(pa.int64())
    elif pa.types.is_decimal(dtype):
        return _hash_bytes(pc.cast(array, pa.string()))
    elif pa.types.is_date32(dtype):
        array = array.view(pa.int32()).cast(pa.int64())
    elif pa.types.is_temporal(dtype):
        array = array.view(pa.int64())
    else:
        array = array.cast(pa.int64())
    return np.ascontiguousarray(array.fill_null(0).to_numpy()).view(np.uint64)


def _hash_bytes(array: pa.Array) -> Hashes:
    """A polynomial over each value's bytes, all values at once: powers of a prime weigh the bytes by place."""
    count = len(array)
    if count == 0:
        return np.zeros(0, np.uint64)
    buffers = array.buffers()
    offsets = np.frombuffer(buffers[1], np.int32, count + 1, array.offset * 4).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    starts, lengths = offsets[:-1] - first, np.diff(offsets)
    if last == first:
        return _mix(lengths.astype(np.uint64))
    data = np.frombuffer(buffers[2], np.uint8, last - first, first).astype(np.uint64) + np.uint64(1)
    place = np.arange(last - first, dtype=np.int64) - np.repeat(starts, lengths)
    data *= _powers(int(lengths.max()))[place]
    sums = np.zeros(count, np.uint64)
    filled = lengths > 0
    sums[filled] = np.add.reduceat(data, starts[filled])
    return _mix(sums + lengths.astype(np.uint64))


_power_table = np.ones(1, np.uint64)


def _powers(length: int) -> Hashes:
    global _power_table  # noqa: PLW0603  a table that only grows, shared by all calls of the process
    if len(_power_table) < length:
        factors = np.full(max(length, 64), _PRIME, np.uint64)
        factors[0] = 1
        _power_table = np.multiply.accumulate(factors)
    return _power_table


def _mix(hashes: Hashes) -> Hashes:
    """The finalizer of MurmurHash3: every input bit reaches every output bit."""
    hashes = hashes ^ (hashes >> np.uint64(33))
    hashes = hashes * np.uint64(0xFF51AFD7ED558CCD)
    hashes = hashes ^ (hashes >> np.uint64(33))
    hashes = hashes * np.uint64(0xC4CEB9FE1A85EC53)
    return hashes ^ (hashes >> np.uint64(33))


# -- one key at a time -----------------------------------------------------------------------------------------------------

_WORD = (1 << 64) - 1


def hash_of_one(dtype: pa.DataType) -> Callable[[Any], int] | None:
    """What gives the hash of a single key, as `hash_keys` does of many: for one the calls of Arrow take far longer.

    None for types that it does not know.
    """
    if pa.types.is_struct(dtype):
        parts = [hash_of_one(field.type) for field in dtype]
        known = [part for part in parts if part is not None]
        return _one_struct(known) if len(known) == len(parts) else None
    if pa.types.is_string(dtype):
        return _one_string
    return _one_integer if pa.types.is_integer(dtype) or pa.types.is_boolean(dtype) else None


def _one_struct(parts: list[Callable[[Any], int]]) -> Callable[[Any], int]:
    def hash_one(key: Any) -> int:
        if key is None:
            return int(_NULL)
        found = int(_GOLDEN)
        for part, value in zip(parts, key, strict=True):
            found = _mix_one(found * int(_PRIME) + part(value))
        return found

    return hash_one


def _one_string(key: str | None) -> int:
    if key is None:
        return int(_NULL)
    data = key.encode()
    found, power = 0, 1
    for byte in data:
        found += (byte + 1) * power
        power = power * int(_PRIME) & _WORD
    return _mix_one(found + len(data))


def _one_integer(key: int | None) -> int:
    return int(_NULL) if key is None else _mix_one(key * int(_GOLDEN))


def _mix_one(number: int) -> int:
    number &= _WORD
    number ^= number >> 33
    number = number * 0xFF51AFD7ED558CCD & _WORD
    number ^= number >> 33
    number = number * 0xC4CEB9FE1A85EC53 & _WORD
    return number ^ (number >> 33)
