"""A query that a person asks of one table, as of a state that is looked at."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headwater.errors import JobError

TABLE = "state"
"""What the table is called in the query."""


def query(table: pa.Table, text: str) -> pa.Table:
    """What a query of DuckDB's gives. It sees this table alone: no file, no network, no setting can be reached."""
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {"enable_external_access": False, "threads": 1}
    with duckdb.connect(config=config) as connection:
        connection.execute("SET TimeZone='UTC'")
        connection.execute("SET python_enable_replacements=false")  # variables of this program are no tables
        connection.execute("SET lock_configuration=true")
        connection.register(TABLE, table)
        try:
            found: Any = connection.sql(text)  # None of a statement that gives no rows
            return pa.table({}) if found is None else found.to_arrow_table()
        except duckdb.Error as error:
            raise JobError.bad_query(text, str(error).strip()) from None
