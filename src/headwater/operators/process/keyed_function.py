"""What steps that run user code per key share: states, timers, the context, and what becomes of results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from headwater.data.batch import Batch, Timestamps, timestamp_array
from headwater.data.rows import Row, decode, encode_rows, make_rows
from headwater.data.schema import Schema
from headwater.descriptors import StateDeclaration
from headwater.functions import EVENT, Context, Emitted, Timer
from headwater.graph.edges import Key
from headwater.measures import Measured, Metrics
from headwater.operators.contract import Emit, StepTime
from headwater.operators.keys import keys_of
from headwater.operators.stateless.functions import SideRow, side_batches
from headwater.operators.timers import KeepsTimers, StepTimers
from headwater.operators.user_code import open_function, own_copy, user_code_failed
from headwater.state.backend import StateBackend
from headwater.state.handles.expiring import Expiry
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor
from headwater.state.memory_backend import MEMORY
from headwater.state.timers import TimerKey
from headwater.words import TimeDomain

SLICE_ROWS = 65_536
"""Rows decoded and results held at a time; bounds memory without showing in the per-row cost."""


class KeyedContext(Context):
    """The context of a keyed function: its key is the cursor's."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    @property
    def key(self) -> Any:
        return self._cursor.key


class KeyedFunction(Protocol):
    """What the functions of such steps have in common."""

    def open(self) -> None: ...

    def on_timer(self, timer: Timer, ctx: Any) -> Emitted: ...


class KeyedNode(Protocol):
    """What the nodes of such steps have in common."""

    @property
    def schema(self) -> Schema: ...

    @property
    def outputs(self) -> Any: ...

    @property
    def states(self) -> tuple[StateDeclaration, ...]: ...

    @property
    def key(self) -> Key: ...


class KeyedFunctionOperator(KeepsTimers):
    """One function with state and timers per key on one subtask. What it does with rows is up to those that extend it."""

    needs_order = True

    def __init__(self, node: KeyedNode, function: KeyedFunction, step: str, *, backend: StateBackend = MEMORY) -> None:
        self._step, self._outputs, self._schema = step, node.outputs, node.schema.arrow
        self._cursor = Cursor()
        self._function: Any = own_copy(function, step)  # each subtask has its own
        self._timers = StepTimers(step, node.key.type, self._cursor, backend=backend)
        self._entries, states = open_states(node.states, step, node.key.type, self._cursor, backend=backend)
        for declaration in node.states:
            setattr(self._function, declaration.attribute, states[declaration.name])
        self._keep(states)
        self._expiry = Expiry(states.values())
        self._context = self._make_context()
        self._context.timers = self._timers
        self._metrics = self._context.metrics = Metrics()
        self._is_open = False

    def _make_context(self) -> KeyedContext:
        return KeyedContext(self._cursor)

    def _begin(self, time: StepTime) -> list[SideRow]:
        """Set the context's times, and give the list that takes what goes to side outputs.

        The function opens in the first epoch: state can be looked at where it cannot.
        """
        if not self._is_open:
            open_function(self._function, self._step)
            self._is_open = True
        side: list[SideRow] = []
        context = self._context
        context._side = side  # type: ignore[attr-defined]
        context.watermark, context.now = time.watermark_ms, time.now_ms
        return side

    def _on_timers(self, domain: TimeDomain, due: Iterable[TimerKey], time: StepTime, emit: Emit) -> None:
        """Call the function for each timer. For state, event time has come to the timer and no further."""
        cursor, context, expiry = self._cursor, self._context, self._expiry
        emitted: list[Any] = []
        times: list[int | None] = []
        side = self._begin(time)
        for timestamp, key in self._fetched(due, self._entries, domain, time):
            if domain == EVENT:
                expiry.at_event_time(timestamp)
            cursor.entry = self._entries.entry(key)
            context.timestamp = timestamp if domain == EVENT else None
            try:
                for result in self._function.on_timer(Timer(timestamp, domain), context) or ():
                    emitted.append(result)
                    times.append(context.timestamp)
            except BaseException as error:
                raise user_code_failed(error, self._step, key, timestamp) from None
        self._emit(emitted, timestamp_array(times), side, emit)

    def _at(self, time: StepTime) -> None:
        """Let go of state that has expired by this time."""
        self._expiry.at(time.now_ms)
        self._expiry.at_event_time(time.watermark_ms)

    def advance_watermark(self, time: StepTime, emit: Emit) -> None:
        self._expiry.at(time.now_ms)
        super().advance_watermark(time, emit)
        self._expiry.at_event_time(time.watermark_ms)

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        self._at(time)
        super().advance_clock(time, emit)

    def counters(self) -> dict[str, int]:
        return self._expiry.counters()

    def measured(self) -> dict[str, Measured]:
        return self._metrics.take()

    def _emit(self, emitted: list[Any], times: Timestamps, side: list[SideRow], emit: Emit) -> None:
        if emitted:
            emit(None, Batch(encode_rows(emitted, self._schema, self._step), times))
        for tag, batch in side_batches(side, self._outputs, self._step):
            emit(tag, batch)


def rows_and_keys(batch: Batch, row: type[Row], key: Key) -> tuple[Any, Any]:
    """The rows of a batch as named tuples, and their keys."""
    columns = {name: decode(column) for name, column in zip(batch.table.column_names, batch.table.columns, strict=True)}
    return make_rows(row, list(columns.values())), keys_of(batch, key, columns)


def times_of_results(timestamps: Timestamps, counts: list[int]) -> Timestamps:
    """The timestamp of each result, when `counts` tells how many there were after each row."""
    return np.repeat(timestamps, np.diff(counts, prepend=0))
