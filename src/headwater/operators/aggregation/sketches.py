"""Aggregates that estimate in bounded space: distinct values (HyperLogLog) and quantiles (DDSketch).

The accumulators are sparse and sorted lists, so equal inputs give equal bytes however they were cut. They are stored
state: the constants here are part of its format.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.operators.aggregation.kernel import Floats, Groups, Ints, list_sizes, present, to_lists
from headwater.operators.aggregation.values import float_bits
from headwater.state.keys import hash_keys

_REGISTER_BITS, _RANK_BITS = 11, 6
_REGISTERS = 1 << _REGISTER_BITS
_HASH_BITS = 64 - _REGISTER_BITS
_ALPHA = 0.7213 / (1 + 1.079 / _REGISTERS)

_ERROR = 0.01
_LOG_GAMMA = math.log((1 + _ERROR) / (1 - _ERROR))
_ONE, _INFINITE, _NAN = 1 << 16, 60_000, 60_001
"""The bucket of 1.0, and how far above it infinity and NaN are kept; no number is more than 37,300 buckets away."""
_BUCKET_BITS = 18


class DistinctEstimate:
    """HyperLogLog: for each register the longest run of zeros seen, as register << 6 | rank."""

    fields = (pa.field("registers", pa.list_(pa.int32()), nullable=False),)

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        values, groups = present(columns[0], groups)
        hashes = hash_keys(_hashable(values))
        rest = (hashes & np.uint64((1 << _HASH_BITS) - 1)).astype(np.float64)
        ranks = _HASH_BITS + 1 - np.frexp(rest)[1].astype(np.int64)
        return self._longest((hashes >> np.uint64(_HASH_BITS)).astype(np.int64) << _RANK_BITS | ranks, groups)

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        codes = columns[0].flatten().to_numpy().astype(np.int64)
        return self._longest(codes, groups.repeat(list_sizes(columns[0])))

    def _longest(self, codes: Ints, groups: Groups) -> list[pa.Array]:
        bits = _REGISTER_BITS + _RANK_BITS
        words = np.sort(groups.of << bits | codes)
        words = words[np.diff(words >> _RANK_BITS, append=-1) != 0]
        kept = Groups(words >> bits, groups.count)
        return [to_lists(pa.array((words & ((1 << bits) - 1)).astype(np.int32)), kept.sizes)]

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        sizes = list_sizes(columns[0])
        ranks = columns[0].flatten().to_numpy() & ((1 << _RANK_BITS) - 1)
        groups = Groups(np.repeat(np.arange(len(sizes)), sizes), len(sizes))
        untouched = _REGISTERS - sizes
        estimate = _ALPHA * _REGISTERS**2 / (untouched + groups.add_floats(np.ldexp(1.0, -ranks)))
        few = _REGISTERS * np.log(_REGISTERS / np.maximum(untouched, 1))
        use_few = (estimate <= 2.5 * _REGISTERS) & (untouched > 0)
        return pa.array(np.rint(np.where(use_few, few, estimate)).astype(np.int64))


class Quantiles:
    """DDSketch: how many values fall into each bucket, buckets growing by 2 %, so a value is known to 1 %.

    The rank of a quantile is Spark's: the smallest value with at least the share q of all values at or below it.
    """

    fields: tuple[pa.Field, ...] = (
        pa.field("buckets", pa.list_(pa.int32()), nullable=False),
        pa.field("counts", pa.list_(pa.int64()), nullable=False),
        pa.field("low", pa.float64()),
        pa.field("high", pa.float64()),
    )

    def __init__(self, q: float | tuple[float, ...]) -> None:
        self._many = isinstance(q, tuple)
        self._q = np.array(q, np.float64, ndmin=1)

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        values, groups = present(columns[0], groups)
        floats = values.cast(pa.float64(), safe=False).to_numpy()
        words, counts = np.unique(_words(_buckets(floats), groups), return_counts=True)
        return [*self._lists(words, counts.astype(np.int64), groups), *_ends(floats, floats, groups)]

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        inner = groups.repeat(list_sizes(columns[0]))
        words, at = np.unique(_words(columns[0].flatten().to_numpy(), inner), return_inverse=True)
        counts = Groups(at, len(words)).add(columns[1].flatten().to_numpy())
        low, high = (column.fill_null(math.nan).to_numpy() for column in columns[2:])
        return [*self._lists(words, counts, groups), *_ends(low, high, groups)]

    def _lists(self, words: Ints, counts: Ints, groups: Groups) -> list[pa.Array]:
        sizes = Groups(words >> _BUCKET_BITS, groups.count).sizes
        buckets = (words & ((1 << _BUCKET_BITS) - 1)) - (1 << (_BUCKET_BITS - 1))
        return [to_lists(pa.array(buckets.astype(np.int32)), sizes), to_lists(pa.array(counts), sizes)]

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        sizes, counts = list_sizes(columns[0]), columns[1].flatten().to_numpy()
        groups = Groups(np.repeat(np.arange(len(sizes)), sizes), len(sizes))
        totals = groups.add(counts)
        before = np.cumsum(totals) - totals
        # A hair is taken off, as 0.1 * 30 is a little more than 3.
        ranks = np.maximum(np.ceil(np.outer(totals, self._q) - 1e-9), 1).astype(np.int64)
        at = np.searchsorted(np.cumsum(counts), before[:, None] + ranks)
        middles = np.append(_middles(columns[0].flatten().to_numpy()), np.nan)
        low, high = (column.fill_null(math.nan).to_numpy()[:, None] for column in columns[2:])
        found = middles[np.minimum(at, len(counts))]
        exact = np.where(ranks == 1, low, np.where(ranks == totals[:, None], high, np.fmax(np.fmin(found, high), low)))
        found = np.where(np.isfinite(found), exact, found)
        absent = totals == 0
        if not self._many:
            return pa.array(found[:, 0], mask=absent)
        return to_lists(pa.array(found.ravel()), np.full(len(sizes), len(self._q)), absent)


class SignedQuantiles(Quantiles):
    """The same out of buckets that rows are taken back from.

    The smallest and the largest value are not known to the last bit: nobody knows the next one when one of them goes.
    """

    fields = Quantiles.fields[:2]

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        values, groups = present(columns[0], groups)
        buckets = _buckets(values.cast(pa.float64(), safe=False).to_numpy())
        return self._net(_words(buckets, groups), groups.signed(np.ones(len(buckets), np.int64)), groups)

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        inner = groups.repeat(list_sizes(columns[0]))
        return self._net(_words(columns[0].flatten().to_numpy(), inner), columns[1].flatten().to_numpy(), groups)

    def _net(self, words: Ints, counts: Ints, groups: Groups) -> list[pa.Array]:
        words, at = np.unique(words, return_inverse=True)
        net = Groups(at, len(words)).add(counts)
        return self._lists(words[net != 0], net[net != 0], groups)

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        sizes, counts = list_sizes(columns[0]), columns[1].flatten().to_numpy()
        inner = Groups(np.repeat(np.arange(len(sizes)), sizes), len(sizes)).where(counts > 0)
        buckets = columns[0].flatten().to_numpy()[counts > 0]
        lists = [to_lists(pa.array(values), inner.sizes) for values in (buckets, counts[counts > 0])]
        return super().result([*lists, *_ends(_middles(buckets), _middles(buckets), inner)])


def _buckets(floats: Floats) -> Ints:
    """The signed bucket of each value, ordered as the values are; zero has its own."""
    sizes = np.abs(floats)
    with np.errstate(divide="ignore"):
        powers = np.ceil(np.log(sizes) / _LOG_GAMMA)
    powers = np.where(np.isnan(floats), _NAN, np.minimum(powers, _INFINITE))
    buckets = np.where(sizes == 0, 0, _ONE + powers).astype(np.int64)
    return np.where(floats < 0, -buckets, buckets)


def _middles(buckets: Ints) -> Floats:
    """The value that stands for a bucket: off by at most 1 % from any value in it."""
    powers = np.abs(buckets).astype(np.float64) - _ONE
    sizes = np.exp(np.minimum(powers * _LOG_GAMMA + math.log(1 - _ERROR), math.log(np.finfo(np.float64).max)))
    sizes = np.where(powers == _INFINITE, np.inf, np.where(powers == _NAN, np.nan, sizes))
    return np.sign(buckets) * sizes


def _words(buckets: Ints, groups: Groups) -> Ints:
    return groups.of << _BUCKET_BITS | (buckets + (1 << (_BUCKET_BITS - 1)))


def _ends(lows: Floats, highs: Floats, groups: Groups) -> list[pa.Array]:
    """The smallest and the largest value, NaN aside; with them the outermost quantiles, and constants, are exact."""
    low, high = np.full(groups.count, np.nan), np.full(groups.count, np.nan)
    np.fmin.at(low, groups.of, lows)
    np.fmax.at(high, groups.of, highs)
    return [pa.array(ends, mask=np.isnan(ends)) for ends in (low, high)]


def _hashable(array: pa.Array) -> pa.Array:
    """The values as the hash of keys takes them: floats as words, also inside structs."""
    if pa.types.is_floating(array.type):
        return pa.array(float_bits(array), mask=array.is_null().to_numpy(zero_copy_only=False))
    if pa.types.is_struct(array.type):
        children = [_hashable(child) for child in array.flatten()]
        return pa.StructArray.from_arrays(children, [field.name for field in array.type], mask=array.is_null())
    return array
