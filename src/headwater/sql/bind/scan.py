"""What a query sees of a table: its columns, with those that are computed."""

from __future__ import annotations

from dataclasses import replace

from headwater.data.functions.types import TIMESTAMP_LTZ_3
from headwater.sql.bind.scalars import bound_tree, is_proctime
from headwater.sql.bind.scopes import Scope
from headwater.sql.catalog import Table
from headwater.sql.relations import EVENT, PROCESSING, Field, Scalar, Scan


def scanned(table: Table) -> Scan:
    """A table as queries see it."""
    stored = Scan(table, table.fields)
    fields = {field.name: field for field in table.fields}
    computed: list[tuple[str, Scalar]] = []
    for column in table.computed:
        scalar = bound_tree(Scope.of(stored, None, column.text).resolved(column.tree), stored, column.text)
        computed.append((column.name, scalar))
        if is_proctime(scalar.tree):
            fields[column.name] = Field(column.name, TIMESTAMP_LTZ_3, PROCESSING, is_nullable=False)
        else:
            fields[column.name] = Field(column.name, scalar.term.type)
    if table.time is not None:
        fields[table.time] = replace(fields[table.time], time=EVENT)
    seen = tuple(fields[name] for name in table.order or fields)
    return Scan(table, seen, tuple(computed), table.time, table.primary_key, table.changes)
