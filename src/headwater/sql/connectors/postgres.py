"""'connector' = 'postgres': a table that rows are written to, by its primary key if there is one, and looked up in."""

from __future__ import annotations

from headwater import connectors
from headwater.connectors.postgres.connection import with_login
from headwater.graph.nodes.lookup import Cache
from headwater.sql.connectors.contract import Made, Wanted
from headwater.sql.connectors.options import Options
from headwater.sql.looked_up import LookedUp


def postgres(wanted: Wanted) -> Made:
    """With a primary key rows replace those of their key, without one they are added."""
    wanted.refuse_metadata()
    wanted.refuse_partitions()
    options = wanted.options
    connection = with_login(options.required("url"), options.text("username"), options.text("password"))
    table = options.text("table-name") or wanted.name
    sink = connectors.postgres(
        connection,
        table,
        mode="upsert" if wanted.primary_key else "append",
        key=wanted.primary_key or None,
        create=options.flag("create", default=False),
    )
    cache, ttl = _cache(options)
    lookup = LookedUp(lambda: connectors.PostgresTable(connection, table, wanted.schema), cache, ttl)
    return Made(sink=sink, lookup=lookup)


def _cache(options: Options) -> tuple[Cache, str | None]:
    """What is kept of what was looked up, and for how long; under the names that Flink has for it."""
    kind = options.choice("lookup.cache", ("none", "partial", "full"), "none")
    rows = options.whole("lookup.partial-cache.max-rows", least=1)
    age = options.duration("lookup.partial-cache.expire-after-write")
    reload = options.duration("lookup.full-cache.periodic-reload.interval")
    for option, given, of in (
        ("lookup.partial-cache.max-rows", rows, "partial"),
        ("lookup.partial-cache.expire-after-write", age, "partial"),
        ("lookup.full-cache.periodic-reload.interval", reload, "full"),
    ):
        if given is not None and kind != of:
            raise options.bad(option, f"is for 'lookup.cache' = '{of.upper()}'", "leave one of them out")
    if kind == "partial":
        if rows is None:
            raise options.bad("lookup.cache", "needs a bound", "add 'lookup.partial-cache.max-rows' = '10000'")
        return rows, age
    return ("full", reload) if kind == "full" else (None, None)
