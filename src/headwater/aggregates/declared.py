"""A declared aggregate: a function and its columns, checked against a schema while the graph is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real

import pyarrow as pa

from headwater.aggregates.facts import FACTS, Facts
from headwater.data.schema import Schema, type_ddl
from headwater.errors import GraphError, SchemaError


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
    def facts(self) -> Facts:
        """What is known of its function."""
        return FACTS[self.function]

    def result_type(self, schema: Schema, step: str) -> pa.DataType:
        """The type of the result, which is Spark's; an error if the columns or their types do not fit."""
        if self.column is None and self.function == "count":
            return pa.int64()
        dtype = self._type_of(self.column, schema, step)
        self._check(self.by if self.by is not None else self.column, schema, step)
        result = self.facts.result(dtype)
        return pa.list_(result) if self.facts.has_quantiles and self._has_many_quantiles(step) else result

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
        needs = self.facts.needs
        if needs is not None and not needs.fits(dtype):
            rule = f"needs {needs.words} as {column!r} in {self}"
            raise GraphError.bad_argument(step, rule, type_ddl(dtype), needs.action)

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
        fields.append(pa.field(name, aggregate.result_type(schema, step), aggregate.facts.is_nullable))
    return fields


def is_in_any_order(aggregates: Mapping[str, Aggregate]) -> bool:
    """Whether results do not depend on the order of rows."""
    return all(aggregate.facts.is_in_any_order for aggregate in aggregates.values())


def refuse_taking_back(aggregates: Mapping[str, Aggregate], step: str) -> None:
    """An error if one of the aggregates of a step cannot take rows back, as those over a changelog must."""
    for aggregate in aggregates.values():
        if aggregate.facts.takes_back == "not":
            rule = "needs aggregates that can take rows back, as its input is a changelog"
            raise GraphError.bad_argument(step, rule, str(aggregate), f"use {aggregate.facts.instead} instead")
