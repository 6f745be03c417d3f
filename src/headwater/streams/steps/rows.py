"""Python functions over rows, as methods of streams."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from headwater.data.schema import SchemaLike
from headwater.durations import Duration
from headwater.errors import GraphError
from headwater.functions import KeyedProcessFunction, OutputTag, name_of
from headwater.graph.nodes import FilterNode, FlatMapNode, MapAsyncNode, MapNode
from headwater.graph.nodes.process import process_node
from headwater.retry import Retry
from headwater.streams.steps.handle import Handle

if TYPE_CHECKING:
    from headwater.streams.stream import Step


class RowSteps(Handle):
    """What functions can do with the rows of a stream, one by one."""

    def map(
        self,
        function: Callable[[Any], Any],
        schema: SchemaLike | None = None,
        *,
        failed_to: OutputTag | None = None,
    ) -> Step:
        """One row for each row. A row for which the function fails fails the job, or goes to `failed_to` with the error.

        >>> env = Environment("doc", engine="local")
        >>> env.from_rows([{"n": 1}, {"n": 2}], "n long").map(lambda r: {"n": r.n * 10}).collect()
        [Row(n=10), Row(n=20)]
        """
        return self._add(MapNode.of(self._flow, function=function, schema=schema, failed_to=failed_to))

    def flat_map(
        self,
        function: Callable[[Any], Iterable[Any]],
        schema: SchemaLike | None = None,
        *,
        failed_to: OutputTag | None = None,
    ) -> Step:
        """Any number of rows for each row: the function yields them or returns a list. `failed_to` as for `map`."""
        return self._add(FlatMapNode.of(self._flow, function=function, schema=schema, failed_to=failed_to))

    def filter(self, function: Callable[[Any], bool], *, failed_to: OutputTag | None = None) -> Step:
        """The rows for which the function is true. `failed_to` as for `map`."""
        return self._add(FilterNode.of(self._flow, function=function, failed_to=failed_to))

    def process(
        self, function: Any, schema: SchemaLike, *, name: str | None = None, failed_to: OutputTag | None = None
    ) -> Step:
        """A `ProcessFunction`, which may write side outputs and have operator state.

        With state it runs on every subtask, and rows that no exchange brings there are dealt out evenly. `failed_to` is as
        for `map`, and for functions without state only: what a call that fails has written cannot be taken back.
        """
        if isinstance(function, KeyedProcessFunction):
            raise GraphError.needs_keyed(name or name_of(function), type(self).__name__)
        return self._add(process_node(self._flow, function=function, schema=schema, name=name, failed_to=failed_to))

    def map_async(
        self,
        function: Callable[[Any], Awaitable[Any]],
        schema: SchemaLike | None = None,
        *,
        capacity: int = 100,
        timeout: Duration | None = None,
        retry: Retry | None = None,
        ordered: bool = True,
        timeout_to: OutputTag | None = None,
        failed_to: OutputTag | None = None,
        name: str | None = None,
    ) -> Step:
        """One row, or None for no row, for each row, by a coroutine function; up to `capacity` calls at a time.

        `timeout` is for all attempts of a row; one that times out fails the job or goes to `timeout_to`. `failed_to` is as
        for `map`, after all attempts, also for rows that time out unless they have `timeout_to`.

        >>> async def double(row):
        ...     return {"n": row.n * 2}
        >>> env = Environment("doc", engine="local")
        >>> env.from_rows([{"n": 1}, {"n": 2}], "n long").map_async(double, timeout="5 s").collect()
        [Row(n=2), Row(n=4)]
        """
        return self._add(
            MapAsyncNode.of(
                self._flow,
                function=function,
                schema=schema,
                capacity=capacity,
                timeout=timeout,
                retry=retry,
                ordered=ordered,
                timeout_to=timeout_to,
                failed_to=failed_to,
                name=name or "map_async",
            )
        )
