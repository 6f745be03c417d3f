"""Where rows come from and where they go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from headwater.connectors.contract import Sink, Source
from headwater.data.schema import Schema, SchemaLike
from headwater.data.types import is_time_type
from headwater.errors import GraphError
from headwater.graph.flow import Flow
from headwater.graph.nodes.core import Node
from headwater.watermarks import Watermarks


@dataclass(frozen=True, kw_only=True)
class SourceNode(Node):
    """Reads a source and gives each split its watermark."""

    operation: ClassVar[str] = "source"
    is_source: ClassVar[bool] = True

    source: Source
    watermarks: Watermarks

    @classmethod
    def of(
        cls, *, source: Source, schema: SchemaLike, watermarks: Watermarks | None = None, name: str = "source"
    ) -> Self:
        if not isinstance(source, Source):
            raise GraphError.bad_argument("source", "needs a source", source, "use one of hw.connectors")
        rows = Schema.of(schema)
        watermarks = watermarks or Watermarks.none()
        if not isinstance(watermarks, Watermarks):
            raise GraphError.bad_argument(name, "needs a watermark strategy", watermarks, "use one of hw.Watermarks")
        if watermarks.column is not None and not is_time_type(rows.field(watermarks.column).type):
            raise GraphError.bad_argument(
                name,
                "takes event time from a timestamp or a bigint of milliseconds",
                watermarks.column,
                f"choose from {rows}",
            )
        return cls(name=name, inputs=(), schema=rows, source=source, watermarks=watermarks)

    @property
    def is_untimed(self) -> bool:
        """Whether event time would never come."""
        return self.watermarks.column is None and not self.source.bounded


@dataclass(frozen=True, kw_only=True)
class SinkNode(Node):
    """Hands rows to a sink, through the outbox."""

    operation: ClassVar[str] = "sink"
    is_sink: ClassVar[bool] = True

    sink: Sink

    @classmethod
    def of(cls, flow: Flow, *, sink: Sink, name: str = "sink") -> Self:
        if not isinstance(sink, Sink):
            raise GraphError.bad_argument("sink", "needs a sink", sink, "use one of hw.connectors")
        return cls(name=name, inputs=flow.edges, schema=flow.schema, sink=sink)
