"""Work on whole batches, by SQL expressions or a function over Arrow tables, as methods of streams."""

from __future__ import annotations

from collections.abc import Callable
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
        """Columns computed by SQL expressions in Spark's dialect, whole batches at a time.

        >>> env = Environment("doc", engine="local")
        >>> env.from_rows([{"n": 1}, {"n": 2}], "n long").select("n", "n * 2 as twice").collect()
        [Row(n=1, twice=2), Row(n=2, twice=4)]
        """
        return self._add(SelectNode.of(self._flow, expressions=expressions))

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
