"""Aggregates: what users declare over the rows of a group, such as `hw.sum("amount")`; typed and checked as Spark does.

A declaration only names a function and its columns. `result_fields` checks it against a schema while the graph is built.
What is known of each function is in `facts.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.aggregates.declared import Aggregate, result_fields

__all__ = [
    "Aggregate",
    "approx_count_distinct",
    "approx_quantile",
    "avg",
    "collect_list",
    "collect_set",
    "count",
    "count_distinct",
    "first",
    "first_value",
    "last",
    "last_value",
    "max",
    "max_by",
    "min",
    "min_by",
    "result_fields",
    "stddev",
    "sum",
    "var",
]


def count(column: str | None = None) -> Aggregate:
    """How many rows, or in how many of them a column is not null."""
    return Aggregate("count", column)


def sum(column: str) -> Aggregate:  # noqa: A001  the name Spark and SQL give it; users write hw.sum
    """The sum of a column: bigint for integers, double for floats, a wider decimal for decimals; overflow is an error.

    >>> print(hw.sum("amount").result_type(hw.Schema.of("amount decimal(10,2)"), "totals"))
    decimal128(20, 2)
    """
    return Aggregate("sum", column)


def min(column: str) -> Aggregate:  # noqa: A001  as sum
    """The smallest value of a column; NaN is larger than any number."""
    return Aggregate("min", column)


def max(column: str) -> Aggregate:  # noqa: A001  as sum
    """The largest value of a column; NaN is larger than any number."""
    return Aggregate("max", column)


def avg(column: str) -> Aggregate:
    """The mean of a column: double, or for decimals a decimal with four more places, rounded half up."""
    return Aggregate("avg", column)


def stddev(column: str) -> Aggregate:
    """The sample standard deviation of a column, as double; null for fewer than two values."""
    return Aggregate("stddev", column)


def var(column: str) -> Aggregate:
    """The sample variance of a column, as double; null for fewer than two values."""
    return Aggregate("var", column)


def first(column: str) -> Aggregate:
    """The column's value in the row that arrived first, null or not."""
    return Aggregate("first", column)


def last(column: str) -> Aggregate:
    """The column's value in the row that arrived last, null or not."""
    return Aggregate("last", column)


def first_value(column: str) -> Aggregate:
    """The first value of a column to arrive that is not null."""
    return Aggregate("first_value", column)


def last_value(column: str) -> Aggregate:
    """The last value of a column to arrive that is not null."""
    return Aggregate("last_value", column)


def min_by(value: str, by: str) -> Aggregate:
    """The value in the row where `by` is smallest: of several such rows, the first to arrive."""
    return Aggregate("min_by", value, by)


def max_by(value: str, by: str) -> Aggregate:
    """The value in the row where `by` is largest: of several such rows, the first to arrive."""
    return Aggregate("max_by", value, by)


def collect_list(column: str) -> Aggregate:
    """All values of a column that are not null, in the order of their arrival. State grows with the rows."""
    return Aggregate("collect_list", column)


def collect_set(column: str) -> Aggregate:
    """The different values of a column that are not null, in the order of their first arrival."""
    return Aggregate("collect_set", column)


def count_distinct(column: str) -> Aggregate:
    """How many different values a column has, nulls left out. Exact, so state keeps each of them."""
    return Aggregate("count_distinct", column)


def approx_count_distinct(column: str) -> Aggregate:
    """About how many different values a column has: off by 2.3 % (one standard error), in at most 8 KiB of state."""
    return Aggregate("approx_count_distinct", column)


def approx_quantile(column: str, q: float | Sequence[float]) -> Aggregate:
    """About the value below or at which a share `q` of a column lies, off by at most 1 % of the value, as double.

    A list of quantiles gives an array of values.
    """
    return Aggregate("approx_quantile", column, q=tuple(q) if isinstance(q, list | tuple) else q)  # type: ignore[arg-type]
