"""Tables that are declared from Python."""

from __future__ import annotations

from typing import Any

from headwater.connectors.contract import Sink, Source
from headwater.connectors.memory import RowsSource
from headwater.data.functions.types import type_of
from headwater.data.schema import Schema
from headwater.data.tables import arrow_table, is_table
from headwater.graph.flow import Flow
from headwater.lookups import LookupTable
from headwater.sql.catalog import Table
from headwater.sql.errors import SqlError
from headwater.sql.looked_up import LookedUp
from headwater.sql.relations import Field
from headwater.watermarks import Watermarks


def stream_table(name: str, flow: Flow, time: str | None) -> Table:
    """A stream as a table."""
    if time is not None:
        flow.schema.field(time)
    return Table(
        name,
        fields_of(flow.schema),
        time=time,
        flow=flow,
        primary_key=flow.changelog.key,
        changes=not flow.changelog.is_append_only,
    )


def connector_table(
    name: str, connector: Any, schema: Schema | None, watermarks: Watermarks | None, key: tuple[str, ...]
) -> Table:
    """A source, a sink, a table in memory, or one that rows are looked up in, as a table."""
    lookup: LookedUp | None = None
    if isinstance(connector, LookupTable):
        lookup = LookedUp(lambda: connector)
        schema = _own_schema(name, schema, connector.schema)
    elif is_table(connector):
        rows = arrow_table(f"table {name!r}", connector)
        lookup = LookedUp(lambda: rows, is_fixed=True)
        schema = _own_schema(name, schema, Schema.of(rows.schema))
        connector = RowsSource([rows], schema)
    elif schema is None:
        raise SqlError.bad_argument(f"table {name!r}", "needs a schema", None, "add schema='id long, …'")
    for column in key:
        schema.field(column)
    is_source = isinstance(connector, Source)
    if watermarks is not None and not is_source:
        raise SqlError.bad_argument(
            f"table {name!r}", "is written to, so it has no watermarks", watermarks, "leave them out"
        )
    return Table(
        name,
        fields_of(schema),
        time=None if watermarks is None else watermarks.column,
        watermarks=watermarks,
        primary_key=key,
        source=connector if isinstance(connector, Source) else None,
        sink=connector if isinstance(connector, Sink) else None,
        lookup=lookup,
    )


def _own_schema(name: str, given: Schema | None, own: Schema) -> Schema:
    if given is not None:
        raise SqlError.bad_argument(f"table {name!r}", "has a schema of its own", given.ddl(), "leave it out")
    return own


def fields_of(schema: Schema) -> tuple[Field, ...]:
    """The columns of a schema."""
    return tuple(Field(field.name, type_of(field.type), is_nullable=field.nullable) for field in schema.arrow)
