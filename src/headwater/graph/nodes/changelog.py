"""Where changelogs begin and end, and what completes one that does not tell what goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pyarrow as pa

from headwater.data.row_kinds import ROW_KIND, ROW_KIND_FIELD
from headwater.data.schema import Schema, type_ddl
from headwater.errors import GraphError
from headwater.graph.changelog import ANY, Changelog, ChangelogMode, Modes
from headwater.graph.edges import Key
from headwater.graph.flow import Flow
from headwater.graph.nodes.core import Node


@dataclass(frozen=True, kw_only=True)
class AsChangelogNode(Node):
    """Rows become changes: the column `row_kind` says what each does, or each replaces the one with its key."""

    operation: ClassVar[str] = "as_changelog"

    reads_kinds: bool

    @classmethod
    def of(cls, flow: Flow, *, key: str | Sequence[str] | None = None, name: str = "as_changelog") -> Self:
        """With a key: of each key there is one row at a time. Without: whatever goes is told whole."""
        columns = () if key is None else (key,) if isinstance(key, str) else tuple(key)
        reads_kinds = ROW_KIND in flow.schema.names
        rows = _without_kind(flow.schema, name) if reads_kinds else flow.schema
        if columns:
            Key.of(rows, columns, step=name)
        elif not reads_kinds:
            raise GraphError.bad_argument(
                name,
                f"needs to know what rows do: a string column {ROW_KIND!r}, or the key by which each replaces another",
                str(rows),
                "add the column, or write as_changelog(key='id')",
            )
        mode = ChangelogMode.UPSERT if columns else ChangelogMode.RETRACT
        return cls(
            name=name, inputs=flow.edges, schema=rows, changelog=Changelog(mode, columns), reads_kinds=reads_kinds
        )

    @property
    def is_remembered(self) -> bool:
        """What completes a changelog by key is stored under a name that begins with this step's."""
        return bool(self.changelog.key)


@dataclass(frozen=True, kw_only=True)
class WithRowKindNode(Node):
    """Changes become rows like others, with a last column that says what they do."""

    operation: ClassVar[str] = "with_row_kind"

    @classmethod
    def of(cls, flow: Flow, *, name: str = "with_row_kind") -> Self:
        return cls(name=name, inputs=flow.edges, schema=told_schema(flow.schema, name))

    def takes(self, side: int) -> Modes:
        return ANY


@dataclass(frozen=True, kw_only=True)
class NormalizeNode(Node):
    """Completes a changelog by key: it keeps the row of each key, and tells it when another one takes its place."""

    operation: ClassVar[str] = "normalize"
    is_stateful: ClassVar[bool] = True
    passes_times: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True

    key: Key
    tells_versions: bool
    """Whether every row of a key is told, and not only what an epoch leaves of them."""

    @classmethod
    def of(cls, flow: Flow, *, tells_versions: bool = False, name: str) -> Self:
        key = Key.of(flow.schema, flow.changelog.key, step=name)
        return cls(
            name=name,
            inputs=flow.keyed(key).edges,
            schema=flow.schema,
            changelog=flow.changelog.retracting(),
            key=key,
            tells_versions=tells_versions,
        )

    def takes(self, side: int) -> Modes:
        return ANY

    def kept(self) -> dict[str, Any]:
        return {"key": self.key.typed(), "rows": self.schema.ddl()}


def told_schema(rows: Schema, step: str) -> Schema:
    """The columns of rows, and the one that says what they do."""
    if ROW_KIND in rows.names:
        raise GraphError.bad_argument(
            step, f"shows what rows do in a column {ROW_KIND!r}", f"rows that have one: {rows}", "rename it with select"
        )
    return Schema(rows.arrow.append(ROW_KIND_FIELD))


def _without_kind(rows: Schema, step: str) -> Schema:
    dtype = rows.field(ROW_KIND).type
    if not pa.types.is_string(dtype):
        raise GraphError.bad_argument(
            step, f"reads the column {ROW_KIND!r}, a string, as what rows do", type_ddl(dtype), "rename it with select"
        )
    return Schema(pa.schema([field for field in rows.arrow if field.name != ROW_KIND]))
