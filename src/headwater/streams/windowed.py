"""The handle on a windowed stream: what fires its windows, what becomes of late rows, and what is computed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headwater.aggregates import result_fields
from headwater.descriptors import ReducingState, declared_states
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.evictors import Evictor
from headwater.functions import AggregateFunction, OutputTag, ProcessWindowFunction
from headwater.graph.nodes import Panes, WindowNode
from headwater.schema import Schema, SchemaLike, parse_type
from headwater.triggers import Trigger, checked
from headwater.windows import EVENT, WindowAssigner

if TYPE_CHECKING:
    from headwater.streams.keyed import KeyedStream
    from headwater.streams.stream import Step

LATE_COLUMNS = {
    "window_start": pa.timestamp("us", "UTC"),
    "window_end": pa.timestamp("us", "UTC"),
    "late_by_ms": pa.int64(),
}
"""What the side output of late rows may show besides their own fields."""
_MODES = ("accumulating", "discarding", "retracting")


class WindowedStream:
    """The windows of a stream. Say how they work, then what to compute; each call gives a new handle."""

    def __init__(self, stream: KeyedStream, assigner: WindowAssigner) -> None:
        if not isinstance(assigner, WindowAssigner):
            raise GraphError.bad_argument("window", "needs windows", assigner, "write window(hw.tumbling('10 s'))")
        self._stream, self._assigner = stream, assigner
        self._trigger: Trigger | None = None
        self._evictor: Evictor | None = None
        self._evicts_after = False
        self._lateness_ms = 0
        self._late: OutputTag | None = None
        self._panes = Panes()

    # -- how they work ----------------------------------------------------------------------------------------------

    def trigger(self, trigger: Trigger) -> WindowedStream:
        """Fire as the trigger says instead of at the window's end."""
        trigger = checked(trigger, "trigger")
        if self._assigner.merges:
            self._check_merges(trigger)
        return self._with(_trigger=trigger)

    def evict(self, evictor: Evictor, *, after: bool = False) -> WindowedStream:
        """Let elements leave when the window fires, before or after the function sees them."""
        if not isinstance(evictor, Evictor):
            raise GraphError.bad_argument("evict", "needs a hw.Evictor", evictor, "use one of hw.evictors")
        return self._with(_evictor=evictor, _evicts_after=after)

    def allow_lateness(self, lateness: Duration) -> WindowedStream:
        """Keep windows for so long after their end: late rows update them, and each update fires."""
        if self._assigner.domain != EVENT:
            raise GraphError.bad_argument(
                "allow_lateness", "needs windows in event time", self._assigner.describe(), "leave it out"
            )
        return self._with(_lateness_ms=duration_ms(lateness, what="the allowed lateness"))

    def late_to(self, tag: OutputTag) -> WindowedStream:
        """Send rows that are too late to a side output: its fields are the row's, and window_start, window_end, late_by_ms."""
        if self._assigner.domain != EVENT:
            raise GraphError.bad_argument(
                "late_to",
                "needs windows in event time: in processing time nothing is late",
                self._assigner.describe(),
                "leave it out",
            )
        known = {f.name: f.type for f in self._stream.schema.arrow} | LATE_COLUMNS
        for field in tag.schema.arrow:
            if known.get(field.name) != field.type:
                raise GraphError.bad_argument(
                    "late_to",
                    "needs a tag whose fields are the row's, or window_start and window_end timestamp, late_by_ms bigint",
                    f"{field.name} {field.type}",
                    f"choose from {', '.join(known)}",
                )
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

    def _with(self, **settings: Any) -> WindowedStream:
        other = copy.copy(self)
        vars(other).update(settings)
        return other

    def _check_merges(self, trigger: Trigger) -> None:
        """A trigger of windows that merge must say that it can, and keep only what can be combined."""
        name = type(trigger).__name__.removeprefix("_")
        if not trigger.can_merge:
            raise GraphError.bad_argument(
                "trigger", "needs a trigger that can merge, for windows that do", name, "use one with can_merge"
            )
        for state in trigger.states(self._stream.schema, "trigger"):
            if not isinstance(state, ReducingState):
                raise GraphError.bad_argument(
                    "trigger",
                    "needs a trigger that keeps reducing states only, for windows that merge",
                    f"{name}.{state.attribute} is a {type(state).__name__}",
                    "declare it as hw.ReducingState",
                )
        for part in trigger.parts():
            self._check_merges(part)

    def _add(
        self,
        name: str,
        folded: Schema | None,
        process: ProcessWindowFunction | None,
        schema: SchemaLike | None,
        **settings: Any,
    ) -> Step:
        stream, assigner = self._stream, self._assigner
        trigger = self._trigger or assigner.default_trigger()
        if self._trigger is None and not trigger.can_fire:
            raise GraphError.bad_argument(
                name, "needs a trigger: these windows have no end", assigner.describe(), "add .trigger(...)"
            )
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
            evictor=self._evictor or assigner.default_evictor(),
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
        states = tuple(declared_states(process, name))
        if self._assigner.merges and any(state.is_per_window for state in states):
            raise GraphError.bad_argument(
                name, "cannot keep per-window state in windows that merge", type(process).__name__, "keep it per key"
            )
        return states

    def _result_schema(self, value: Schema, name: str, *, is_plain: bool, is_row: bool) -> Schema:
        """The key, the window, what was computed, and what panes add."""
        moment = pa.timestamp("us", "UTC")
        fields: list[pa.Field] = []
        if not is_plain and not is_row:
            fields += self._stream._key_fields()
        if not is_plain and self._assigner.is_bounded:
            fields += [pa.field("window_start", moment), pa.field("window_end", moment)]
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
