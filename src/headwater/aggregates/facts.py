"""What is known of each aggregate function: one table, which everybody reads who must know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

_WIDEST_DECIMAL = 38


@dataclass(frozen=True)
class Need:
    """What a function needs of the column that it computes on, compares or orders by."""

    words: str
    fits: Callable[[pa.DataType], bool]
    action: str
    """What to do about a column that does not fit."""


@dataclass(frozen=True)
class Facts:
    """What is known of an aggregate function, whatever its columns are called."""

    result: Callable[[pa.DataType], pa.DataType]
    """The type of the result, which is Spark's, by the type of the column."""
    takes_back: Literal["by arithmetic", "by counted values", "not"]
    """How a row is taken back: by taking it off numbers, by keeping how often there is each value, or not at all."""
    needs: Need | None = None
    is_nullable: bool = True
    """Whether the result of no values is null; counts and collections of nothing are 0 and empty."""
    is_in_any_order: bool = False
    """Whether accumulators may be merged in any order, up to the rounding of floats: then windows keep them by slices,
    and rows are combined before the shuffle. Those of the others are merged in order of arrival."""
    has_quantiles: bool = False
    """Whether it is told which quantiles to give."""
    instead: str = ""
    """What can take rows back, of a function that cannot."""


def sum_type(dtype: pa.DataType) -> pa.DataType:
    """The type of a sum of numbers of a type."""
    if pa.types.is_decimal(dtype):
        return pa.decimal128(min(_WIDEST_DECIMAL, dtype.precision + 10), dtype.scale)
    return pa.int64() if pa.types.is_integer(dtype) else pa.float64()


def _average_type(dtype: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(dtype):
        return pa.decimal128(min(_WIDEST_DECIMAL, dtype.precision + 4), min(_WIDEST_DECIMAL, dtype.scale + 4))
    return pa.float64()


def _count_type(_: pa.DataType) -> pa.DataType:
    return pa.int64()


def _double(_: pa.DataType) -> pa.DataType:
    return pa.float64()


def _same(dtype: pa.DataType) -> pa.DataType:
    return dtype


def _is_number(dtype: pa.DataType) -> bool:
    return any(fits(dtype) for fits in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))


def _is_ordered(dtype: pa.DataType) -> bool:
    others = (pa.types.is_boolean, pa.types.is_string, pa.types.is_binary, pa.types.is_temporal)
    return _is_number(dtype) or any(fits(dtype) for fits in others)


def _is_comparable(dtype: pa.DataType) -> bool:
    if pa.types.is_struct(dtype):
        return all(_is_comparable(field.type) for field in dtype)
    return _is_ordered(dtype)


_NUMBER = Need("a number", _is_number, "cast the column to a number in a select before, or aggregate another one")
_ORDERED = Need("values with an order", _is_ordered, "use one of the column's fields or items, or hw.first or hw.last")
_COMPARABLE = Need(
    "values that compare", _is_comparable, "turn arrays and maps into a string or a struct in a select before"
)

_EXTREME = Facts(_same, "by counted values", _ORDERED, is_in_any_order=True)
_EXTREME_ROW = Facts(_same, "by counted values", _ORDERED)
_ARRIVAL = Facts(_same, "by counted values")
_SPREAD = Facts(_double, "by arithmetic", _NUMBER, is_in_any_order=True)

FACTS: Mapping[str, Facts] = {
    "count": Facts(_count_type, "by arithmetic", is_nullable=False, is_in_any_order=True),
    "sum": Facts(sum_type, "by arithmetic", _NUMBER, is_in_any_order=True),
    "avg": Facts(_average_type, "by arithmetic", _NUMBER, is_in_any_order=True),
    "stddev": _SPREAD,
    "var": _SPREAD,
    "min": _EXTREME,
    "max": _EXTREME,
    "min_by": _EXTREME_ROW,
    "max_by": _EXTREME_ROW,
    "first": _ARRIVAL,
    "last": _ARRIVAL,
    "first_value": _ARRIVAL,
    "last_value": _ARRIVAL,
    "collect_list": Facts(pa.list_, "by counted values", is_nullable=False),
    "collect_set": Facts(pa.list_, "by counted values", _COMPARABLE, is_nullable=False),
    "count_distinct": Facts(_count_type, "by counted values", _COMPARABLE, is_nullable=False, is_in_any_order=True),
    "approx_count_distinct": Facts(
        _count_type, "not", _COMPARABLE, is_nullable=False, is_in_any_order=True, instead="hw.count_distinct"
    ),
    "approx_quantile": Facts(_double, "by arithmetic", _NUMBER, is_in_any_order=True, has_quantiles=True),
}
"""The aggregate functions by name."""
