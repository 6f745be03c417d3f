"""The handle on a windowed stream: what fires its windows, what becomes of late rows, and what is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.aggregates import result_fields
from headwater.data.schema import Schema, SchemaLike, parse_type
from headwater.descriptors import keyed_states
from headwater.errors import GraphError
from headwater.functions import AggregateFunction, OutputTag, ProcessWindowFunction
from headwater.graph.nodes import Panes, WindowNode
from headwater.streams.windowing import Windowing
from headwater.windows.assigners import WindowAssigner

if TYPE_CHECKING:
    from headwater.streams.keyed import KeyedStream
    from headwater.streams.stream import Step

_MODES = ("accumulating", "discarding", "retracting")


class WindowedStream(Windowing):
    """The windows of a stream. Say how they work, then what to compute; each call gives a new handle."""

    def __init__(self, stream: KeyedStream, assigner: WindowAssigner) -> None:
        super().__init__(stream.schema, assigner)
        self._stream = stream
        self._late: OutputTag | None = None
        self._panes = Panes()

    # -- how they work ----------------------------------------------------------------------------------------------

    def late_to(self, tag: OutputTag) -> WindowedStream:
        """Send rows that are too late to a side output: its fields are the row's, and window_start, window_end, late_by_ms."""
        self._check_late(tag, self._stream.schema, "late_to")
        return self._with(_late=tag)

    def panes(self, mode: str, *, info: bool = False, empty: bool = False) -> WindowedStream:
        """What each firing gives.

        'accumulating': all so far. 'discarding': what came since the last one. 'retracting': all so far, after what the
        last one gave is taken back by rows of row_kind '-U'.
        `info` adds pane_kind and pane_index to the result; `empty` lets a window without new rows fire at its end.
        """
        if mode not in _MODES:
            raise GraphError.bad_argument("panes", f"needs one of {', '.join(_MODES)}", mode, "choose one of them")
        return self._with(_panes=Panes(mode, info, empty))

    # -- what to compute --------------------------------------------------------------------------------------------

    def agg(
        self, *, process: ProcessWindowFunction | None = None, schema: SchemaLike | None = None, **aggregates: Any
    ) -> Step:
        """Built-in aggregates by name: `agg(total=hw.sum("amount"), n=hw.count())`."""
        folded = Schema(pa.schema(result_fields(aggregates, self._stream.schema, "agg")))
        return self._add("agg", folded, process, schema, aggregates=aggregates)

    def reduce(
        self,
        function: Callable[[Any, Any], Any],
        *,
        process: ProcessWindowFunction | None = None,
        schema: SchemaLike | None = None,
    ) -> Step:
        """Two rows into one, of the same schema, again and again."""
        if not callable(function):
            raise GraphError.bad_argument("reduce", "needs a function of two rows", function, "pass a function")
        return self._add("reduce", self._stream.schema, process, schema, reduce=function)

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
        if not isinstance(function, AggregateFunction):
            raise GraphError.bad_argument("aggregate", "needs a hw.AggregateFunction", function, "pass an instance")
        if self._assigner.merges and type(function).merge is AggregateFunction.merge:
            raise GraphError.bad_argument(
                "aggregate", "needs a function with merge, for windows that do", type(function).__name__, "write merge"
            )
        gives = schema if process is None else result
        if gives is None:
            raise GraphError.bad_argument(
                "aggregate", "needs the schema of its result", None, "add schema='avg double'"
            )
        dtype = parse_type(accumulator)
        return self._add("aggregate", Schema.of(gives), process, schema, aggregate=function, accumulator=dtype)

    def process(self, function: ProcessWindowFunction, schema: SchemaLike) -> Step:
        """A `ProcessWindowFunction` over the rows of each window that fires."""
        return self._add("process", None, function, schema)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _add(
        self,
        name: str,
        folded: Schema | None,
        process: ProcessWindowFunction | None,
        schema: SchemaLike | None,
        **settings: Any,
    ) -> Step:
        stream, assigner = self._stream, self._assigner
        trigger = self._firing(name)
        if self._panes.has_empty and "reduce" in settings:
            raise GraphError.bad_argument(
                name, "has no value for a pane without rows", "panes(..., empty=True)", "use agg or aggregate instead"
            )
        value = folded
        if process is not None:
            settings |= {"process": process, "states": self._process_states(process, name)}
            if schema is None:
                raise GraphError.bad_argument(name, "needs the schema of what process gives", None, "add schema=...")
            value = Schema.of(schema)
        assert value is not None
        shown = self._result_schema(value, name, is_plain=process is not None, is_row="reduce" in settings)
        return stream._add(
            WindowNode,
            f"window_{name}",
            shown,
            key=stream.key,
            input_schema=stream.schema,
            assigner=assigner,
            trigger=trigger,
            evictor=self._evicting(),
            is_plain=self._trigger is None and self._evictor is None,
            evicts_after=self._evicts_after,
            lateness_ms=self._lateness_ms,
            late=self._late,
            panes=self._panes,
            folded=folded,
            value=value,
            **settings,
        )

    def _process_states(self, process: Any, name: str) -> tuple[Any, ...]:
        if not isinstance(process, ProcessWindowFunction):
            raise GraphError.bad_argument(name, "needs a hw.ProcessWindowFunction", process, "pass an instance")
        states = tuple(keyed_states(process, name))
        if self._assigner.merges and any(state.is_per_window for state in states):
            raise GraphError.bad_argument(
                name, "cannot keep per-window state in windows that merge", type(process).__name__, "keep it per key"
            )
        return states

    def _result_schema(self, value: Schema, name: str, *, is_plain: bool, is_row: bool) -> Schema:
        """The key, the window, what was computed, and what panes add."""
        fields: list[pa.Field] = []
        if not is_plain and not is_row:
            fields += self._stream._key_fields()
        if not is_plain:
            fields += self._window_fields()
        fields = [*value.arrow, *fields] if is_row else [*fields, *value.arrow]
        if self._panes.has_info and not is_plain:
            fields += [pa.field("pane_kind", pa.string()), pa.field("pane_index", pa.int32())]
        if self._panes.mode == "retracting":
            fields.append(pa.field("row_kind", pa.string()))
        names = [field.name for field in fields]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise GraphError.bad_argument(
                name,
                "needs other names than those of the key, the window and the pane",
                ", ".join(twice),
                "rename them",
            )
        return Schema(pa.schema(fields))
