"""What a user gives as rows: rows of a schema, or a table that has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headwater.data.errors import UnsoundRow
from headwater.data.schema import Schema, SchemaLike
from headwater.data.sound import fault_in
from headwater.data.tables import arrow_table, is_table
from headwater.errors import GraphError, SchemaError


def rows_of(given: Any, schema: SchemaLike | None, step: str) -> tuple[Sequence[Any] | pa.Table, Schema]:
    """The rows, and their schema: said, or that of the table."""
    if hasattr(given, "isStreaming"):
        raise GraphError.bad_argument(
            step, "holds its rows in memory", "a DataFrame of Spark", "use env.from_dataframe"
        )
    if is_table(given):
        table, found = _table_of(given, schema, step)
        if (fault := fault_in(table)) is not None:
            raise UnsoundRow.of(step, fault, "drop or mend such rows in the table")
        return table, found
    if hasattr(given, "collect"):
        raise GraphError.bad_argument(
            step, "holds its rows in memory", type(given).__name__, "pass what its collect() gives"
        )
    if schema is None:
        raise GraphError.bad_argument(
            step, "needs the schema of its rows", type(given).__name__, "write from_rows(rows, 'user string, n long')"
        )
    return given, Schema.of(schema)


def _table_of(given: Any, schema: SchemaLike | None, step: str) -> tuple[pa.Table, Schema]:
    if schema is None:
        table = arrow_table(step, given)
        return table, Schema.of(table.schema)
    wanted = Schema.of(schema)
    table = arrow_table(step, given, wanted.names)
    try:
        found = table.cast(wanted.arrow)
        found.validate()
    except (pa.ArrowException, ValueError) as error:
        raise SchemaError.does_not_fit(
            step, f"the table is not '{wanted}': {error}", "cast it, or the schema"
        ) from None
    return found, wanted
