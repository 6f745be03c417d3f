"""Aggregates that take rows back by keeping every value: how often there is each, or all of them in order of arrival.

What another kernel makes of the values that are left is the result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.operators.aggregation.kernel import Groups, Ints, Kernel, list_sizes, present, to_lists
from headwater.operators.aggregation.values import equality_codes, equality_codes_of_rows

_COUNTS = pa.field("counts", pa.list_(pa.int64()), nullable=False)


class CountedValues:
    """The different values of each group with their counts, for min, max, min_by, max_by, collect_set and count_distinct.

    Rows where the last column is null do not count. A value stands where it first came, until none is left of it. Whether
    one that goes and comes again within a partial keeps its place or not shows in collect_set, and where rows of min_by
    and max_by are equal in `by`.
    """

    def __init__(self, dtypes: Sequence[pa.DataType], inner: Kernel) -> None:
        self._inner = inner
        names = zip(("values", "bys"), dtypes, strict=False)
        self.fields = (*(pa.field(name, pa.list_(dtype), nullable=False) for name, dtype in names), _COUNTS)

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        if columns[-1].null_count:
            valid = columns[-1].is_valid()
            columns = [column.filter(valid) for column in columns]
            groups = groups.where(valid.to_numpy(zero_copy_only=False))
        return self._net(columns, groups.signed(np.ones(len(groups.of), np.int64)), groups)

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        *values, counts = (column.flatten() for column in columns)
        return self._net(values, counts.to_numpy(), groups.repeat(list_sizes(columns[0])))

    def _net(self, columns: Sequence[pa.Array], counts: Ints, groups: Groups) -> list[pa.Array]:
        codes = _in_groups(equality_codes_of_rows(columns), groups)
        rows = np.empty(int(codes.max(initial=-1)) + 1, np.int64)
        rows[codes[::-1]] = np.arange(len(codes))[::-1]
        net = Groups(codes, len(rows)).add(counts)
        rows, net = rows[net != 0], net[net != 0]
        kept = Groups(groups.of[rows], groups.count)
        order = pa.array(rows[kept.order])
        lists = [to_lists(column.take(order), kept.sizes) for column in columns]
        return [*lists, to_lists(pa.array(net[kept.order]), kept.sizes)]

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        *values, counts = (column.flatten() for column in columns)
        there = counts.to_numpy() > 0
        groups = _rows_of(columns[0]).where(there)
        return self._inner.result(self._inner.partial([column.filter(pa.array(there)) for column in values], groups))


class OrderedValues:
    """The values of each group in order of arrival, for first, last, the same without nulls, and collect_list.

    A row that takes one back takes the first that is equal, as in Flink. Which one that is, is known when all that came
    before is there: until then what is taken back stands beside what came.
    """

    def __init__(self, dtype: pa.DataType, inner: Kernel, *, drops_nulls: bool) -> None:
        self._inner, self._drops_nulls = inner, drops_nulls
        self.fields = tuple(pa.field(name, pa.list_(dtype), nullable=False) for name in ("values", "taken"))

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        values, groups = present(columns[0], groups) if self._drops_nulls else (columns[0], groups)
        adds = groups.signed(np.ones(len(groups.of), np.int64)) > 0
        return [_lists(values.filter(pa.array(some)), groups.where(some)) for some in (adds, ~adds)]

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        return [_lists(column.flatten(), groups.repeat(list_sizes(column))) for column in columns]

    def settle(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        values, taken = (column.flatten() for column in columns)
        if not len(taken):
            return list(columns)
        of_values, of_taken = map(_rows_of, columns)
        of = np.concatenate([of_values.of, of_taken.of])
        codes = _in_groups(equality_codes(pa.concat_arrays([values, taken])), Groups(of, of_values.count))
        came, went = codes[: len(values)], codes[len(values) :]
        size = int(codes.max()) + 1
        stays = _nth(came) >= np.bincount(went, minlength=size)[came]
        is_owed = _nth(went) >= np.bincount(came, minlength=size)[went]
        return [
            _lists(values.filter(pa.array(stays)), of_values.where(stays)),
            _lists(taken.filter(pa.array(is_owed)), of_taken.where(is_owed)),
        ]

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        values = self.settle(columns)[0]
        return self._inner.result(self._inner.partial([values.flatten()], _rows_of(values)))


def _lists(values: pa.Array, groups: Groups) -> pa.Array:
    return to_lists(values.take(pa.array(groups.order)), groups.sizes)


def _rows_of(lists: pa.Array) -> Groups:
    """For each item of lists, which list it is in."""
    sizes = list_sizes(lists)
    return Groups(np.repeat(np.arange(len(sizes)), sizes), len(sizes))


def _in_groups(codes: Ints, groups: Groups) -> Ints:
    """Codes that are equal only within a group, numbered as they first come."""
    pairs = pa.array(groups.of * (int(codes.max(initial=0)) + 1) + codes).dictionary_encode()
    found: Ints = pairs.indices.to_numpy().astype(np.int64)
    return found


def _nth(codes: Ints) -> Ints:
    """For each code, how many of the same come before it."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    firsts = np.flatnonzero(np.diff(ordered, prepend=-1))
    numbers = np.empty(len(codes), np.int64)
    numbers[order] = np.arange(len(codes)) - np.repeat(firsts, np.diff(np.append(firsts, len(codes))))
    return numbers
