"""Where rows come from and where they go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from headwater.connectors.contract import Changes, Sink, Source
from headwater.data.row_kinds import ROW_KIND
from headwater.data.schema import Schema, SchemaLike
from headwater.errors import GraphError
from headwater.graph.changelog import ANY, APPEND, APPEND_OR_RETRACT, Modes
from headwater.graph.checks import check_time_column
from headwater.graph.flow import Flow
from headwater.graph.nodes.changelog import told_schema
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
        if watermarks.column is not None:
            check_time_column(rows, watermarks.column, name)
        return cls(name=name, inputs=(), schema=rows, source=source, watermarks=watermarks)

    @property
    def is_untimed(self) -> bool:
        """Whether event time would never come."""
        return self.watermarks.column is None and not self.source.bounded


@dataclass(frozen=True, kw_only=True)
class SinkNode(Node):
    """Hands rows to a sink, through the outbox; those of a changelog with a last column that says what they do."""

    operation: ClassVar[str] = "sink"
    is_sink: ClassVar[bool] = True

    sink: Sink
    finds_rows: bool = True
    """Whether the sink finds the row that one of an upsert changelog replaces: by the same key, or it need not."""

    @classmethod
    def of(cls, flow: Flow, *, sink: Sink, name: str = "sink") -> Self:
        if not isinstance(sink, Sink):
            raise GraphError.bad_argument("sink", "needs a sink", sink, "use one of hw.connectors")
        if flow.changelog.is_append_only:
            if sink.changes is Changes.APPLIED and ROW_KIND in flow.schema.names:
                raise GraphError.bad_argument(
                    name,
                    f"does not read a column {ROW_KIND!r} as what rows do",
                    str(flow.schema),
                    "call .as_changelog() on the stream, or rename the column with select",
                )
            return cls(name=name, inputs=flow.edges, schema=flow.schema, sink=sink)
        if sink.changes is Changes.REFUSED:
            raise GraphError.bad_argument(
                name,
                f"only adds rows ({sink.describe()})",
                f"a changelog ({flow.changelog.describe()})",
                "write to a sink that upserts, or call .with_row_kind() to write the changes as rows",
            )
        finds_rows = sink.changes is Changes.SHOWN or {*sink.upsert_key} == {*flow.changelog.key}
        told = told_schema(flow.schema, name)
        return cls(name=name, inputs=flow.edges, schema=told, sink=sink, finds_rows=finds_rows)

    def takes(self, side: int) -> Modes:
        if self.sink.changes is Changes.REFUSED:
            return APPEND
        return ANY if self.finds_rows else APPEND_OR_RETRACT
