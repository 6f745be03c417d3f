"""The keyed process operator: user code per element and per timer, over working state in memory."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.batch import Batch, Timestamps, timestamp_array, timestamp_list
from headwater.clock.timers import EVENT, PROCESSING, TimerQueue
from headwater.functions import Context, Timer
from headwater.graph.nodes import KeyedProcessNode
from headwater.operators.contract import Emit, StepTime
from headwater.operators.keys import keys_of
from headwater.operators.stateless import SideRow, side_batches
from headwater.operators.user_code import open_function, user_code_failed
from headwater.rows import Row, decode, encode_rows, make_rows
from headwater.state.memory import Cursor, open_states
from headwater.state.table import StateTable

_SLICE_ROWS = 65_536
"""Rows decoded and results held at a time; bounds memory without showing in the per-row cost."""


class KeyTimers:
    """The timers of the current key, as user code sees them."""

    __slots__ = ("_cursor", "_event", "_processing")

    def __init__(self, cursor: Cursor, event: TimerQueue, processing: TimerQueue) -> None:
        self._cursor, self._event, self._processing = cursor, event, processing

    def event_time(self, timestamp: int) -> None:
        self._event.register(_milliseconds(timestamp), self._cursor.entry[0])

    def processing_time(self, timestamp: int) -> None:
        self._processing.register(_milliseconds(timestamp), self._cursor.entry[0])

    def delete_event_time(self, timestamp: int) -> None:
        self._event.delete(_milliseconds(timestamp), self._cursor.entry[0])

    def delete_processing_time(self, timestamp: int) -> None:
        self._processing.delete(_milliseconds(timestamp), self._cursor.entry[0])


class KeyedContext(Context):
    """The context of a keyed function: its key is the cursor's."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor

    @property
    def key(self) -> Any:
        return self._cursor.entry[0]


class KeyedProcessOperator:
    """Runs one `KeyedProcessFunction` on one subtask."""

    needs_order = True

    def __init__(self, node: KeyedProcessNode, step: str, row: type[Row]) -> None:
        self._node, self._step, self._row = node, step, row
        self._schema = node.schema.arrow
        self._cursor = Cursor()
        self._event = TimerQueue(step, EVENT, node.key.type)
        self._processing = TimerQueue(step, PROCESSING, node.key.type)
        self._function = copy.deepcopy(node.function)  # each subtask has its own
        self._entries, self._tables = open_states(node.states, step, node.key.type, self._cursor)
        for declaration in node.states:
            setattr(self._function, declaration.attribute, self._tables[declaration.name])
        self._tables["@timers.event"] = self._event
        self._tables["@timers.processing"] = self._processing
        self._context = KeyedContext(self._cursor)
        self._context.timers = KeyTimers(self._cursor, self._event, self._processing)
        open_function(self._function, step)

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        for start in range(0, len(batch), _SLICE_ROWS):
            self._process_slice(batch.slice(start, _SLICE_ROWS), time, emit)

    def _process_slice(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        columns = {
            name: decode(column) for name, column in zip(batch.table.column_names, batch.table.columns, strict=True)
        }
        rows = make_rows(self._row, list(columns.values()))
        keys = keys_of(batch, self._node.key, columns)
        cursor, context, process = self._cursor, self._context, self._function.process
        known, blank = self._entries.entries.get, self._entries.entry
        emitted: list[Any] = []
        counts: list[int] = []
        side: list[SideRow] = []
        context._side = side  # type: ignore[attr-defined]
        context.watermark, context.now = time.watermark_ms, time.now_ms
        try:
            for key, timestamp, row in zip(keys, timestamp_list(batch.timestamps), rows, strict=True):
                cursor.entry = known(key) or blank(key)
                context.timestamp = timestamp
                results = process(row, context)
                if results is not None:
                    emitted.extend(results)
                counts.append(len(emitted))
        except Exception as error:
            raise user_code_failed(error, self._step, context.key, context.timestamp) from None
        times = np.repeat(batch.timestamps, np.diff(counts, prepend=0))
        self._emit(emitted, times, side, emit)

    def advance_watermark(self, time: StepTime, emit: Emit) -> None:
        self._fire(self._event, EVENT, time.watermark_ms, time, emit)

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        self._fire(self._processing, PROCESSING, time.now_ms, time, emit)

    def _fire(self, queue: TimerQueue, domain: str, until: int, time: StepTime, emit: Emit) -> None:
        cursor, context = self._cursor, self._context
        emitted: list[Any] = []
        times: list[int | None] = []
        side: list[SideRow] = []
        context._side = side  # type: ignore[attr-defined]
        context.watermark, context.now = time.watermark_ms, time.now_ms
        for timestamp, key in queue.due(until):
            cursor.entry = self._entries.entry(key)
            context.timestamp = timestamp if domain == EVENT else None
            try:
                for result in self._function.on_timer(Timer(timestamp, domain), context) or ():
                    emitted.append(result)
                    times.append(context.timestamp)
            except Exception as error:
                raise user_code_failed(error, self._step, key, timestamp) from None
        self._emit(emitted, timestamp_array(times), side, emit)

    def _emit(self, emitted: list[Any], times: Timestamps, side: list[SideRow], emit: Emit) -> None:
        if emitted:
            emit(None, Batch(encode_rows(emitted, self._schema, self._step), times))
        for tag, batch in side_batches(side, self._node.outputs, self._step):
            emit(tag, batch)

    def tables(self) -> dict[str, StateTable]:
        return self._tables

    def counters(self) -> dict[str, int]:
        return {}

    def meta(self) -> dict[str, Any]:
        return {"registrations": [self._event.next_registration, self._processing.next_registration]}

    def set_meta(self, meta: dict[str, Any]) -> None:
        for queue, number in zip((self._event, self._processing), meta["registrations"], strict=True):
            queue.number_from(number)

    def merged_meta(self, metas: Sequence[dict[str, Any]], subtask: int, parallelism: int) -> dict[str, Any]:
        return {"registrations": [max(numbers) for numbers in zip(*(m["registrations"] for m in metas), strict=True)]}

    def reset(self) -> None:
        for table in self._tables.values():
            table.clear_all()
        self._event.next_registration = self._processing.next_registration = 0


class PassOperator:
    """Hands rows on as they are: the entry of a level for stateless steps and sinks behind an exchange."""

    needs_order = True

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        emit(None, Batch(batch.table, batch.timestamps))  # its key was for the way here only

    def advance_watermark(self, time: StepTime, emit: Emit) -> None:
        """Nothing waits for time here."""

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        """Nothing waits for time here."""

    def tables(self) -> dict[str, StateTable]:
        return {}

    def counters(self) -> dict[str, int]:
        return {}

    def meta(self) -> dict[str, Any]:
        return {}

    def set_meta(self, meta: dict[str, Any]) -> None:
        """There is nothing to take over."""

    def merged_meta(self, metas: Sequence[dict[str, Any]], subtask: int, parallelism: int) -> dict[str, Any]:
        return {}

    def reset(self) -> None:
        """There is nothing to forget."""


def _milliseconds(timestamp: int) -> int:
    if type(timestamp) is not int:
        raise TypeError(f"a timer is set for an integer of milliseconds, got {timestamp!r}")
    if not -(1 << 63) <= timestamp < 1 << 63:
        raise ValueError(f"a timer's time must fit 64 bits, got {timestamp}")
    return timestamp
