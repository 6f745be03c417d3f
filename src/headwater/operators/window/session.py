"""Sessions by columns: what they come to, or their rows with their bounds, when they are over."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.data.batch import MAX_TIMESTAMP, Batch, Timestamps, flat
from headwater.data.rows import Row
from headwater.functions import EVENT
from headwater.graph.nodes import SessionNode
from headwater.operators.aggregation import Aggregation
from headwater.operators.contract import Emit, StepTime
from headwater.operators.grouping import Grouped, group
from headwater.operators.join.keeping import KeepsRows
from headwater.operators.join.keys import JoinKeys, keys_in
from headwater.operators.join.run import RowIds
from headwater.operators.join.store import Found, RowStore
from headwater.operators.keys import key_arrays
from headwater.operators.window.lateness import in_time
from headwater.operators.window.panes import moments
from headwater.operators.window.reach import check_reach
from headwater.operators.window.stretches import Stretches, put_together
from headwater.state.backend import StateBackend
from headwater.state.columns import Places
from headwater.state.memory_backend import MEMORY

_START = "@start"
"""The column in which a session that is kept has its start; its time is its last moment."""


class SessionOperator(KeepsRows):
    """Runs one such step on one subtask.

    It keeps the sessions that are open: with their accumulators if there are aggregates, and else their rows beside them, as
    also where the order of rows matters, for that of sessions which become one would be lost. A session goes when it is
    over, which is known by its last moment: rows that are not due are not looked at.
    """

    needs_order = True

    def __init__(self, node: SessionNode, step: str, row: type[Row], *, backend: StateBackend = MEMORY) -> None:
        self._node, self._step, self._names = node, step, list(node.key.columns)
        self._is_event_time = node.time == EVENT
        self._aggregation = None if node.aggregates is None else Aggregation(node.aggregates, node.rows, step)
        keys = [node.rows.field(name) for name in self._names]
        self._folds = self._aggregation if node.folds else None
        """What makes accumulators of rows as they come."""
        kept = [] if self._folds is None else self._folds.fields
        self._schema = pa.schema([*keys, pa.field(_START, pa.int64()), *kept])
        self._sessions = RowStore(self._schema, self._names, backend.shelf)
        kept_rows = pa.schema([node.rows.field(name) for name in node.kept_columns])
        self._rows = RowStore(kept_rows, self._names, backend.shelf)
        super().__init__({"sessions": self._sessions, **({} if self._folds else {"rows": self._rows})})

    # -- rows -------------------------------------------------------------------------------------------------------

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        if self._is_event_time:
            check_reach(batch, self._node.gap_ms, self._step)
            starts = batch.timestamps
        else:
            starts = np.full(len(batch), time.now_ms)
        groups = group(key_arrays(batch, self._node.key), len(batch))
        of_rows = keys_in(batch.table, self._names)
        keys = of_rows.take(groups.first)
        kept = self._touched(keys, starts, groups)
        gone = (starts + self._node.gap_ms - 1 <= time.watermark_ms) & self._is_event_time
        if gone.any():
            opened = Stretches(np.arange(len(kept.ids)), kept.probes, _starts_of(kept.rows), kept.times + 1)
            is_timely = in_time(starts, self._node.gap_ms, groups.codes, gone, opened)
            timely = np.flatnonzero(is_timely)
            if len(timely) < len(batch):
                self._dropped.add(batch, np.flatnonzero(~is_timely), time.watermark_ms, self._node.key)
            if not len(timely):
                return
            batch, starts, of_rows = batch.take(timely), starts[timely], of_rows.take(timely)
            groups = Grouped(groups.codes[timely], groups.first)
        if self._folds is None:
            self._rows.add(batch.table.select(self._node.kept_columns), starts, of_rows)
        self._extend(keys, kept, batch.table, put_together(starts, starts + self._node.gap_ms, groups.codes))

    def _touched(self, keys: JoinKeys, starts: Timestamps, groups: Grouped) -> Found:
        """The open sessions of keys that reach up to their first rows, and begin before their last ones are over."""
        low, high = np.full(len(keys), MAX_TIMESTAMP), np.zeros(len(keys), np.int64)
        np.minimum.at(low, groups.codes, starts)
        high[:] = low
        np.maximum.at(high, groups.codes, starts)
        forever = np.full(len(keys), MAX_TIMESTAMP)
        found = _together([*self._sessions.find(keys, low - 1, forever), self._sessions.nothing(len(keys))])
        return found.take(np.flatnonzero(_starts_of(found.rows) <= high[found.probes] + self._node.gap_ms))

    def _extend(self, keys: JoinKeys, kept: Found, rows: pa.Table, came: Stretches) -> None:
        """Put what came and the sessions that it touches together, and leave the others as they are."""
        ours = len(kept.ids)
        merged = put_together(
            np.concatenate([_starts_of(kept.rows), came.starts]),
            np.concatenate([kept.times + 1, came.ends]),
            np.concatenate([kept.probes, came.keys]),
        )
        is_new = np.zeros(len(merged), np.bool_)
        is_new[merged.of[ours:]] = True
        self._sessions.remove(kept.named.take(is_new[merged.of[:ours]]))
        new = np.flatnonzero(is_new)
        of_keys = keys.take(merged.keys[new])
        columns = [*self._key_columns(rows, kept, came, merged, new), pa.array(merged.starts[new])]
        if self._folds is not None:
            before = kept.rows.select(range(len(self._names) + 1, len(self._schema)))
            partial = self._folds.partial(rows, came.of, len(came)).cast(before.schema)
            stays = np.flatnonzero(is_new[merged.of])
            number = np.cumsum(is_new) - 1
            both = pa.concat_tables([before, partial]).take(pa.array(stays))
            columns += self._folds.merge(both, number[merged.of[stays]], len(new)).columns
        table = pa.Table.from_arrays(columns, schema=self._schema)
        self._sessions.add(table, merged.ends[new] - 1, of_keys)

    def _key_columns(
        self, rows: pa.Table, kept: Found, came: Stretches, merged: Stretches, new: Places
    ) -> list[pa.ChunkedArray]:
        """The keys of sessions, from a row of each."""
        a_row = np.empty(len(came), np.int64)
        a_row[came.of] = np.arange(len(rows))
        of_merged = np.empty(len(merged), np.int64)
        of_merged[merged.of[len(kept.ids) :]] = a_row
        return list(rows.select(self._names).take(pa.array(of_merged[new])).columns)

    # -- time -------------------------------------------------------------------------------------------------------

    def advance_watermark(self, time: StepTime, emit: Emit) -> None:
        if self._is_event_time:
            self._give_until(time.watermark_ms, emit)

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        if not self._is_event_time:
            self._give_until(time.now_ms, emit)

    def _give_until(self, until_ms: int, emit: Emit) -> None:
        sessions, lasts = self._sessions.expire(until_ms, unmarked=True)
        if not len(sessions):
            return
        if self._folds is not None:
            self._give(
                sessions,
                lasts,
                self._folds.result(sessions.select(range(len(self._names) + 1, len(self._schema)))),
                emit,
            )
            return
        over = []
        for part in self._rows.find(keys_in(sessions, self._names), _starts_of(sessions), lasts):
            over.append(part.named)
            if self._aggregation is None:
                self._give(part.rows, lasts[part.probes], [], emit, starts=_starts_of(sessions)[part.probes])
                continue
            places, codes = np.unique(part.probes, return_inverse=True)
            order = np.lexsort((part.ids, codes))
            partial = self._aggregation.partial(part.rows.take(pa.array(order)), codes[order], len(places))
            results = self._aggregation.result(partial)
            self._give(sessions.take(pa.array(places)), lasts[places], results, emit)
        self._rows.remove(RowIds.together(over))

    def _give(
        self,
        shown: pa.Table,
        lasts: Timestamps,
        results: list[pa.Array],
        emit: Emit,
        starts: Timestamps | None = None,
    ) -> None:
        """Give sessions, or rows of which each is in a session that starts so."""
        names = self._names if starts is None else shown.schema.names
        bounds = [moments(_starts_of(shown) if starts is None else starts), moments(lasts + 1)]
        columns = [*shown.select(names).columns, *bounds, *results]
        emit(None, Batch(pa.Table.from_arrays(columns, schema=self._node.schema.arrow), lasts))


def _starts_of(sessions: pa.Table) -> Timestamps:
    starts: Timestamps = flat(sessions.column(_START)).to_numpy()
    return starts


def _together(parts: list[Found]) -> Found:
    return Found(
        np.concatenate([part.probes for part in parts]),
        pa.concat_tables([part.rows for part in parts]).combine_chunks(),
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.ids for part in parts]),
        np.concatenate([part.hashes for part in parts]),
        np.concatenate([part.marked for part in parts]),
    )
