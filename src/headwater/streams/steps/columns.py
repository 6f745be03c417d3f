"""Work on whole batches, by SQL expressions or a function over Arrow tables, as methods of streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.data.schema import SchemaLike
from headwater.graph.nodes import MapBatchesNode, SelectNode, WhereNode
from headwater.streams.steps.handle import Handle

if TYPE_CHECKING:
    from headwater.streams.stream import Step


class ColumnSteps(Handle):
    """What can be done with the columns of a stream."""

    def select(self, *expressions: str) -> Step:
        """Columns computed by SQL expressions, whole batches at a time, which mean what they do in Flink SQL.

        >>> env = Environment("doc", engine="local")
        >>> env.from_rows([{"n": 1}, {"n": 2}], "n long").select("n", "n * 2 as twice").collect()
        [Row(n=1, twice=2), Row(n=2, twice=4)]
        """
        return self._add(SelectNode.of(self._flow, expressions=expressions))

    def with_column(self, name: str, expression: str) -> Step:
        """The rows with one more column, computed by a SQL expression; a column of that name is replaced in its place.

        >>> env = Environment("doc", engine="local")
        >>> env.from_rows([(2, 3)], "n long, price long").with_column("cost", "n * price").collect()
        [Row(n=2, price=3, cost=6)]
        """
        return self._add(SelectNode.of_columns(self._flow, {name: expression}))

    def drop(self, *names: str) -> Step:
        """The rows without some columns.

        >>> env = Environment("doc", engine="local")
        >>> env.from_rows([(2, 3, 6)], "n long, price long, cost long").drop("n", "price").collect()
        [Row(cost=6)]
        """
        return self._add(SelectNode.of_dropped(self._flow, names))

    def rename(self, names: Mapping[str, str]) -> Step:
        """The rows with other names for some columns, given as old names with new ones.

        >>> env = Environment("doc", engine="local")
        >>> env.from_rows([(2, 3)], "n long, price long").rename({"n": "count"}).collect()
        [Row(count=2, price=3)]
        """
        return self._add(SelectNode.of_renamed(self._flow, names))

    def where(self, expression: str) -> Step:
        """The rows for which a SQL expression is true, whole batches at a time."""
        return self._add(WhereNode.of(self._flow, expression=expression))

    def map_batches(
        self,
        function: Callable[[pa.Table], pa.Table],
        schema: SchemaLike | None = None,
        *,
        timestamp: str | None = None,
    ) -> Step:
        """A function over Arrow tables, whose size means nothing. Name the time column when rows are added or dropped."""
        return self._add(MapBatchesNode.of(self._flow, function=function, schema=schema, timestamp=timestamp))
