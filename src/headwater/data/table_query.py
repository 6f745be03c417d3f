"""A query that a person asks of one table, as of a state that is looked at."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.errors import JobError

TABLE = "state"
"""What the table is called in the query."""


@dataclass(frozen=True)
class Bounds:
    """How much a query may take, where others wait for the same process."""

    seconds: float
    rows: int
    memory: str


def query(table: pa.Table, text: str, bounds: Bounds | None = None) -> pa.Table:
    """What a query of DuckDB's gives. It sees this table alone: no file, no network, no setting can be reached."""
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {"enable_external_access": False, "threads": 1}
    if bounds is not None:
        config["memory_limit"] = bounds.memory
    with duckdb.connect(config=config) as connection:
        connection.execute("SET TimeZone='UTC'")
        connection.execute("SET python_enable_replacements=false")  # variables of this program are no tables
        connection.execute("SET lock_configuration=true")
        connection.register(TABLE, table)
        try:
            with _bounded(connection, bounds):
                found: Any = connection.sql(text)  # None of a statement that gives no rows
                if found is None:
                    return pa.table({})
                return (found if bounds is None else found.limit(bounds.rows)).to_arrow_table()
        except duckdb.InterruptException:
            assert bounds is not None
            raise JobError.query_too_long(bounds.seconds) from None
        except duckdb.Error as error:
            raise JobError.bad_query(text, str(error).strip()) from None


@contextmanager
def _bounded(connection: Any, bounds: Bounds | None) -> Iterator[None]:
    """Give a query up when its time is over."""
    if bounds is None:
        yield
        return
    clock = threading.Timer(bounds.seconds, connection.interrupt)
    clock.daemon = True
    clock.start()
    try:
        yield
    finally:
        clock.cancel()
