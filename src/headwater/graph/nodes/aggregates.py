"""Aggregates over all rows of a key so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pyarrow as pa

from headwater.aggregates import Aggregate, result_fields
from headwater.data.schema import Schema
from headwater.graph.checks import check_keyed
from headwater.graph.edges import Key
from headwater.graph.flow import Flow
from headwater.graph.nodes.core import Node, named


@dataclass(frozen=True, kw_only=True)
class RunningNode(Node):
    """Built-in aggregates over all rows of a key so far."""

    operation: ClassVar[str] = "running"
    is_stateful: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True

    key: Key
    input_schema: Schema
    aggregates: Mapping[str, Aggregate]
    takes_back: bool = False
    """Whether its input is a changelog, whose rows may take others back."""

    @classmethod
    def of(cls, flow: Flow, *, aggregates: Mapping[str, Aggregate], name: str = "agg") -> Self:
        check_keyed(flow, name)
        fields = [*flow.key.fields(flow.schema), *result_fields(aggregates, flow.schema, name)]
        return cls(
            name=name,
            inputs=flow.edges,
            schema=Schema.of(pa.schema(fields)),
            key=flow.key,
            input_schema=flow.schema,
            aggregates=aggregates,
        )

    def kept(self) -> dict[str, Any]:
        words = {
            "key": self.key.typed(),
            "aggregates": named(self.aggregates),
            "rows": self.input_schema.ddl(),
        }
        return {**words, "takes back": True} if self.takes_back else words
