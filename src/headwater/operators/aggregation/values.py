"""Values as integers, so that numpy compares whole columns of any type at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.operators.aggregation.kernel import Groups, Ints

_LONGEST_IN_A_WORD = 18
"""Digits of a decimal that always fit an int64."""


def float_bits(array: pa.Array) -> Ints:
    """Floats as words that are equal when Spark calls the floats equal: one NaN, one zero. Nulls become zero."""
    floats = array.cast(pa.float64()).fill_null(0.0).to_numpy() + 0.0
    floats[np.isnan(floats)] = np.nan
    bits: Ints = floats.view(np.int64)
    return bits


def equality_codes(array: pa.Array) -> Ints:
    """A number for each value, the same for equal values."""
    if pa.types.is_struct(array.type):
        codes: Ints = array.is_null().cast(pa.int8()).to_numpy().astype(np.int64)
        for child in array.flatten():
            codes = _paired(codes, equality_codes(child))
        return codes
    if pa.types.is_list(array.type) or pa.types.is_map(array.type):
        return _list_codes(array)
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64)
    if pa.types.is_floating(array.type):
        array = pc.if_else(array.is_valid(), pa.array(float_bits(array)), None)
    return array.dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def equality_codes_of_rows(columns: Sequence[pa.Array]) -> Ints:
    """A number for each row of columns, at least one, the same for rows of equal values."""
    codes = equality_codes(columns[0])
    for column in columns[1:]:
        codes = _paired(codes, equality_codes(column))
    return codes


def _paired(codes: Ints, others: Ints) -> Ints:
    wide = pa.array(codes * (int(others.max(initial=0)) + 1) + others)
    return wide.dictionary_encode().indices.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def _list_codes(array: pa.Array) -> Ints:
    """Lists, and maps as the lists of their entries, are equal when their items are, in order: as words of those' codes."""
    if pa.types.is_map(array.type):
        array = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
    items = equality_codes(array.flatten())
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(pc.list_value_length(array).fill_null(0).to_numpy() * items.itemsize, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(items)]
    words = pa.Array.from_buffers(pa.large_binary(), len(array), buffers)
    codes = words.dictionary_encode().indices.to_numpy().astype(np.int64)
    return _paired(codes, array.is_null().cast(pa.int8()).to_numpy().astype(np.int64))


def order_codes(array: pa.Array, groups: Groups) -> Ints:
    """A number for each value, ordered as the values of the same group are. There must be no nulls; NaN is largest."""
    dtype = array.type
    if pa.types.is_floating(dtype):
        bits = float_bits(array)
        return bits ^ (bits >> 63 & np.iinfo(np.int64).max)
    if pa.types.is_boolean(dtype):
        array = array.cast(pa.int8())
    elif pa.types.is_date32(dtype):
        array = array.view(pa.int32())
    elif pa.types.is_temporal(dtype):
        array = array.view(pa.int64())
    elif pa.types.is_decimal(dtype) and dtype.precision <= _LONGEST_IN_A_WORD:
        words = np.frombuffer(array.buffers()[1] or b"", np.int64)
        return words[2 * array.offset : 2 * (array.offset + len(array)) : 2]
    elif not pa.types.is_integer(dtype):
        return _ranks(array, groups)
    return array.to_numpy().astype(np.int64, copy=False)  # type: ignore[no-any-return]


def _ranks(array: pa.Array, groups: Groups) -> Ints:
    """The places of strings, bytes and long decimals in their order; a value alone in its group needs none."""
    contested = groups.sizes[groups.of] > 1
    encoded = array.filter(pa.array(contested)).dictionary_encode()
    places = np.empty(len(encoded.dictionary), np.int64)
    places[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(places))
    codes = np.zeros(len(array), np.int64)
    codes[contested] = places[encoded.indices.to_numpy()]
    return codes
