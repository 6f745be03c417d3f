"""The handle on a windowed stream: what fires its windows, what becomes of late rows, and what is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.data.schema import SchemaLike
from headwater.functions import AggregateFunction, OutputTag, ProcessWindowFunction
from headwater.graph.nodes import WindowNode
from headwater.graph.windowed import Panes, Windowed
from headwater.streams.windowing import WindowingStream
from headwater.words import PanesMode

if TYPE_CHECKING:
    from headwater.streams.stream import Step


class WindowedStream(WindowingStream[Windowed]):
    """The windows of a stream. Say how they work, then what to compute; each call gives a new handle."""

    # -- how they work ----------------------------------------------------------------------------------------------

    def late_to(self, tag: OutputTag) -> WindowedStream:
        """Send rows that are too late to a side output: its fields are the row's, and window_start, window_end, late_by_ms."""
        return self._with(late=tag)

    def panes(self, mode: PanesMode, *, info: bool = False, empty: bool = False) -> WindowedStream:
        """What each firing gives.

        'accumulating': all so far. 'discarding': what came since the last one. 'retracting': all so far, after what the
        last one gave is taken back by rows of row_kind '-U'.
        `info` adds pane_kind and pane_index to the result; `empty` lets a window without new rows fire at its end.
        """
        return self._with(panes=Panes(mode, info, empty))

    # -- what to compute --------------------------------------------------------------------------------------------

    def agg(
        self, *, process: ProcessWindowFunction | None = None, schema: SchemaLike | None = None, **aggregates: Any
    ) -> Step:
        """Built-in aggregates by name: `agg(total=hw.sum("amount"), n=hw.count())`."""
        return self._add(WindowNode.of_aggregates(self._windows, aggregates=aggregates, process=process, schema=schema))

    def reduce(
        self,
        function: Callable[[Any, Any], Any],
        *,
        process: ProcessWindowFunction | None = None,
        schema: SchemaLike | None = None,
    ) -> Step:
        """Two rows into one, of the same schema, again and again."""
        return self._add(WindowNode.of_reduce(self._windows, function=function, process=process, schema=schema))

    def aggregate(
        self,
        function: AggregateFunction[Any, Any, Any],
        *,
        accumulator: str,
        result: SchemaLike | None = None,
        process: ProcessWindowFunction | None = None,
        schema: SchemaLike | None = None,
    ) -> Step:
        """An `AggregateFunction` over an accumulator of a DDL type; `schema` is what it gives.

        With a `process` function behind it, `result` is what it gives and `schema` what the process function gives.
        """
        return self._add(
            WindowNode.of_aggregate(
                self._windows,
                function=function,
                accumulator=accumulator,
                result=result,
                process=process,
                schema=schema,
            )
        )

    def process(self, function: ProcessWindowFunction, schema: SchemaLike) -> Step:
        """A `ProcessWindowFunction` over the rows of each window that fires."""
        return self._add(WindowNode.of_process(self._windows, function=function, schema=schema))

    # -- inside -----------------------------------------------------------------------------------------------------

    def _add(self, node: WindowNode) -> Step:
        return self._step(self._env.graph.add(node))
