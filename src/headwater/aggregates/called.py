"""An aggregate function of the user's as an aggregate of columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headwater.aggregates.declared import Aggregate
from headwater.aggregates.facts import Facts
from headwater.data.schema import Schema, type_ddl
from headwater.functions import AggregateFunction


def has(function: AggregateFunction[Any, Any, Any], method: str) -> bool:
    """Whether a function has a method of its own."""
    return getattr(type(function), method) is not getattr(AggregateFunction, method)


@dataclass(frozen=True)
class CalledAggregate(Aggregate):
    """A function of the user's over columns; `function` is its name."""

    over: tuple[str, ...] = ()
    called: Any = field(default=None, compare=False)
    """The `AggregateFunction`, whose methods get the values of the columns one by one."""
    accumulator: pa.DataType = pa.null()  # noqa: RUF009  types do not change
    gives: pa.DataType = pa.null()  # noqa: RUF009

    @property
    def columns(self) -> list[str]:
        return list(self.over)

    @property
    def facts(self) -> Facts:
        instead = "a function with a retract method"
        return Facts(lambda _: self.gives, "by arithmetic" if has(self.called, "retract") else "not", instead=instead)

    def result_type(self, schema: Schema, step: str) -> pa.DataType:
        for column in self.over:
            self._type_of(column, schema, step)
        return self.gives

    def __str__(self) -> str:
        return f"{self.function}({', '.join(self.over)}), kept as {type_ddl(self.accumulator)}"
