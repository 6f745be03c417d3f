"""The temporal join: each left row with the version of its key that was valid at the row's time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.data.batch import MIN_TIMESTAMP, Batch, Timestamps
from headwater.data.row_kinds import adds
from headwater.data.rows import Row
from headwater.errors import RowError
from headwater.graph.nodes import TemporalJoinNode
from headwater.operators.contract import Emit, StepTime, TwoInputs
from headwater.operators.join.columns import PairColumns
from headwater.operators.join.keeping import KeepsRows
from headwater.operators.join.keys import can_meet, key_names, keyed_rows, keys_in, stored_schema, with_key_column
from headwater.operators.join.last_used import LAST_USED, LastUsed
from headwater.operators.join.store import RowStore
from headwater.state.backend import StateBackend
from headwater.state.memory_backend import MEMORY
from headwater.state.table import StateTable


class TemporalJoinOperator(KeepsRows):
    """Runs one temporal join on one subtask.

    Left rows wait until the watermark reaches them, and come out in the order of time. Of the versions of a key those
    after the watermark are kept, and the latest of those that are not; a version that is marked is a deletion. With a ttl
    the versions of a key go when no row has come for it for so long, and none waits.
    """

    needs_order = False

    def __init__(
        self, node: TemporalJoinNode, step: str, left: type[Row], right: type[Row], *, backend: StateBackend = MEMORY
    ) -> None:
        self._node, self._step = node, step
        self._pads = node.how == "left"
        self._left_names, self._right_names = key_names(node.key), key_names(node.right_key)
        self._left_schema = stored_schema(node.left_schema.arrow, node.key)
        self._right_schema = stored_schema(node.right_schema.arrow, node.right_key)
        self._waiting = RowStore(self._left_schema, self._left_names, backend.shelf)
        self._versions = RowStore(self._right_schema, self._right_names, backend.shelf)
        self._columns = PairColumns(node)
        self._last_used = None if node.ttl_ms is None else LastUsed(node.key, step, node.ttl_ms, backend)
        super().__init__({"waiting": self._waiting, "versions": self._versions}, forgets=node.ttl_ms is not None)

    def process_two(self, inputs: TwoInputs, time: StepTime, emit: Emit) -> None:
        self._forget_unused(time.now_ms)
        if inputs.left is not None:
            self._wait(inputs.left, time.watermark_ms, emit)
        if inputs.right is not None:
            self._keep(inputs.right, time.watermark_ms)

    def _wait(self, batch: Batch, watermark_ms: int, emit: Emit) -> None:
        """Let rows wait for their time; those whose time has passed are late."""
        self._check_times(batch.timestamps)
        is_late = batch.timestamps <= watermark_ms
        if is_late.any():
            places = np.flatnonzero(is_late)
            if self._node.late is None:
                self._dropped.add(batch, places, watermark_ms, self._node.key)
            else:
                late = batch.take(places)
                emit(self._node.late.name, Batch(late.table, late.timestamps))
            batch = batch.take(np.flatnonzero(~is_late))
        rows = with_key_column(batch, self._node.key) if self._pads else keyed_rows(batch, self._node.key)
        self._waiting.add(rows.table, rows.timestamps, keys_in(rows.table, self._left_names))
        if self._last_used is not None:
            self._last_used.use(keyed_rows(batch, self._node.key).table, self._left_names)

    def _keep(self, batch: Batch, watermark_ms: int) -> None:
        """Keep versions, also late ones, where they are not outdated already."""
        self._check_times(batch.timestamps)
        rows = keyed_rows(batch, self._node.right_key)
        is_deletion = None if rows.kinds is None else ~adds(rows.kinds)
        kept = rows.table.select(self._right_schema.names)
        self._versions.add(kept, rows.timestamps, keys_in(kept, self._right_names), is_deletion)
        if self._last_used is not None:
            self._last_used.use(kept, self._right_names)
        late = np.flatnonzero(rows.timestamps <= watermark_ms)
        if len(late):
            self._versions.remove_outdated(kept.take(pa.array(late)), watermark_ms)

    def _check_times(self, times: Timestamps) -> None:
        if len(times) and times.min() == MIN_TIMESTAMP:
            raise RowError.no_event_time(self._step)

    def _forget_unused(self, now_ms: int) -> None:
        """Let versions go of keys that nobody asks for."""
        if self._last_used is None:
            return
        is_new = not len(self._last_used.table) and len(self._versions) > 0
        unused = self._last_used.unused(now_ms)
        if is_new:  # they were kept when there was no ttl
            self._last_used.use(self._versions.dump(), self._right_names)
        if not len(unused):
            return
        is_waited_for = self._waiting.has(unused)
        self._last_used.use_again(unused.take(np.flatnonzero(is_waited_for)))
        for found in list(self._versions.find(unused.take(np.flatnonzero(~is_waited_for)))):
            self._versions.remove(found.named)
            self._expired += len(found.ids)

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        self._forget_unused(time.now_ms)

    def tables(self) -> dict[str, StateTable]:
        return super().tables() if self._last_used is None else {**super().tables(), LAST_USED: self._last_used.table}

    def advance_watermark(self, time: StepTime, emit: Emit) -> None:
        before_ms = self._waiting.end.until_ms
        rows, times = self._waiting.expire(time.watermark_ms, unmarked=True)
        if len(rows):
            self._emit_joined(rows, times, emit)
        passed = self._versions.within(before_ms, time.watermark_ms)
        if len(passed):
            self._versions.remove_outdated(passed, time.watermark_ms)

    def _emit_joined(self, rows: pa.Table, times: Timestamps, emit: Emit) -> None:
        asking = np.flatnonzero(can_meet(rows, self._left_names))
        keys = keys_in(rows.take(pa.array(asking)), self._left_names)
        found = self._versions.latest(keys, times[asking])
        valid = np.flatnonzero(~found.marked)
        at = asking[found.probes[valid]]
        versions = np.full(len(rows), -1)
        versions[at] = valid
        shown = np.arange(len(rows)) if self._pads else at
        if not len(shown):
            return
        right = found.rows.take(pa.array(versions[shown], mask=versions[shown] < 0))
        columns = self._columns.of(rows.take(pa.array(shown)), right)
        emit(None, Batch(pa.Table.from_arrays(columns, schema=self._node.schema.arrow), times[shown]))
