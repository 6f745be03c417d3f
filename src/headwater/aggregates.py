"""Aggregates: what users declare over the rows of a group, such as `hw.sum("amount")`; typed and checked as Spark does.

A declaration only names a function and its columns. `result_fields` checks it against a schema while the graph is built.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import pyarrow as pa

from headwater.data.schema import Schema, type_ddl
from headwater.errors import GraphError, SchemaError

_WIDEST_DECIMAL = 38
_NEVER_NULL = frozenset({"count", "count_distinct", "approx_count_distinct", "collect_list", "collect_set"})
_OF_NUMBERS = frozenset({"sum", "avg", "stddev", "var", "approx_quantile"})
_OF_ORDERED = frozenset({"min", "max", "min_by", "max_by"})
_OF_COMPARABLE = frozenset({"count_distinct", "approx_count_distinct", "collect_set"})


@dataclass(frozen=True)
class Aggregate:
    """One aggregate: its function, the column it reads, and for some functions more.

    `by` is the column that orders the rows of min_by and max_by; `q` is the quantile, or the quantiles, of
    approx_quantile.
    """

    function: str
    column: str | None = None
    by: str | None = None
    q: float | tuple[float, ...] | None = None

    @property
    def columns(self) -> list[str]:
        """The columns it reads."""
        return [name for name in (self.column, self.by) if name is not None]

    @property
    def nullable(self) -> bool:
        """Whether the result can be null: counts and collections of nothing are 0 and empty, the rest is null."""
        return self.function not in _NEVER_NULL

    def result_type(self, schema: Schema, step: str) -> pa.DataType:
        """The type of the result, which is Spark's; an error if the columns or their types do not fit."""
        if self.column is None and self.function == "count":
            return pa.int64()
        dtype = self._type_of(self.column, schema, step)
        self._check(self.by if self.by is not None else self.column, schema, step)
        if self.function in ("count", "count_distinct", "approx_count_distinct"):
            return pa.int64()
        if self.function in ("collect_list", "collect_set"):
            return pa.list_(dtype)
        if self.function == "sum":
            return sum_type(dtype)
        if self.function == "avg" and pa.types.is_decimal(dtype):
            widest = _WIDEST_DECIMAL
            return pa.decimal128(builtins.min(widest, dtype.precision + 4), builtins.min(widest, dtype.scale + 4))
        if self.function in ("avg", "stddev", "var"):
            return pa.float64()
        if self.function == "approx_quantile":
            return pa.list_(pa.float64()) if self._has_many_quantiles(step) else pa.float64()
        return dtype

    def _type_of(self, column: object, schema: Schema, step: str) -> pa.DataType:
        if not isinstance(column, str):
            example = f"hw.{self.function}('amount')"
            raise GraphError.bad_argument(step, f"needs a column's name in {self}", column, f"write it as in {example}")
        if column not in schema.names:
            raise SchemaError.no_field(column, schema.names, step)
        return schema.field(column).type

    def _check(self, column: object, schema: Schema, step: str) -> None:
        """The type of the column that the function computes on, compares or orders by must allow that."""
        dtype = self._type_of(column, schema, step)
        if self.function in _OF_NUMBERS and not _is_number(dtype):
            needs, action = "a number", "cast the column to a number in a select before, or aggregate another one"
        elif self.function in _OF_ORDERED and not _is_ordered(dtype):
            needs, action = "values with an order", "use one of the column's fields or items, or hw.first or hw.last"
        elif self.function in _OF_COMPARABLE and not _is_comparable(dtype):
            needs, action = "values that compare", "turn arrays and maps into a string or a struct in a select before"
        else:
            return
        raise GraphError.bad_argument(step, f"needs {needs} as {column!r} in {self}", type_ddl(dtype), action)

    def _has_many_quantiles(self, step: str) -> bool:
        many = isinstance(self.q, tuple)
        for q in self.q if isinstance(self.q, tuple) and self.q else (self.q,):
            if not isinstance(q, Real) or isinstance(q, bool) or not 0 <= q <= 1:
                rule = f"needs quantiles from 0 to 1 in {self}"
                raise GraphError.bad_argument(step, rule, q, "write 0.5 for the median, or [0.5, 0.99] for several")
        return many

    def __str__(self) -> str:
        more = [repr(name) for name in self.columns] + ([repr(self.q)] if self.q is not None else [])
        return f"hw.{self.function}({', '.join(more)})"


def result_fields(aggregates: Mapping[str, Aggregate], schema: Schema, step: str) -> list[pa.Field]:
    """The columns that these named aggregates give for each group of a schema's rows; checks all of it."""
    if not aggregates:
        raise GraphError.bad_argument(step, "needs an aggregate", "none", "name one, as in total=hw.sum('amount')")
    fields = []
    for name, aggregate in aggregates.items():
        if name.startswith("__"):
            raise SchemaError.reserved_name(name)
        if not isinstance(aggregate, Aggregate):
            action = f"write it as in {name}=hw.sum('amount')"
            raise GraphError.bad_argument(step, f"needs an aggregate for {name!r}", aggregate, action)
        fields.append(pa.field(name, aggregate.result_type(schema, step), aggregate.nullable))
    return fields


def sum_type(dtype: pa.DataType) -> pa.DataType:
    """The type of a sum of numbers of a type."""
    if pa.types.is_decimal(dtype):
        return pa.decimal128(builtins.min(_WIDEST_DECIMAL, dtype.precision + 10), dtype.scale)
    return pa.int64() if pa.types.is_integer(dtype) else pa.float64()


def count(column: str | None = None) -> Aggregate:
    """How many rows, or in how many of them a column is not null."""
    return Aggregate("count", column)


def sum(column: str) -> Aggregate:  # noqa: A001  the name Spark and SQL give it; users write hw.sum
    """The sum of a column: bigint for integers, double for floats, a wider decimal for decimals; overflow is an error.

    >>> print(sum("amount").result_type(Schema.of("amount decimal(10,2)"), "totals"))
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


def _is_number(dtype: pa.DataType) -> bool:
    return any(fits(dtype) for fits in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))


def _is_ordered(dtype: pa.DataType) -> bool:
    others = (pa.types.is_boolean, pa.types.is_string, pa.types.is_binary, pa.types.is_temporal)
    return _is_number(dtype) or any(fits(dtype) for fits in others)


def _is_comparable(dtype: pa.DataType) -> bool:
    if pa.types.is_struct(dtype):
        return all(_is_comparable(field.type) for field in dtype)
    return _is_ordered(dtype)
