"""Top-n in windows: the rows of each window and key that come first in an order, given when the window is over."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.clock.event_time import timestamps_of
from headwater.data.batch import Batch
from headwater.data.rows import Row
from headwater.graph.nodes import WindowTopNNode
from headwater.operators.contract import Emit, StepTime
from headwater.operators.grouping import group
from headwater.operators.join.keeping import KeepsRows
from headwater.operators.join.keys import keys_in
from headwater.operators.join.store import RowStore
from headwater.operators.keys import key_arrays
from headwater.operators.rank.ranking import Candidates, kept_of, ranked, ranks
from headwater.state.backend import StateBackend
from headwater.state.memory_backend import MEMORY


class WindowTopNOperator(KeepsRows):
    """Runs one such step on one subtask. Of each window and key it keeps the rows that have a rank, until it gives them."""

    needs_order = True

    def __init__(self, node: WindowTopNNode, step: str, row: type[Row], *, backend: StateBackend = MEMORY) -> None:
        self._node, self._step, self._names = node, step, list(node.key.columns)
        self._store = RowStore(node.rows.arrow, self._names, backend.shelf)
        super().__init__({"rows": self._store})

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        until = timestamps_of(batch.table, self._node.window_end, self._step) - 1
        timely = np.flatnonzero(until > time.watermark_ms)
        if len(timely) < len(batch):
            late = np.flatnonzero(until <= time.watermark_ms)
            self._dropped.add(Batch(batch.table, until, batch.key), late, time.watermark_ms, self._node.key)
        batch, until = batch.take(timely), until[timely]
        store, rows = self._store, batch.table
        groups = group(key_arrays(batch, self._node.key), len(batch))
        keys = keys_in(rows, self._names)
        came = Candidates(rows, groups.codes, store.next_id + np.arange(len(batch)))
        of_groups = keys.take(groups.first)
        kept = kept_of(store, of_groups)
        _, outdone = ranked(kept.and_also(came), self._node.ranking)
        store.remove(outdone.kept(store, of_groups))
        stays = np.flatnonzero(~np.isin(came.ids, outdone.ids))
        store.add(rows.take(pa.array(stays)), until[stays], keys.take(stays))

    def advance_watermark(self, time: StepTime, emit: Emit) -> None:
        rows, until = self._store.expire(time.watermark_ms, unmarked=True)
        if not len(rows):
            return
        columns = [rows.column(name) for name in self._names]
        codes = group(columns, len(rows), above=np.unique(until, return_inverse=True)[1].astype(np.int64)).codes
        # In the order of windows, as rows come in it, and in each of them of keys.
        found, _ = ranked(Candidates(rows, codes, np.arange(len(rows))), self._node.ranking)
        place = ranks(found.keys)
        given = np.flatnonzero(place >= self._node.ranking.first - 1)
        table = found.rows
        if self._node.has_rank:
            numbers = pa.array(place + 1, pa.int64())
            table = pa.Table.from_arrays([*table.columns, numbers], schema=self._node.schema.arrow)
        if len(given):
            emit(None, Batch(table, until[found.ids]).take(given))
