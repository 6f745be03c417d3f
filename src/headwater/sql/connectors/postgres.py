"""'connector' = 'postgres': a table that rows are written to, by its primary key if there is one."""

from __future__ import annotations

from headwater import connectors
from headwater.connectors.postgres.connection import with_login
from headwater.sql.connectors.contract import Made, Wanted


def postgres(wanted: Wanted) -> Made:
    """With a primary key rows replace those of their key, without one they are added."""
    wanted.refuse_metadata()
    wanted.refuse_partitions()
    options = wanted.options
    connection = with_login(options.required("url"), options.text("username"), options.text("password"))
    sink = connectors.postgres(
        connection,
        options.text("table-name") or wanted.name,
        mode="upsert" if wanted.primary_key else "append",
        key=wanted.primary_key or None,
        create=options.flag("create", default=False),
    )
    return Made(sink=sink)
