"""Whether values are equal, whole columns at a time, for every type that rows have. Nulls are equal, and so are NaNs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.data.batch import flat
from headwater.state.keys import Hashes, hash_keys

_NULL, _PRIME = np.uint64(0x9FB21C651E98DF25), np.uint64(0x100000001B3)
_NAN = np.uint64(0x7FF8 << 48)


def hash_rows(rows: pa.Table) -> Hashes:
    """A hash of each row's values; nothing that is stored depends on it."""
    hashes = np.zeros(len(rows), np.uint64)
    for column in rows.columns:
        hashes = hashes * _PRIME + _hash(flat(column))
    return hashes


def equal_values(left: pa.Array, right: pa.Array) -> npt.NDArray[np.bool_]:
    """Whether the first value of one array equals the first of the other, and so on."""
    dtype = left.type
    if pa.types.is_struct(dtype):
        equal = np.ones(len(left), np.bool_)
        for ours, theirs in zip(left.flatten(), right.flatten(), strict=True):
            equal &= equal_values(ours, theirs)
    elif pa.types.is_list(dtype) or pa.types.is_map(dtype):
        equal = _equal_lists(left, right)
    else:
        equal = np.asarray(pc.equal(left, right).fill_null(False))  # noqa: FBT003  Arrow's signature
        if pa.types.is_floating(dtype):
            equal |= np.asarray(pc.and_(pc.is_nan(left), pc.is_nan(right)).fill_null(False))  # noqa: FBT003
    nulls = np.asarray(left.is_null()), np.asarray(right.is_null())
    return np.where(nulls[0] | nulls[1], nulls[0] & nulls[1], equal)


def equal_rows(left: pa.Table, right: pa.Table) -> npt.NDArray[np.bool_]:
    """Whether the first row of one table equals the first of the other, and so on."""
    equal = np.ones(len(left), np.bool_)
    for ours, theirs in zip(left.columns, right.columns, strict=True):
        equal &= equal_values(flat(ours), flat(theirs))
    return equal


def first_equal(rows: pa.Table) -> npt.NDArray[np.int64]:
    """For each row, the first row that equals it."""
    hashes = hash_rows(rows)
    found = np.empty(len(rows), np.int64)
    left = np.arange(len(rows))
    while len(left):  # once, but for rows that share their hash with others by chance
        _, first, group = np.unique(hashes[left], return_index=True, return_inverse=True)
        likely = left[first][group]
        equal = equal_rows(rows.take(pa.array(left)), rows.take(pa.array(likely)))
        found[left[equal]] = likely[equal]
        left = left[~equal]
    return found


def _hash(array: pa.Array) -> Hashes:
    dtype = array.type
    if pa.types.is_struct(dtype):
        hashes = np.ones(len(array), np.uint64)
        for child in array.flatten():
            hashes = hashes * _PRIME + _hash(child)
    elif pa.types.is_list(dtype) or pa.types.is_map(dtype):
        offsets, values = _elements(array)
        totals = np.concatenate([[np.uint64(0)], np.cumsum(_hash(values) * _places(offsets))])
        hashes = (totals[offsets[1:]] - totals[offsets[:-1]]) * _PRIME + np.diff(offsets).astype(np.uint64)
    elif pa.types.is_floating(dtype):
        numbers = array.cast(pa.float64()).fill_null(0.0).to_numpy() + 0.0  # the two zeros are one
        hashes = hash_keys(pa.array(np.where(np.isnan(numbers), _NAN, numbers.view(np.uint64)).view(np.int64)))
    else:
        return hash_keys(array)
    return np.where(np.asarray(array.is_null()), _NULL, hashes)


def _places(offsets: npt.NDArray[np.int64]) -> Hashes:
    """For each element of lists, an odd number that tells its place in its list."""
    places = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
    return (2 * places + 1).astype(np.uint64)


def _equal_lists(left: pa.Array, right: pa.Array) -> npt.NDArray[np.bool_]:
    (ours, our_values), (theirs, their_values) = _elements(left), _elements(right)
    lengths = np.diff(ours)
    equal: npt.NDArray[np.bool_] = lengths == np.diff(theirs)
    compared = np.repeat(equal, lengths)
    at = np.flatnonzero(compared)
    shift = np.repeat(theirs[:-1] - ours[:-1], lengths)
    differs = ~equal_values(our_values.take(pa.array(at)), their_values.take(pa.array(at + shift[at])))
    lists = np.repeat(np.arange(len(left)), lengths)[at]
    equal[lists[differs]] = False
    return equal


def _elements(array: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """The elements of lists or maps end to end, and where each list begins and the last ends; null ones are empty."""
    plain = array.take(pa.array(np.arange(len(array))))  # begins at its first element, and null lists have none
    return plain.offsets.to_numpy().astype(np.int64), plain.values
