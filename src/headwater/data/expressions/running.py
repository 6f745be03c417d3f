"""Running a compiled query over a batch, with DuckDB."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    import duckdb

PLACE: Final = "__place"
"""The hidden column with a row's place in its batch, carried through a query untouched."""


NOW: Final = "__now"
"""The hidden column with the processing time in milliseconds, for queries that read it."""


def run(
    query: str, table: pa.Table, schema: pa.Schema, now_ms: int | None = None
) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Run a compiled query over a batch: the results, in order, and the place of the row that each is of.

    A query that reads the clock is told the time.
    """
    connection = _connection()
    batch = table.append_column(PLACE, pa.array(np.arange(len(table))))
    if now_ms is not None:
        batch = batch.append_column(NOW, pa.array(np.full(len(table), now_ms)))
    connection.register("batch", batch)
    try:
        result = connection.sql(query).to_arrow_table()
    finally:
        connection.unregister("batch")
    places: npt.NDArray[np.int64] = result.column(PLACE).to_numpy()
    return result.drop_columns([PLACE]).cast(schema), places


_connections: dict[int, duckdb.DuckDBPyConnection] = {}
"""By thread. A `threading.local` would do, but a process that is forked off by another thread closes what is in it, with
threads that it does not have: it crashes before it becomes Spark's JVM."""


def _connection() -> duckdb.DuckDBPyConnection:
    """An in-memory database per thread, closed to files and network; it uses one core, as Spark runs a task per core."""
    import duckdb

    connection = _connections.get(threading.get_ident())
    if connection is None:
        config: dict[str, str | bool | int | float | list[str]] = {
            "threads": 1,
            "enable_external_access": False,
            "preserve_insertion_order": True,
        }
        connection = _connections[threading.get_ident()] = duckdb.connect(config=config)
        connection.execute("SET TimeZone='UTC'")
    return connection
