"""Functions of the user's over columns, whose results are more columns: what SQL calls functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pyarrow as pa

from headwater.data.schema import Schema
from headwater.graph.changelog import ANY, Modes
from headwater.graph.flow import Flow
from headwater.graph.nodes.core import Node


@dataclass(frozen=True)
class ColumnCall:
    """One call: the column of its result, the function, and the columns that it gets."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[str, ...]
    result: pa.DataType
    takes_arrow: bool = False
    """Whether it gets arrays and gives one, and not values row by row."""


@dataclass(frozen=True, kw_only=True)
class CallNode(Node):
    """All columns of a row, and what functions give for it. The same row gives the same, also when it is taken back."""

    operation: ClassVar[str] = "call"
    taken: ClassVar[Modes] = ANY

    calls: tuple[ColumnCall, ...]

    @classmethod
    def of(cls, flow: Flow, *, calls: Sequence[ColumnCall], name: str = "call") -> Self:
        for call in calls:
            for argument in call.arguments:
                flow.schema.field(argument)
        fields = [pa.field(call.name, call.result) for call in calls]
        return cls(
            name=name,
            inputs=flow.edges,
            schema=Schema.of(pa.schema([*flow.schema.arrow, *fields])),
            changelog=flow.changelog,
            calls=tuple(calls),
        )
