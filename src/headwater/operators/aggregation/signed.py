"""Counts, sums, means, variances and quantiles that take rows back by arithmetic.

With each goes how many values there are, so that what is left of none is as if there had been none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.aggregates.facts import sum_type
from headwater.operators.aggregation.arithmetic import Average, Count, Sum, floats_of
from headwater.operators.aggregation.exact import (
    DIGITS,
    are_finite,
    as_floats,
    as_integers,
    exact_sums,
    exact_sums_of_squares,
    in_units,
    merged_sums,
)
from headwater.operators.aggregation.kernel import Groups, Ints, Kernel, present


class SignedCount(Count):
    """How many rows, or values that are not null."""

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        return [pa.array((present(columns[0], groups)[1] if columns else groups).net())]

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        return pa.array(_there(columns[0]))


class SignedSum:
    """The sum of integers or decimals, null without values; one that leaves its type is an error."""

    def __init__(self, dtype: pa.DataType, step: str, column: str) -> None:
        self._sum = Sum(dtype, step, column)
        self.fields = (*self._sum.fields, *Count.fields)

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        values, groups = present(columns[0], groups)
        return [self._sum.add(values, groups), pa.array(groups.net())]

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        return [self._sum.add(columns[0], groups), pa.array(groups.add(columns[1].to_numpy()))]

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        return pc.if_else(pc.greater(columns[1], 0), columns[0], None)


class SignedFloatSum:
    """The sum of floats, null without values.

    It is exact until it is given: taking back a large value leaves the small ones, which a rounded sum would have lost, and
    taking back a NaN or an infinite value leaves the finite ones.
    """

    fields = (pa.field("sum", DIGITS, nullable=False), *Count.fields)

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        values, groups = present(columns[0], groups)
        return [exact_sums(floats_of(values), groups), pa.array(groups.net())]

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        return [merged_sums(columns[0], groups), pa.array(groups.add(columns[1].to_numpy()))]

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        return pa.array(as_floats(columns[0]), mask=columns[1].to_numpy() <= 0)


def signed_sum(dtype: pa.DataType, step: str, column: str) -> Kernel:
    """What adds up to a type."""
    return SignedFloatSum() if pa.types.is_floating(dtype) else SignedSum(dtype, step, column)


class SignedAverage:
    """The mean of a column, from its sum and its count: doubles, or exact decimals."""

    def __init__(self, column_type: pa.DataType, result_type: pa.DataType, step: str, column: str) -> None:
        added = sum_type(column_type) if pa.types.is_decimal(column_type) else pa.float64()
        self._sum = signed_sum(added, step, column)
        self._average = Average(column_type, result_type, step, column)
        self.fields, self.partial, self.merge = self._sum.fields, self._sum.partial, self._sum.merge

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        return self._average.result([self._sum.result(columns), pa.array(_there(columns[1]))])


class SignedVariance:
    """The sample variance, or its root, of a column: null for fewer than two values.

    Kept as count, sum and sum of squares, the sums exact: the difference of the two large numbers that a variance is does
    not lose anything then. A mean and the squared distances from it, as kept where nothing is taken back, are rounded by
    every row, and what is rounded cannot be taken back.
    """

    fields = (
        pa.field("count", pa.int64(), nullable=False),
        pa.field("sum", DIGITS, nullable=False),
        pa.field("squares", DIGITS, nullable=False),
    )

    def __init__(self, *, root: bool) -> None:
        self._root = root

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        values, groups = present(columns[0], groups)
        floats = floats_of(values)
        return [pa.array(groups.net()), exact_sums(floats, groups), exact_sums_of_squares(floats, groups)]

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        return [
            pa.array(groups.add(columns[0].to_numpy())),
            merged_sums(columns[1], groups),
            merged_sums(columns[2], groups),
        ]

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        counts = _there(columns[0])
        sums, squares = as_integers(columns[1]), as_integers(columns[2])
        found = np.fromiter(map(_variance, counts.tolist(), sums, squares), np.float64, len(counts))
        found[~are_finite(columns[1])] = np.nan
        return pa.array(np.sqrt(found) if self._root else found, mask=counts < 2)


def _variance(count: int, total: int, squares: int) -> float:
    """The variance of so many values, of their sum and the sum of their squares in units, rounded once."""
    if count < 2:
        return 0.0
    try:
        return max(count * in_units(squares) - total * total, 0) / in_units(in_units(count * (count - 1)))
    except OverflowError:
        return math.inf


def _there(counts: pa.Array) -> Ints:
    """Counts, of which those below zero are of what is not there."""
    there: Ints = np.maximum(counts.to_numpy(), 0)
    return there
