"""One row of each key by event time: the first, when nothing earlier can come any more, or the last so far."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.data.batch import MIN_TIMESTAMP, Batch
from headwater.data.rows import Row
from headwater.errors import RowError
from headwater.graph.nodes import KeepFirstNode, KeepLastNode
from headwater.operators.contract import Emit, StepTime
from headwater.operators.grouping import Grouped, group
from headwater.operators.idle import ForgetsIdleKeys, accumulators
from headwater.operators.join.keeping import KeepsRows
from headwater.operators.join.keys import keys_in
from headwater.operators.join.run import RowIds
from headwater.operators.join.store import RowStore
from headwater.operators.keys import key_arrays, keys_of
from headwater.operators.replaced import Replaced
from headwater.state.backend import StateBackend
from headwater.state.columns import Places
from headwater.state.idle import IdleAccumulators
from headwater.state.memory_backend import MEMORY
from headwater.state.table import StateTable

_AT = "@at"
"""The column with the event time of a row that is kept."""
_GIVEN = pa.schema([pa.field("given", pa.bool_())])


class KeepFirstOperator(KeepsRows):
    """Runs one such step on one subtask: of each key it keeps the earliest row until it is given, then that it was.

    With a ttl it is forgotten so long after, in processing time; then the key has a first row again.
    """

    needs_order = True

    def __init__(self, node: KeepFirstNode, step: str, row: type[Row], *, backend: StateBackend = MEMORY) -> None:
        self._node, self._step, self._names = node, step, list(node.key.columns)
        self._waiting = RowStore(node.schema.arrow, self._names, backend.shelf)
        self._given = accumulators("given", _GIVEN, step, node.key, ttl_ms=node.ttl_ms, backend=backend)
        super().__init__({"waiting": self._waiting}, forgets=node.ttl_ms is not None)

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        self._forget_given(time)
        _check_times(batch, self._step)
        timely = np.flatnonzero(batch.timestamps > time.watermark_ms)
        if len(timely) < len(batch):
            late = np.flatnonzero(batch.timestamps <= time.watermark_ms)
            self._dropped.add(batch, late, time.watermark_ms, self._node.key)
        batch = batch.take(timely)
        first, _ = _ends(batch, group(key_arrays(batch, self._node.key), len(batch)))
        batch = batch.take(np.sort(first))  # as they came: of rows of one time, that is how they are given
        batch = batch.take(np.flatnonzero(~self._given.has(list(keys_of(batch, self._node.key)))))
        keys = keys_in(batch.table, self._names)
        is_earliest = np.ones(len(batch), np.bool_)
        outdone = []
        for kept in self._waiting.find(keys):
            is_earlier = batch.timestamps[kept.probes] < kept.times
            is_earliest[kept.probes] = is_earlier
            outdone.append(kept.named.take(is_earlier))
        self._waiting.remove(RowIds.together(outdone))
        new = np.flatnonzero(is_earliest)
        self._waiting.add(batch.table.take(pa.array(new)), batch.timestamps[new], keys.take(new))

    def _forget_given(self, time: StepTime) -> None:
        if isinstance(self._given, IdleAccumulators):
            self._expired += len(self._given.at(time.now_ms))

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        self._forget_given(time)

    def advance_watermark(self, time: StepTime, emit: Emit) -> None:
        self._forget_given(time)
        rows, times = self._waiting.expire(time.watermark_ms, unmarked=True)
        if not len(rows):
            return
        batch = Batch(rows, times)
        given = pa.Table.from_arrays([pa.array(np.ones(len(rows), np.bool_))], schema=_GIVEN)
        self._given.update(list(keys_of(batch, self._node.key)), lambda *_: given)
        emit(None, batch)

    def tables(self) -> dict[str, StateTable]:
        return {"given": self._given.table, **super().tables()}


class KeepLastOperator(ForgetsIdleKeys):
    """Runs one such step on one subtask: it keeps the last row of each key, with its time."""

    needs_order = True

    def __init__(self, node: KeepLastNode, step: str, row: type[Row], *, backend: StateBackend = MEMORY) -> None:
        self._node, self._step = node, step
        fields = [pa.field(field.name, field.type) for field in node.schema.arrow]
        self._schema = pa.schema([*fields, pa.field(_AT, pa.int64())])
        super().__init__("rows", self._schema, step, node.key, ttl_ms=node.ttl_ms, backend=backend)

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        _check_times(batch, self._step)
        self._at(time)
        _, last = _ends(batch, group(key_arrays(batch, self._node.key), len(batch)))
        newest = batch.take(last)
        rows = newest.table.append_column(_AT, pa.array(newest.timestamps)).cast(self._schema)
        fold = _Later(rows)
        now = self._kept.update(list(keys_of(newest, self._node.key)), fold)
        shown = self._node.schema.arrow
        before, after = (table.select(shown.names).cast(shown) for table in (fold.before, now))
        replaced = Replaced(fold.places, before, after, np.ones(len(after), np.bool_))
        told = replaced.told(batch.timestamps, last, sends_before=self._node.sends_before)
        if len(told):
            emit(None, told)

    def tables(self) -> dict[str, StateTable]:
        return {"rows": self._kept.table}


class _Later:
    """Puts rows in the place of those that were kept, where they are not earlier, and remembers these."""

    places: Places
    before: pa.Table

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __call__(self, places: Places, before: pa.Table) -> pa.Table:
        self.places, self.before = places, before
        at = np.arange(len(self._rows))
        is_earlier = self._rows[_AT].to_numpy()[places] < before[_AT].to_numpy()
        at[places[is_earlier]] = len(self._rows) + np.flatnonzero(is_earlier)
        return pa.concat_tables([self._rows, before]).take(pa.array(at))


def _check_times(batch: Batch, step: str) -> None:
    if len(batch) and batch.timestamps.min() == MIN_TIMESTAMP:
        raise RowError.no_event_time(step)


def _ends(batch: Batch, groups: Grouped) -> tuple[Places, Places]:
    """The rows of each group that are the first and the last by time, then by arrival."""
    order = np.lexsort((batch.timestamps, groups.codes))
    sizes = np.bincount(groups.codes, minlength=len(groups))
    ends = np.cumsum(sizes)
    return order[ends - sizes], order[ends - 1]
