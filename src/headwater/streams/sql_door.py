"""SQL as methods of the environment: tables, views and queries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from headwater.connectors.contract import Sink, Source
from headwater.data.schema import Schema, SchemaLike
from headwater.errors import GraphError
from headwater.watermarks import Watermarks

if TYPE_CHECKING:
    from headwater.graph.graph import Graph
    from headwater.sql.session import Session
    from headwater.streams.stream import Stream
    from headwater.streams.table import Table


class SqlDoor:
    """What an environment has for SQL. What SQL needs is imported when it is first used."""

    graph: Graph

    @cached_property
    def _sql(self) -> Session:
        from headwater.sql.session import Session

        return Session(self.graph)

    def sql(self, text: str) -> Table:
        """A query over tables and views, in Flink SQL.

        >>> env = Environment("doc", engine="local")
        >>> env.create_view("sales", env.from_rows([("a", 1), ("b", 2), ("a", 3)], "shop string, n long"))
        >>> [(row.shop, row.total) for row in env.sql("SELECT shop, SUM(n) AS total FROM sales GROUP BY shop").collect()]
        [('b', 2), ('a', 4)]
        """
        from headwater.streams.table import Table

        return Table(self, self._sql.query(text))  # type: ignore[arg-type]

    def create_view(self, name: str, of: Stream | Table, *, time: str | None = None) -> None:
        """Give a stream or a table a name that queries can use. `time` is the column that holds a stream's event time."""
        from headwater.sql import declared
        from headwater.streams.stream import Stream
        from headwater.streams.table import Table

        if isinstance(of, Table):
            self._sql.catalog.add(name, of._relation)
        elif isinstance(of, Stream):
            self._sql.catalog.add(name, declared.stream_table(name, of._flow, time))
        else:
            raise GraphError.bad_argument(
                "create_view", "needs a stream or a table", of, "pass one of this environment"
            )

    def create_table(
        self,
        name: str,
        connector: Source | Sink,
        schema: SchemaLike,
        watermarks: Watermarks | None = None,
        primary_key: str | Sequence[str] = (),
    ) -> None:
        """Give a source or a sink a name that queries can use."""
        from headwater.sql import declared

        key = (primary_key,) if isinstance(primary_key, str) else tuple(primary_key)
        table = declared.connector_table(name, connector, Schema.of(schema), watermarks, key)
        self._sql.catalog.add(name, table)
