"""SQL as methods of the environment: tables, views and queries."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.connectors.contract import Sink, Source
from headwater.data.schema import Schema, SchemaLike
from headwater.errors import GraphError
from headwater.functions import AggregateFunction
from headwater.lookups import LookupTable
from headwater.streams.showing import table_text
from headwater.watermarks import Watermarks

if TYPE_CHECKING:
    from headwater.graph.graph import Graph
    from headwater.job.engine import Job
    from headwater.sql.relations import Relation
    from headwater.sql.session import Session
    from headwater.streams.stream import Stream
    from headwater.streams.table import Table


class SqlDoor:
    """What an environment has for SQL. What SQL needs is imported when it is first used."""

    graph: Graph
    _started: Job | None = None
    """The job that was started last."""

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

    def execute_sql(self, statement: str) -> list[Any]:
        """Run one statement of Flink SQL: CREATE, DROP, SHOW, DESCRIBE, SET, or INSERT INTO, which `run` then runs.

        >>> env = Environment("doc", engine="local")
        >>> env.execute_sql("CREATE TABLE pets (name STRING, age INT) WITH ('connector' = 'memory')")
        []
        >>> env.execute_sql("INSERT INTO pets VALUES ('Tom', 3), ('Rex', 5)")
        []
        >>> job = env.run()
        >>> env.table_rows("pets")
        [Row(name='Tom', age=3), Row(name='Rex', age=5)]

        It gives the rows that SHOW, DESCRIBE and EXPLAIN show. All that is inserted is one job.
        """
        from headwater.sql.statements.running import execute

        return execute(self._sql, self.graph, statement, self._explained)

    def run_sql(self, script: str | os.PathLike[str], **settings: Any) -> Job | None:
        """Run a script, given as text or as a path that ends in .sql: all its INSERT INTO are one job, which is run.

        What SHOW, DESCRIBE and EXPLAIN show is printed. `settings` are those of `run`. Without any INSERT there is no job.

        >>> env = Environment("doc", engine="local")
        >>> job = env.run_sql('''
        ...     CREATE TABLE numbers (n INT) WITH ('connector' = 'generator', 'number-of-rows' = '3',
        ...         'fields.n.kind' = 'sequence', 'fields.n.start' = '1');
        ...     CREATE TABLE squares (n INT, square INT) WITH ('connector' = 'memory');
        ...     INSERT INTO squares SELECT n, n * n FROM numbers;
        ... ''')
        >>> env.table_rows("squares")
        [Row(n=1, square=1), Row(n=2, square=4), Row(n=3, square=9)]
        """
        from headwater.sql.statements.running import run_script

        is_path = not isinstance(script, str) or (script.endswith(".sql") and len(script.split()) == 1)
        text = Path(script).read_text(encoding="utf-8") if is_path else str(script)
        if not run_script(self._sql, self.graph, text, self._explained, _print_rows):
            return None
        job: Job = self.run(**settings)  # type: ignore[attr-defined]
        return job

    def _explained(self, relation: Relation | None, of: str) -> str:
        from headwater.streams.table import Table

        if relation is None:
            if self._started is None:
                raise GraphError.bad_argument("EXPLAIN ANALYZE", "shows a job that runs", "none", "call env.start()")
            return self._started.explain_analyze()
        return Table(self, relation).explain(of)  # type: ignore[arg-type]

    def table_rows(self, name: str) -> list[Any]:
        """The rows of a table with 'connector' = 'memory', as far as they are published."""
        from headwater.connectors.memory import MemorySink
        from headwater.sql.catalog import Table as CatalogTable

        found = self._sql.catalog.get(name)
        if not isinstance(found, CatalogTable) or not isinstance(found.sink, MemorySink):
            raise GraphError.bad_argument(
                "table_rows", "gives the rows of a table in memory", name, "create it with 'connector' = 'memory'"
            )
        return found.sink.rows

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

    def create_function(
        self,
        name: str,
        function: Callable[..., Any] | AggregateFunction[Any, Any, Any],
        *,
        arguments: Sequence[str] | None = None,
        returns: str | None = None,
        accumulator: str | None = None,
        takes_arrow: bool = False,
    ) -> None:
        """Let queries call a function, row by row, or with `takes_arrow` over whole columns of Arrow.

        Types are those of its annotations, or DDL types. One that gives an array can stand in `UNNEST(…)` and in
        `LATERAL TABLE(…)`. What it gives may depend on what it gets alone. An `hw.AggregateFunction` is called over
        groups, windows and `OVER`; `add` takes the accumulator and as many values as the call has arguments.

        >>> env = Environment("doc", engine="local")
        >>> env.create_view("names", env.from_rows([("Ann",), ("Bob",)], "name string"))
        >>> def vowels(text: str) -> int:
        ...     return sum(letter in "aeiouAEIOU" for letter in text)
        >>> env.create_function("vowels", vowels)
        >>> env.sql("SELECT name, vowels(name) AS n FROM names").collect()
        [Row(name='Ann', n=1), Row(name='Bob', n=1)]
        """
        from headwater.sql.functions import declared_aggregate, declared_function

        catalog = self._sql.catalog
        if str(name).upper() in {*catalog.functions, *catalog.aggregates}:
            raise GraphError.bad_argument("create_function", "needs a name that is not taken", name, "choose another")
        if isinstance(function, AggregateFunction):
            added = declared_aggregate(name, function, arguments, returns, accumulator)
            catalog.aggregates[added.name] = added
        else:
            made = declared_function(name, function, arguments, returns, takes_arrow=takes_arrow)
            catalog.functions[made.name] = made

    def create_table(
        self,
        name: str,
        connector: Source | Sink | LookupTable | Any,
        schema: SchemaLike | None = None,
        watermarks: Watermarks | None = None,
        primary_key: str | Sequence[str] = (),
    ) -> None:
        """Give a source, a sink, a table in memory or a `hw.connectors.PostgresTable` a name that queries can use.

        The last two have their columns themselves. Rows of them can be looked up: `FOR SYSTEM_TIME AS OF`.
        """
        from headwater.sql import declared

        key = (primary_key,) if isinstance(primary_key, str) else tuple(primary_key)
        columns = None if schema is None else Schema.of(schema)
        table = declared.connector_table(name, connector, columns, watermarks, key)
        self._sql.catalog.add(name, table)


def _print_rows(rows: Sequence[Any]) -> None:
    """What a statement of a script shows."""
    names = list(rows[0]._fields)
    if names in (["statement"], ["plan"]):
        sys.stdout.writelines(f"{row[0]}\n" for row in rows)
    else:
        sys.stdout.write(table_text(names, rows, None))
