"""Windows over one flow, and over two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pyarrow as pa

from headwater.aggregates import Aggregate, result_fields
from headwater.aggregates.declared import refuse_taking_back
from headwater.data.functions.terms import Term
from headwater.data.schema import Schema, SchemaLike, parse_type, type_ddl
from headwater.declared import keyed_states
from headwater.descriptors import StateDeclaration
from headwater.errors import GraphError
from headwater.functions import EVENT, AggregateFunction, OutputTag, ProcessWindowFunction
from headwater.graph.changelog import APPEND, APPEND_ONLY, APPEND_OR_RETRACT, Changelog, ChangelogMode, Modes
from headwater.graph.checks import check_lasts_with_windows, check_states
from headwater.graph.edges import Key
from headwater.graph.flow import Flow
from headwater.graph.nodes.conditions import condition_query
from headwater.graph.nodes.core import Node, declared, named
from headwater.graph.nodes.joins import SUFFIX, JoinNode, join_settings, padded, side_by_side
from headwater.graph.windowed import Panes, Windowed, WindowedPair
from headwater.windows.assigners import CountWindows, SlicedAssigner, WindowAssigner, assigns_as
from headwater.windows.evictors import Evictor
from headwater.windows.triggers import ContinuousEventTimeTrigger, EventTimeTrigger, Trigger

BY_SLICES, BY_COUNT, BY_RUNS, BY_BURSTS = "by slices", "by count", "by runs", "by bursts"
BY_ELEMENT = "by element"
"""The ways to compute windows: by columns, or row by row."""


@dataclass(frozen=True)
class WindowInput:
    """One of the two inputs whose rows meet in windows: its rows, how they are keyed, and what becomes of late ones."""

    input_schema: Schema
    key: Key
    lateness_ms: int = 0
    late: OutputTag | None = None


@dataclass(frozen=True, kw_only=True)
class WindowNode(Node):
    """Windows over a keyed stream. One of `aggregates`, `reduce` and `aggregate` may stand before `process`."""

    operation: ClassVar[str] = "window"
    is_stateful: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True

    key: Key
    input_schema: Schema
    assigner: WindowAssigner
    trigger: Trigger
    evictor: Evictor | None
    is_plain: bool = False
    """Whether trigger and evictor are the windows' own."""
    evicts_after: bool
    lateness_ms: int
    late: OutputTag | None = None
    panes: Panes
    aggregates: Mapping[str, Aggregate] | None = None
    reduce: Callable[[Any, Any], Any] | None = None
    aggregate: AggregateFunction[Any, Any, Any] | None = None
    accumulator: pa.DataType | None = None
    folded: Schema | None = None
    """What `aggregates`, `reduce` or `aggregate` give for a firing."""
    value: Schema
    """What a firing gives in the end, before key, window and pane are put to it."""
    process: ProcessWindowFunction | None = None
    states: tuple[StateDeclaration, ...] = ()
    sides: tuple[WindowInput, WindowInput] | None = None
    """The two inputs that its rows come from, each as one column of them, in joins and co-groups."""
    takes_back: bool = False
    """Whether rows may be taken back, so that more is kept of them."""

    @classmethod
    def of_aggregates(
        cls,
        windowed: Windowed,
        *,
        aggregates: Mapping[str, Aggregate],
        process: ProcessWindowFunction | None = None,
        schema: SchemaLike | None = None,
    ) -> Self:
        """Built-in aggregates by name; with a `process` function behind them, which gives `schema`."""
        folded = Schema(pa.schema(result_fields(aggregates, windowed.rows, "agg")))
        return cls._of(windowed, "agg", folded, process, schema, aggregates=aggregates)

    @classmethod
    def of_reduce(
        cls,
        windowed: Windowed,
        *,
        function: Callable[[Any, Any], Any],
        process: ProcessWindowFunction | None = None,
        schema: SchemaLike | None = None,
    ) -> Self:
        """Two rows into one, of the same schema, again and again."""
        if not callable(function):
            raise GraphError.bad_argument("reduce", "needs a function of two rows", function, "pass a function")
        if windowed.panes.has_empty:
            windowed.firing("reduce")
            raise GraphError.bad_argument(
                "reduce",
                "has no value for a pane without rows",
                "panes(..., empty=True)",
                "use agg or aggregate instead",
            )
        return cls._of(windowed, "reduce", windowed.rows, process, schema, reduce=function)

    @classmethod
    def of_aggregate(
        cls,
        windowed: Windowed,
        *,
        function: AggregateFunction[Any, Any, Any],
        accumulator: str,
        result: SchemaLike | None = None,
        process: ProcessWindowFunction | None = None,
        schema: SchemaLike | None = None,
    ) -> Self:
        """An `AggregateFunction` over an accumulator of a DDL type; it gives `schema`, or before `process` `result`."""
        if not isinstance(function, AggregateFunction):
            raise GraphError.bad_argument("aggregate", "needs a hw.AggregateFunction", function, "pass an instance")
        if windowed.assigner.merges and type(function).merge is AggregateFunction.merge:
            raise GraphError.bad_argument(
                "aggregate", "needs a function with merge, for windows that do", type(function).__name__, "write merge"
            )
        gives = schema if process is None else result
        if gives is None:
            raise GraphError.bad_argument(
                "aggregate", "needs the schema of its result", None, "add schema='avg double'"
            )
        folded, dtype = Schema.of(gives), parse_type(accumulator)
        return cls._of(windowed, "aggregate", folded, process, schema, aggregate=function, accumulator=dtype)

    @classmethod
    def of_process(cls, windowed: Windowed, *, function: ProcessWindowFunction, schema: SchemaLike) -> Self:
        """A `ProcessWindowFunction` over the rows of each window that fires."""
        return cls._of(windowed, "process", None, function, schema)

    @classmethod
    def of_pair(
        cls, flow: Flow, pair: WindowedPair, *, process: ProcessWindowFunction, value: Schema, shown: Schema
    ) -> Self:
        """A function over rows of both inputs, which come as one flow; it shows its value, or that and the window."""
        pair.check_watermarks()
        return cls(
            name=pair.step,
            inputs=flow.edges,
            schema=shown,
            key=flow.key,
            input_schema=flow.schema,
            assigner=pair.assigner,
            trigger=pair.firing(pair.step),
            evictor=pair.evicting,
            evicts_after=pair.evicts_after,
            lateness_ms=pair.lateness_ms,
            panes=Panes(),
            value=value,
            process=process,
            sides=window_inputs(pair),
        )

    @classmethod
    def _of(
        cls,
        windowed: Windowed,
        step: str,
        folded: Schema | None,
        process: ProcessWindowFunction | None,
        schema: SchemaLike | None,
        **settings: Any,
    ) -> Self:
        trigger = windowed.firing(step)
        value = folded
        if process is not None:
            settings |= {"process": process, "states": _process_states(process, windowed.assigner, step)}
            if schema is None:
                raise GraphError.bad_argument(step, "needs the schema of what process gives", None, "add schema=...")
            value = Schema.of(schema)
        assert value is not None
        takes_back = not windowed.flow.changelog.is_append_only
        if takes_back:
            _check_takes_back(windowed, settings, step)
        return cls(
            name=f"window_{step}",
            inputs=windowed.flow.edges,
            changelog=_told(windowed),
            takes_back=takes_back,
            schema=_shown(windowed, value, step, is_processed=process is not None, is_row="reduce" in settings),
            key=windowed.flow.key,
            input_schema=windowed.rows,
            assigner=windowed.assigner,
            trigger=trigger,
            evictor=windowed.evicting,
            is_plain=windowed.is_plain,
            evicts_after=windowed.evicts_after,
            lateness_ms=windowed.lateness_ms,
            late=windowed.late,
            panes=windowed.panes,
            folded=folded,
            value=value,
            **settings,
        )

    def takes(self, side: int) -> Modes:
        return APPEND_OR_RETRACT if self.takes_back else APPEND

    def kept(self) -> dict[str, Any]:
        words: dict[str, Any] = {
            "key": self.key.typed(),
            "windows": self.assigner.describe(),
            "trigger": self.trigger.describe(),
            "rows": self.input_schema.ddl(),
            "aggregates": named(self.aggregates or {}),
            "accumulator": None if self.accumulator is None else type_ddl(self.accumulator),
            "keeps rows": self.folded is None or (self.evictor is not None and not self.is_counted),
            "panes": [self.panes.mode, self.panes.has_info, self.panes.has_empty],
            "states": declared(self.states),
        }
        return {**words, "takes back": True} if self.takes_back else words

    @property
    def is_silent(self) -> bool:
        return not self.trigger.can_fire

    @property
    def needs_times(self) -> bool:
        return self.assigner.domain == EVENT and self.assigner.is_bounded

    @property
    def waits_for_event_time(self) -> bool:
        return self.is_plain and self.assigner.domain == EVENT and self.assigner.is_bounded

    @property
    def is_counted(self) -> bool:
        """Whether it is built-in aggregates over windows of a number of rows, and nothing else."""
        is_aggregated = self.aggregates is not None and self.process is None
        return is_aggregated and self.is_plain and assigns_as(self.assigner, CountWindows)


@dataclass(frozen=True, kw_only=True)
class WindowJoinNode(JoinNode):
    """Rows that have a window in common: pairs, and where `how` asks for them, rows that met none."""

    operation: ClassVar[str] = "window_join"
    waits_by_side: ClassVar[bool] = False  # as in Flink, where it is a window over the union of both

    how: str
    assigner: SlicedAssigner
    lateness_ms: int
    late_left: OutputTag | None
    late_right: OutputTag | None
    condition: str | None = None
    """A query of DuckDB over pairs: they are those of which it keeps something."""

    @property
    def needs_times(self) -> bool:
        return True

    @classmethod
    def of(cls, pair: WindowedPair, *, condition: Term | None = None, suffix: str = SUFFIX) -> Self:
        assigner = pair.assigner
        if not cls.can_do(pair) or not isinstance(assigner, SlicedAssigner):
            raise GraphError.bad_argument(
                pair.step,
                "makes pairs by columns in windows of few slices that fire at their end",
                assigner.describe(),
                "join them element by element",
            )
        _, shown, columns = pair_schemas(pair, suffix)
        pair.check_watermarks()
        return cls(
            schema=shown,
            how=pair.how,
            assigner=assigner,
            lateness_ms=pair.lateness_ms,
            late_left=pair.late_left,
            late_right=pair.late_right,
            condition=condition_query(condition),
            **join_settings(pair.left, pair.right, name=pair.step, shown=columns),
        )

    @staticmethod
    def can_do(pair: WindowedPair) -> bool:
        """Whether windows are made of few slices and fire at their end, so that pairs can be made by columns."""
        is_plain = type(pair.firing(pair.step)) is EventTimeTrigger and pair.evictor is None
        return is_plain and assigns_as(pair.assigner, SlicedAssigner) and pair.assigner.has_few_slices

    def kept(self) -> dict[str, Any]:
        words = {**super().kept(), "windows": self.assigner.describe()}
        return words if self.how == "inner" else {**words, "how": self.how}


def window_inputs(pair: WindowedPair) -> tuple[WindowInput, WindowInput]:
    """Both inputs of a pair."""
    left, right = pair.left, pair.right
    return (
        WindowInput(left.schema, left.key, pair.lateness_ms, pair.late_left),
        WindowInput(right.schema, right.key, pair.lateness_ms, pair.late_right),
    )


def pair_schemas(pair: WindowedPair, suffix: str) -> tuple[Schema, Schema, tuple[str, ...]]:
    """The columns of both sides, or the left ones; these and the window; and which of the right ones are among them."""
    value = pair.left.schema
    columns: tuple[str, ...] = ()
    if not pair.shows_left_alone:
        both, columns = side_by_side(pair.left, pair.right, suffix, pair.step)
        value = padded(both, len(pair.left.schema.names), pair.how)
    taken = [field.name for field in pair.fields if field.name in value.names]
    if taken:
        raise GraphError.bad_argument(
            pair.step, "needs other names than those of the window", ", ".join(taken), "rename them with select"
        )
    return value, Schema(pa.schema([*value.arrow, *pair.fields])), columns


def _told(windowed: Windowed) -> Changelog:
    """What results do: those of retracting panes take back what was said of the same window, at the same time."""
    if windowed.panes.mode != "retracting":
        return APPEND_ONLY
    return Changelog(ChangelogMode.RETRACT, keeps_times=windowed.assigner.is_bounded)


def _check_takes_back(windowed: Windowed, settings: Mapping[str, Any], step: str) -> None:
    """Refuse windows over a changelog that would not find the rows that are taken back, or could not take back a result."""
    aggregates = settings.get("aggregates")
    trigger = windowed.firing(step)
    fires_again = windowed.lateness_ms > 0 or type(trigger) is not EventTimeTrigger
    if not windowed.flow.changelog.keeps_times:
        fact = "rows that are taken back with another time than they came with, and so in other windows"
    elif not isinstance(windowed.assigner, SlicedAssigner):
        fact = windowed.assigner.describe()
    elif aggregates is None or "process" in settings:
        fact = "a function over the rows of a window"
    elif windowed.evictor is not None or not isinstance(trigger, EventTimeTrigger | ContinuousEventTimeTrigger):
        fact = "a trigger that is not by event time, or an evictor"
    elif windowed.late is not None:
        fact = "late rows as a side output, where they would lose what they do"
    elif windowed.panes.has_empty or windowed.panes.mode == "discarding":
        fact = "empty or discarding panes"
    elif fires_again and windowed.panes.mode != "retracting":
        fact = "windows that fire again, without panes('retracting') to take a result back"
    else:
        refuse_taking_back(aggregates, step)
        return
    raise GraphError.bad_argument(
        step,
        "takes rows of a changelog back in built-in aggregates over windows in event time",
        fact,
        "change that, use .agg without windows, or call .with_row_kind() first to have the changes as rows",
    )


def _process_states(process: Any, assigner: WindowAssigner, step: str) -> tuple[StateDeclaration, ...]:
    if not isinstance(process, ProcessWindowFunction):
        raise GraphError.bad_argument(step, "needs a hw.ProcessWindowFunction", process, "pass an instance")
    check_states(process, step)
    states = tuple(keyed_states(process, step))
    check_lasts_with_windows(states, step)
    if assigner.merges and any(state.is_per_window for state in states):
        raise GraphError.bad_argument(
            step, "cannot keep per-window state in windows that merge", type(process).__name__, "keep it per key"
        )
    return states


def _shown(windowed: Windowed, value: Schema, step: str, *, is_processed: bool, is_row: bool) -> Schema:
    """The key, the window, what was computed, and what panes add; of a process function, what it gives."""
    fields: list[pa.Field] = []
    if not is_processed and not is_row:
        fields += windowed.flow.key.fields(windowed.rows)
    if not is_processed:
        fields += windowed.fields
    fields = [*value.arrow, *fields] if is_row else [*fields, *value.arrow]
    if windowed.panes.has_info and not is_processed:
        fields += [pa.field("pane_kind", pa.string()), pa.field("pane_index", pa.int32())]
    names = [field.name for field in fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise GraphError.bad_argument(
            step,
            "needs other names than those of the key, the window and the pane",
            ", ".join(twice),
            "rename them",
        )
    return Schema(pa.schema(fields))
