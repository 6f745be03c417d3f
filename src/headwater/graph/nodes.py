"""The nodes and edges of a job graph: frozen, checked when made, asked for properties and never for their class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import pyarrow as pa

from headwater.aggregates import Aggregate
from headwater.connectors.contract import Sink, Source
from headwater.data.schema import Schema, type_ddl
from headwater.descriptors import MapState, OperatorListState, StateDeclaration
from headwater.functions import (
    AggregateFunction,
    BroadcastFunction,
    CoProcessFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
)
from headwater.lookups import LookupTable
from headwater.retry import Retry
from headwater.watermarks import Watermarks
from headwater.windows.assigners import CountWindows, SlicedAssigner, WindowAssigner
from headwater.windows.evictors import Evictor
from headwater.windows.triggers import Trigger


@dataclass(frozen=True)
class Key:
    """How a stream is keyed: by columns, or by a function whose result has the declared type."""

    columns: tuple[str, ...]
    function: Callable[[Any], Any] | None
    type: pa.DataType

    @property
    def is_nothing(self) -> bool:
        """Whether all rows have one key, as for `window_all`."""
        return not self.columns and self.function is None

    def describe(self) -> str:
        return ", ".join(self.columns) if self.function is None else f"{_name_of(self.function)}()"


NO_KEY = Key((), None, pa.bool_())

Partitioner = Callable[[Any, int], int]
"""Gets a key and the number of subtasks; gives the subtask, counted from 0."""


@dataclass(frozen=True)
class Exchange:
    """How rows get from a step to the next: 'forward' stays in place, the others move rows between subtasks."""

    kind: str
    key: Key | None = None
    partitioner: Partitioner | None = None
    """For 'custom': chooses the subtask by the key."""

    @property
    def moves(self) -> bool:
        return self.kind != "forward"

    def describe(self) -> str:
        if self.key is None:
            return self.kind
        if self.partitioner is not None:
            return f"partition_custom({_name_of(self.partitioner)}, {self.key.describe()})"
        return f"key_by({self.key.describe()})"


FORWARD, REBALANCE = Exchange("forward"), Exchange("rebalance")


LEFT, RIGHT = 0, 1
"""The inputs of a step that has two."""


@dataclass(frozen=True)
class Edge:
    """One connection: from a node, or from a node's side output, by an exchange, into one side of a step."""

    source: int
    tag: str | None
    exchange: Exchange
    side: int = LEFT


@dataclass(frozen=True)
class Node:
    """A step. Each of its inputs, one or two, is one or several edges (a union)."""

    id: int
    name: str
    inputs: tuple[Edge, ...]
    schema: Schema
    uid: str | None = None
    outputs: Mapping[str, Schema] = field(default_factory=dict)
    """The side outputs that somebody reads, or that the step is set to write, by tag."""

    operation: ClassVar[str] = ""
    is_source: ClassVar[bool] = False
    is_sink: ClassVar[bool] = False
    is_stateful: ClassVar[bool] = False
    waits_by_side: ClassVar[bool] = False
    """Whether event time is taken over two inputs, each as a whole, and not over all channels alike."""

    @property
    def is_remembered(self) -> bool:
        """Whether something is stored under the step's uid, so that the uid must not depend on other steps."""
        return self.is_stateful or self.is_source

    def kept(self) -> dict[str, Any]:
        """What a stateful step keeps, in words; state fits as long as these are the same."""
        return {}

    @property
    def is_silent(self) -> bool:
        """Whether the step never gives a result."""
        return False

    @property
    def grows(self) -> bool:
        """Whether the step keeps every row it gets."""
        return False

    @property
    def asks_outside(self) -> bool:
        """Whether what the step gives depends on something beyond its rows and its state, so that it may differ on replay."""
        return False


@dataclass(frozen=True)
class SourceNode(Node):
    """Reads a source and gives each split its watermark."""

    operation: ClassVar[str] = "source"
    is_source: ClassVar[bool] = True

    source: Source = None  # type: ignore[assignment]
    watermarks: Watermarks = field(default_factory=Watermarks.none)


@dataclass(frozen=True)
class RowFunctionNode(Node):
    """A Python function without state that gets rows one by one."""

    function: Any = None
    failed_to: OutputTag | None = None
    """Where the rows go for which the function fails; without it they fail the job."""


@dataclass(frozen=True)
class MapNode(RowFunctionNode):
    """One row in, one row out, by a Python function."""

    operation: ClassVar[str] = "map"


@dataclass(frozen=True)
class FlatMapNode(RowFunctionNode):
    """One row in, any number of rows out, by a Python function."""

    operation: ClassVar[str] = "flat_map"


@dataclass(frozen=True)
class FilterNode(RowFunctionNode):
    """Keeps the rows for which a Python function is true."""

    operation: ClassVar[str] = "filter"


@dataclass(frozen=True)
class SelectNode(Node):
    """Computes columns by SQL expressions, whole batches at a time."""

    operation: ClassVar[str] = "select"
    expressions: tuple[str, ...] = ()
    query: str = ""


@dataclass(frozen=True)
class WhereNode(Node):
    """Keeps the rows for which a SQL expression is true, whole batches at a time."""

    operation: ClassVar[str] = "where"
    expression: str = ""
    query: str = ""


@dataclass(frozen=True)
class MapBatchesNode(Node):
    """Arrow table in, Arrow table out, by a Python function."""

    operation: ClassVar[str] = "map_batches"
    function: Callable[[pa.Table], pa.Table] = None  # type: ignore[assignment]
    timestamp: str | None = None


@dataclass(frozen=True)
class MapAsyncNode(RowFunctionNode):
    """One row in, one row or none out, by a coroutine function."""

    operation: ClassVar[str] = "map_async"
    capacity: int = 1
    timeout_ms: int | None = None
    retry: Retry | None = None
    ordered: bool = True
    timeout_to: OutputTag | None = None

    @property
    def asks_outside(self) -> bool:
        return True


@dataclass(frozen=True)
class LookupJoinNode(Node):
    """Each row together with the rows of a table outside the job that have its key."""

    operation: ClassVar[str] = "lookup_join"
    keys: tuple[str, ...] = ()
    """The stream's columns that make the key."""
    key_types: tuple[pa.DataType, ...] = ()
    """The types in which keys are compared."""
    right: pa.Table | LookupTable | Callable[[list[Any]], Mapping[Any, Any]] = None
    """A table that travels with the plan, its key columns first; or what is asked by key."""
    right_keys: tuple[str, ...] = ()
    right_schema: Schema = None  # type: ignore[assignment]
    """What the table adds to a row, under its own names."""
    keeps_unmatched: bool = True
    cache: Literal["full"] | int | None = None
    ttl_ms: int | None = None

    @property
    def asks_outside(self) -> bool:
        return not isinstance(self.right, pa.Table)


@dataclass(frozen=True)
class ProcessNode(RowFunctionNode):
    """A stateless process function with side outputs."""

    operation: ClassVar[str] = "process"


@dataclass(frozen=True)
class StatefulProcessNode(Node):
    """A process function with operator state; without a key."""

    operation: ClassVar[str] = "stateful_process"
    is_stateful: ClassVar[bool] = True
    function: ProcessFunction = None  # type: ignore[assignment]
    states: tuple[OperatorListState, ...] = ()

    def kept(self) -> dict[str, Any]:
        return {"states": _declared(self.states)}


@dataclass(frozen=True)
class KeyedProcessNode(Node):
    """A keyed process function with its state declarations."""

    operation: ClassVar[str] = "keyed_process"
    is_stateful: ClassVar[bool] = True
    function: KeyedProcessFunction = None  # type: ignore[assignment]
    states: tuple[StateDeclaration, ...] = ()
    key: Key = None  # type: ignore[assignment]

    def kept(self) -> dict[str, Any]:
        return {"key": _keyed(self.key), "states": _declared(self.states)}


@dataclass(frozen=True)
class CoProcessNode(Node):
    """A function over two inputs with its state declarations; the inputs are keyed alike or, with `NO_KEY`, not at all."""

    operation: ClassVar[str] = "co_process"
    is_stateful: ClassVar[bool] = True
    waits_by_side: ClassVar[bool] = True
    function: CoProcessFunction = None  # type: ignore[assignment]
    states: tuple[StateDeclaration, ...] = ()
    key: Key = None  # type: ignore[assignment]
    right_key: Key = None  # type: ignore[assignment]

    def kept(self) -> dict[str, Any]:
        return {
            "key": _keyed(self.key),
            "right key": self.right_key.describe(),
            "states": _declared(self.states),
        }


@dataclass(frozen=True)
class BroadcastProcessNode(Node):
    """A function over a stream, keyed or with `NO_KEY`, and a broadcast stream whose rows are kept in broadcast states."""

    operation: ClassVar[str] = "broadcast_process"
    is_stateful: ClassVar[bool] = True
    waits_by_side: ClassVar[bool] = True
    function: BroadcastFunction = None  # type: ignore[assignment]
    states: tuple[StateDeclaration, ...] = ()
    broadcast_states: tuple[MapState, ...] = ()
    key: Key = None  # type: ignore[assignment]

    def kept(self) -> dict[str, Any]:
        return {
            "key": _keyed(self.key),
            "states": _declared(self.states),
            "broadcast states": _declared(self.broadcast_states),
        }


@dataclass(frozen=True)
class JoinNode(Node):
    """Two keyed inputs whose rows are put side by side: the left columns, then those of the right in `right_columns`."""

    is_stateful: ClassVar[bool] = True
    waits_by_side: ClassVar[bool] = True
    key: Key = None  # type: ignore[assignment]
    right_key: Key = None  # type: ignore[assignment]
    left_schema: Schema = None  # type: ignore[assignment]
    right_schema: Schema = None  # type: ignore[assignment]
    right_columns: tuple[str, ...] = ()

    def kept(self) -> dict[str, Any]:
        return {
            "key": _keyed(self.key),
            "right key": self.right_key.describe(),
            "left rows": self.left_schema.ddl(),
            "right rows": self.right_schema.ddl(),
        }


@dataclass(frozen=True)
class IntervalJoinNode(JoinNode):
    """Pairs of rows with `left time + lower <= right time <= left time + upper`."""

    operation: ClassVar[str] = "interval_join"
    lower_ms: int = 0
    upper_ms: int = 0
    late_left: OutputTag | None = None
    late_right: OutputTag | None = None
    unmatched_left: OutputTag | None = None
    unmatched_right: OutputTag | None = None

    def kept(self) -> dict[str, Any]:
        marks = self.unmatched_left is not None or self.unmatched_right is not None
        words = {**super().kept(), "between": [self.lower_ms, self.upper_ms]}
        return {**words, "tells unmatched rows": True} if marks else words


@dataclass(frozen=True)
class RegularJoinNode(JoinNode):
    """Pairs of all rows so far, and padded rows where `how` asks for them, as a changelog."""

    operation: ClassVar[str] = "regular_join"
    how: str = "inner"
    ttl_ms: int | None = None

    def kept(self) -> dict[str, Any]:
        return {**super().kept(), "how": self.how}

    @property
    def grows(self) -> bool:
        return self.ttl_ms is None


@dataclass(frozen=True)
class TemporalJoinNode(JoinNode):
    """Each left row with the right row of its key that was the latest at the left row's time."""

    operation: ClassVar[str] = "temporal_join"
    how: str = "inner"
    late: OutputTag | None = None

    def kept(self) -> dict[str, Any]:
        return {**super().kept(), "how": self.how}


@dataclass(frozen=True)
class RunningNode(Node):
    """Built-in aggregates over all rows of a key so far."""

    operation: ClassVar[str] = "running"
    is_stateful: ClassVar[bool] = True
    key: Key = None  # type: ignore[assignment]
    input_schema: Schema = None  # type: ignore[assignment]
    aggregates: Mapping[str, Aggregate] = field(default_factory=dict)

    def kept(self) -> dict[str, Any]:
        return {
            "key": _keyed(self.key),
            "aggregates": _named(self.aggregates),
            "rows": self.input_schema.ddl(),
        }


@dataclass(frozen=True)
class Panes:
    """What the firings of a window give: 'discarding', 'accumulating' or 'retracting', and what rows tell about them."""

    mode: str = "accumulating"
    has_info: bool = False
    has_empty: bool = False


@dataclass(frozen=True)
class WindowInput:
    """One of the two inputs whose rows meet in windows: its rows, how they are keyed, and what becomes of late ones."""

    input_schema: Schema
    key: Key
    lateness_ms: int = 0
    late: OutputTag | None = None


@dataclass(frozen=True)
class WindowNode(Node):
    """Windows over a keyed stream. One of `aggregates`, `reduce` and `aggregate` may stand before `process`."""

    operation: ClassVar[str] = "window"
    is_stateful: ClassVar[bool] = True
    key: Key = None  # type: ignore[assignment]
    input_schema: Schema = None  # type: ignore[assignment]
    assigner: WindowAssigner = None  # type: ignore[assignment]
    trigger: Trigger = None  # type: ignore[assignment]
    evictor: Evictor | None = None
    is_plain: bool = False
    """Whether trigger and evictor are the windows' own."""
    evicts_after: bool = False
    lateness_ms: int = 0
    late: OutputTag | None = None
    panes: Panes = Panes()
    aggregates: Mapping[str, Aggregate] | None = None
    reduce: Callable[[Any, Any], Any] | None = None
    aggregate: AggregateFunction[Any, Any, Any] | None = None
    accumulator: pa.DataType | None = None
    folded: Schema | None = None
    """What `aggregates`, `reduce` or `aggregate` give for a firing."""
    value: Schema = None  # type: ignore[assignment]
    """What a firing gives in the end, before key, window and pane are put to it."""
    process: ProcessWindowFunction | None = None
    states: tuple[StateDeclaration, ...] = ()
    sides: tuple[WindowInput, WindowInput] | None = None
    """The two inputs that its rows come from, each as one column of them, in joins and co-groups."""

    def kept(self) -> dict[str, Any]:
        return {
            "key": _keyed(self.key),
            "windows": self.assigner.describe(),
            "trigger": self.trigger.describe(),
            "rows": self.input_schema.ddl(),
            "aggregates": _named(self.aggregates or {}),
            "accumulator": None if self.accumulator is None else type_ddl(self.accumulator),
            "keeps rows": self.folded is None or (self.evictor is not None and not self.is_counted),
            "panes": [self.panes.mode, self.panes.has_info, self.panes.has_empty],
            "states": _declared(self.states),
        }

    @property
    def is_silent(self) -> bool:
        return not self.trigger.can_fire

    @property
    def is_counted(self) -> bool:
        """Whether it is built-in aggregates over windows of a number of rows, and nothing else."""
        is_aggregated = self.aggregates is not None and self.process is None
        return is_aggregated and self.is_plain and isinstance(self.assigner, CountWindows)


@dataclass(frozen=True)
class WindowJoinNode(JoinNode):
    """Pairs of rows that have a window in common."""

    operation: ClassVar[str] = "window_join"
    waits_by_side: ClassVar[bool] = False  # as in Flink, where it is a window over the union of both
    assigner: SlicedAssigner = None  # type: ignore[assignment]
    lateness_ms: int = 0
    late_left: OutputTag | None = None
    late_right: OutputTag | None = None

    def kept(self) -> dict[str, Any]:
        return {**super().kept(), "windows": self.assigner.describe()}


@dataclass(frozen=True)
class SinkNode(Node):
    """Hands rows to a sink, through the outbox."""

    operation: ClassVar[str] = "sink"
    is_sink: ClassVar[bool] = True
    sink: Sink = None  # type: ignore[assignment]


def _keyed(key: Key) -> str:
    return f"{key.describe()}: {type_ddl(key.type)}"


def _declared(states: Sequence[StateDeclaration]) -> dict[str, list[str]]:
    return {state.name: [state.kind, *(type_ddl(dtype) for _, dtype in state.columns())] for state in states}


def _named(aggregates: Mapping[str, Aggregate]) -> dict[str, str]:
    return {name: str(aggregate) for name, aggregate in aggregates.items()}


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)
