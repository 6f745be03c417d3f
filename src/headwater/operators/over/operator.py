"""The OVER operator: rows wait until their time has passed, then each part computes its functions over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, Timestamps
from headwater.data.rows import Row
from headwater.errors import RowError
from headwater.functions import EVENT
from headwater.graph.nodes import OverAggregateNode
from headwater.graph.nodes.over import RANGE, Lag, Numbering
from headwater.late_rows import LateRow
from headwater.operators.contract import Emit, StatefulOperator, StepTime
from headwater.operators.dropped import DroppedRows
from headwater.operators.join.keys import keys_in
from headwater.operators.join.last_used import LAST_USED, LastUsed
from headwater.operators.join.store import RowStore, merged_stores
from headwater.operators.over.distincts import RunningDistincts
from headwater.operators.over.due import Due
from headwater.operators.over.parts import (
    LastRows,
    Numberings,
    Part,
    RowsInRange,
    RunningAggregates,
    last_times,
)
from headwater.state.backend import StateBackend
from headwater.state.memory_backend import MEMORY
from headwater.state.table import StateTable

_AT = "@at"
"""The column with the event time of a row that waits, where that is not what it waits for."""


class OverAggregateOperator(StatefulOperator):
    """Runs one OVER on one subtask.

    In event time rows wait for the watermark, and are given in the order of time, then of arrival. As in Flink, a row whose
    time has passed is dropped if all rows before it count, and else only if a later row of its partition has been given.
    In processing time a row is given at once, but for frames by a stretch of time, in which the rows of one time are one.
    With a ttl a partition is forgotten when no row has come for it for so long, and none waits; as in Flink, but for what
    goes by time itself.
    """

    needs_order = True

    def __init__(self, node: OverAggregateNode, step: str, row: type[Row], *, backend: StateBackend = MEMORY) -> None:
        self._node, self._step, self._is_event_time = node, step, node.time == EVENT
        self._names = list(node.key.columns)
        self._stores: dict[str, RowStore] = {}
        self._tables: dict[str, StateTable] = {}
        self._bounded: RowStore | None = None
        """The rows that aggregates over a part of them reach back to."""
        self._parts = self._make_parts(step, backend)
        self._waiting: RowStore | None = None
        if self._is_event_time or (self._bounded is not None and node.frame.kind == RANGE):
            rows = node.rows.arrow
            is_plain = self._bounded is None
            kept = rows if is_plain else rows.append(pa.field(_AT, pa.int64()))
            self._waiting = RowStore(kept, self._names, backend.shelf)
            self._stores["waiting"] = self._waiting
        self._last_used = (
            LastUsed(node.key, step, node.ttl_ms, backend) if node.ttl_ms and node.endless_states else None
        )
        self._dropped, self._expired = DroppedRows(), 0

    def _make_parts(self, step: str, backend: StateBackend) -> list[Part]:
        node, functions = self._node, self._node.functions
        numberings = {name: one for name, one in functions.items() if isinstance(one, Numbering)}
        lags = {name: one for name, one in functions.items() if isinstance(one, Lag)}
        aggregates = {name: one for name, one in functions.items() if not isinstance(one, Numbering | Lag)}
        parts: list[Part] = []
        if numberings:
            numbers = Numberings(node, numberings, step, backend)
            self._tables["numbers"] = numbers.kept.table
            parts.append(numbers)
        distincts = {name: one for name, one in aggregates.items() if one.function == "count_distinct"}
        if distincts and node.frame.preceding is None:
            distinct = RunningDistincts(node, distincts, step, backend)
            self._tables["distinct"] = distinct.kept.table
            parts.append(distinct)
            aggregates = {name: one for name, one in aggregates.items() if name not in distincts}
        if aggregates and node.frame.preceding is None:
            running = RunningAggregates(node, aggregates, step, backend)
            self._tables["kept"] = running.kept.table
            parts.append(running)
            aggregates = {}
        elif aggregates and node.frame.kind == RANGE:
            ranged = RowsInRange(node, aggregates, step, backend)
            self._stores["range"] = self._bounded = ranged.store
            parts.append(ranged)
            aggregates = {}
        if aggregates or lags:
            last = LastRows(node, aggregates, lags, step, backend)
            self._stores["last"] = last.store
            self._bounded = last.store if aggregates else self._bounded
            parts.append(last)
        return parts

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        self._forget_idle(time.now_ms)
        if self._last_used is not None:
            self._last_used.use(batch.table, self._names)
        if self._is_event_time:
            batch = self._timely(batch, time.watermark_ms)
            times = np.maximum(batch.timestamps, min(time.watermark_ms, MAX_TIMESTAMP - 1) + 1)
        else:
            times = np.full(len(batch), time.now_ms)
        if self._waiting is None:
            self._give(batch.table, times, batch.timestamps, emit)
            return
        rows = batch.table
        if self._bounded is not None:
            rows = rows.append_column(pa.field(_AT, pa.int64()), pa.array(batch.timestamps))
        self._waiting.add(rows, times, keys_in(rows, self._names))

    def _timely(self, batch: Batch, watermark_ms: int) -> Batch:
        """The rows that are not late; the others are counted."""
        times = batch.timestamps
        if len(times) and times.min() == MIN_TIMESTAMP:
            raise RowError.no_event_time(self._step)
        is_late = times <= watermark_ms
        if self._bounded is not None and is_late.any():
            late = batch.table.filter(pa.array(is_late))
            is_late[is_late] = times[is_late] <= last_times(self._bounded, keys_in(late, self._names))
        if not is_late.any():
            return batch
        self._dropped.add(batch, np.flatnonzero(is_late), watermark_ms, self._node.key)
        return batch.take(np.flatnonzero(~is_late))

    def advance_watermark(self, time: StepTime, emit: Emit) -> None:
        if self._is_event_time:
            self._give_until(time.watermark_ms, emit)

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        self._forget_idle(time.now_ms)
        if not self._is_event_time and self._waiting is not None:
            self._give_until(time.now_ms - 1, emit)  # of which more rows cannot come

    def _forget_idle(self, now_ms: int) -> None:
        """Forget partitions for which no row has come for the ttl, and none waits."""
        if self._last_used is None:
            return
        is_new = not len(self._last_used.table)
        unused = self._last_used.unused(now_ms)
        if is_new:  # perhaps partitions were kept when there was no ttl
            for part in self._parts:
                part.tell(self._last_used)
        if not len(unused):
            return
        if self._waiting is not None:
            is_waited_for = self._waiting.has(unused)
            self._last_used.use_again(unused.take(np.flatnonzero(is_waited_for)))
            unused = unused.take(np.flatnonzero(~is_waited_for))
        values = self._last_used.values(unused)
        self._expired += sum(part.forget(unused, values) for part in self._parts)

    def _give_until(self, until_ms: int, emit: Emit) -> None:
        assert self._waiting is not None
        rows, times = self._waiting.expire(until_ms, unmarked=True)
        if len(rows):
            stamps = times if self._bounded is None else rows.column(_AT).to_numpy()
            if self._is_event_time and self._bounded is not None:
                order = np.argsort(stamps, kind="stable")  # those whose time had passed waited longer than for it
                rows, stamps = rows.take(pa.array(order)), stamps[order]
                times = stamps
            self._give(rows.select(self._node.rows.names), times, stamps, emit)
        for part in self._parts:
            part.expire(until_ms)

    def _give(self, rows: pa.Table, times: Timestamps, stamps: Timestamps, emit: Emit) -> None:
        """Give rows, in the order of time, each with the results of all functions."""
        due, place = Due.of(rows, times, self._node.key)
        results: dict[str, pa.Array] = {}
        for part in self._parts:
            results |= part.over(due)
        columns = [results[name].take(pa.array(place)) for name in self._node.functions]
        table = pa.Table.from_arrays([*rows.columns, *columns], schema=self._node.schema.arrow)
        emit(None, Batch(table, stamps))

    def tables(self) -> dict[str, StateTable]:
        idle = {} if self._last_used is None else {LAST_USED: self._last_used.table}
        return {**self._tables, **self._stores, **idle}

    def counters(self) -> dict[str, int]:
        counted = {"late_dropped": self._dropped.take_count()}
        if self._last_used is not None:
            counted["state_expired"] = self._expired
        self._expired = 0
        return counted

    def late_rows(self) -> tuple[LateRow, ...]:
        return self._dropped.take_newest()

    def meta(self) -> dict[str, Any]:
        return {name: store.meta() for name, store in self._stores.items()}

    def set_meta(self, meta: dict[str, Any]) -> None:
        for name, store in self._stores.items():
            store.set_meta(meta[name])

    def merged_meta(self, metas: Sequence[dict[str, Any]], subtask: int, parallelism: int) -> dict[str, Any]:
        return merged_stores(metas)
