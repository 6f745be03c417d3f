"""Aggregates whose result is the value of one of the rows: first, last, and those with the smallest or largest value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.operators.aggregation.kernel import Bools, Groups, Ints, mask, present
from headwater.operators.aggregation.values import order_codes


class Arrival:
    """The value of the row that arrived first or last: of all, or of those where it is not null."""

    def __init__(self, dtype: pa.DataType, *, last: bool, drops_nulls: bool = False) -> None:
        self._last, self._drops_nulls = last, drops_nulls
        self.fields = (pa.field("value", dtype), pa.field("seen", pa.bool_(), nullable=False))

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        if self._drops_nulls and columns[0].null_count:
            there = mask(columns[0].is_valid())
            return self._pick(columns[0], np.flatnonzero(there), groups.where(there))
        return self._pick(columns[0], np.arange(len(groups.of)), groups)

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        seen = mask(columns[1])
        return self._pick(columns[0], np.flatnonzero(seen), groups.where(seen))

    def _pick(self, values: pa.Array, rows: Ints, groups: Groups) -> list[pa.Array]:
        picked = _last_row(rows, groups) if self._last else _first_row(rows, groups)
        return [_take(values, picked), pa.array(picked >= 0)]

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        return columns[0]


class Extreme:
    """The row with the smallest or largest value in the last of its columns, of several the first to arrive.

    Rows where this column is null do not count. Min and max keep one column, min_by and max_by two.
    """

    def __init__(self, dtypes: Sequence[pa.DataType], *, largest: bool) -> None:
        self._largest = largest
        self.fields = tuple(pa.field(name, dtype) for name, dtype in zip(("value", "by"), dtypes, strict=False))

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        picked = self._pick(columns[-1], groups)
        return [_take(column, picked) for column in columns]

    merge = partial

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        return columns[0]

    def _pick(self, by: pa.Array, groups: Groups) -> Ints:
        rows = np.flatnonzero(mask(by.is_valid())) if by.null_count else np.arange(len(by))
        values, groups = present(by, groups)
        codes = order_codes(values, groups)
        limits = np.iinfo(np.int64)
        best = np.full(groups.count, limits.min if self._largest else limits.max)
        (np.maximum if self._largest else np.minimum).at(best, groups.of, codes)
        hits: Bools = codes == best[groups.of]
        return _first_row(rows[hits], groups.where(hits))


def _first_row(rows: Ints, groups: Groups) -> Ints:
    return _last_row(rows[::-1], Groups(groups.of[::-1], groups.count))


def _last_row(rows: Ints, groups: Groups) -> Ints:
    """The last row of each group, -1 where there is none: of several assignments to a place numpy keeps the last."""
    picked = np.full(groups.count, -1)
    picked[groups.of] = rows
    return picked


def _take(values: pa.Array, rows: Ints) -> pa.Array:
    return values.take(pa.array(rows, mask=rows < 0))
