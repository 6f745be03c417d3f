"""Counts, sums, means and variances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.aggregates.facts import sum_type
from headwater.data.schema import type_ddl
from headwater.errors import RowError
from headwater.operators.aggregation.kernel import Floats, Groups, Ints, mask, present

_LARGEST = np.iinfo(np.int64).max
_LOW_HALF = 0xFFFFFFFF
_WIDE = 76
"""Digits of the decimals that sums are taken in: no number of rows can overflow them."""


class Count:
    """How many rows, or values that are not null."""

    fields = (pa.field("count", pa.int64(), nullable=False),)

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        return [pa.array(count_present(columns[0], groups) if columns else groups.sizes)]

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        return [pa.array(groups.add(columns[0].to_numpy()))]

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        return columns[0]


class Sum:
    """The sum of a column, null without values. A sum that leaves its type is an error that names step and column."""

    def __init__(self, dtype: pa.DataType, step: str, column: str) -> None:
        self.dtype, self.step, self.column = dtype, step, column
        self.fields = (pa.field("sum", dtype),)

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        return [self.add(columns[0], groups)]

    merge = partial

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        return columns[0]

    def add(self, array: pa.Array, groups: Groups) -> pa.Array:
        """The sum of each group."""
        if pa.types.is_decimal(self.dtype):
            return self._add_decimals(array, groups)
        values, groups = present(array, groups)
        if pa.types.is_floating(self.dtype):
            sums: Floats | Ints = groups.add_floats(floats_of(values))
        else:
            sums = self._add_integers(values.cast(pa.int64()).to_numpy(), groups)
        return pa.array(sums, mask=groups.sizes == 0)

    def _add_integers(self, values: Ints, groups: Groups) -> Ints:
        if not len(values):
            return np.zeros(groups.count, np.int64)
        if max(-int(values.min()), int(values.max())) * len(values) <= _LARGEST:
            return groups.add(groups.signed(values))
        low = groups.add(groups.signed(values & _LOW_HALF))
        high = groups.add(groups.signed(values >> 32)) + (low >> 32)
        overflow = np.flatnonzero(high != high.astype(np.int32))
        if len(overflow):
            at = overflow[0]
            raise self._overflow((int(high[at]) << 32) + (int(low[at]) & _LOW_HALF))
        return high << 32 | low & _LOW_HALF

    def _add_decimals(self, array: pa.Array, groups: Groups) -> pa.Array:
        wide = array.cast(pa.decimal256(_WIDE, self.dtype.scale))
        if groups.signs is not None:
            wide = pc.if_else(pa.array(groups.signs > 0), wide, pc.negate(wide))
        table = pa.table({"group": groups.of, "sum": wide}).group_by("group", use_threads=False)
        found = table.aggregate([("sum", "sum")]).combine_chunks()
        places = np.full(groups.count, -1)
        places[found["group"].to_numpy()] = np.arange(len(found))
        sums = found["sum_sum"].combine_chunks().take(pa.array(places, mask=places < 0))
        try:
            return sums.cast(self.dtype)
        except pa.ArrowInvalid:
            raise self._overflow(pc.max(pc.abs(sums)).as_py()) from None

    def _overflow(self, value: object) -> RowError:
        instead = "a decimal of fewer places" if pa.types.is_decimal(self.dtype) else "decimal(38,0)"
        why = f"the sum of column {self.column!r} overflows; cast the column to {instead} or to double before"
        return RowError.value_does_not_fit(self.step, self.column, value, type_ddl(self.dtype), why)


class Average:
    """The mean of a column, from its sum and its count: doubles, or exact decimals."""

    def __init__(self, column_type: pa.DataType, result_type: pa.DataType, step: str, column: str) -> None:
        self._exact = pa.types.is_decimal(column_type)
        self._sum = Sum(sum_type(column_type) if self._exact else pa.float64(), step, column)
        self._type = result_type
        self.fields = (*self._sum.fields, *Count.fields)

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        return [self._sum.add(columns[0], groups), pa.array(count_present(columns[0], groups))]

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        return [self._sum.add(columns[0], groups), pa.array(groups.add(columns[1].to_numpy()))]

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        sums, counts = columns
        if not self._exact:
            return pc.divide(sums, counts.cast(pa.float64()))
        # Arrow's quotient is cut off far behind the places we keep, so rounding it half up rounds the true one.
        wide = sums.cast(pa.decimal256(sums.type.precision, sums.type.scale))
        many = pc.if_else(pc.equal(counts, 0), None, counts).cast(pa.decimal256(19, 0))
        rounded = pc.round(pc.divide(wide, many), self._type.scale, "half_towards_infinity")
        try:
            return rounded.cast(self._type)
        except pa.ArrowInvalid:
            value, why = (
                pc.max(pc.abs(rounded)).as_py(),
                "cast the column to a decimal of fewer places or to double before",
            )
            step, column = self._sum.step, self._sum.column
            raise RowError.value_does_not_fit(step, column, value, type_ddl(self._type), why) from None


class Variance:
    """The sample variance, or its root, of a column: null for fewer than two values.

    Kept as count, mean and the sum of squared distances from the mean, which stays exact when the mean is large.
    """

    fields = (
        pa.field("count", pa.int64(), nullable=False),
        pa.field("mean", pa.float64(), nullable=False),
        pa.field("squares", pa.float64(), nullable=False),
    )

    def __init__(self, *, root: bool) -> None:
        self._root = root

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        values, groups = present(columns[0], groups)
        floats = floats_of(values)
        return self._merge(np.ones(len(floats), np.int64), floats, np.zeros(len(floats)), groups)

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        counts, means, squares = (column.to_numpy() for column in columns)
        return self._merge(counts, means, squares, groups)

    def _merge(self, counts: Ints, means: Floats, squares: Floats, groups: Groups) -> list[pa.Array]:
        total = groups.add(counts)
        some = np.maximum(total, 1)
        weights = counts.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            mean = groups.add_floats(weights * means) / some
            apart = np.where(counts > 0, means - mean[groups.of], 0.0)
            # The mean is rounded, so the distances do not quite add up to zero; what is left corrects it.
            left = groups.add_floats(weights * apart) / some
            spread = groups.add_floats(squares + weights * apart * apart) - total * left * left
        return [pa.array(total), pa.array(mean + left), pa.array(np.maximum(spread, 0.0))]

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        counts, squares = columns[0].to_numpy(), columns[2].to_numpy()
        variance = squares / np.maximum(counts - 1, 1)
        return pa.array(np.sqrt(variance) if self._root else variance, mask=counts < 2)


def count_present(array: pa.Array, groups: Groups) -> Ints:
    """How many values of each group are not null."""
    return groups.where(mask(array.is_valid())).sizes if array.null_count else groups.sizes


def floats_of(values: pa.Array) -> Floats:
    """Numbers of any type as floats."""
    floats: Floats = values.cast(pa.float64(), safe=False).to_numpy()
    return floats
