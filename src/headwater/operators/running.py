"""Running aggregates: for each key that an epoch touches, the result over all its rows so far.

Over a changelog the result is over the rows that are left, and what is given is a changelog too: how the results changed.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.data.batch import Batch
from headwater.data.row_kinds import adds
from headwater.data.rows import Row
from headwater.graph.nodes import RunningNode
from headwater.operators.aggregation import Aggregation
from headwater.operators.contract import Emit, StepTime
from headwater.operators.grouping import Grouped, group
from headwater.operators.idle import ForgetsIdleKeys
from headwater.operators.keys import key_arrays, keys_of
from headwater.operators.replaced import Replaced
from headwater.state.backend import StateBackend
from headwater.state.columns import Places
from headwater.state.memory_backend import MEMORY
from headwater.state.table import StateTable


class RunningOperator(ForgetsIdleKeys):
    """Runs one `agg` without windows on one subtask: rows and what is kept of keys both go by columns.

    A node that tells changes gives a changelog: for each key of an epoch at most one change, and none where the result is
    what it was. A key whose rows were all taken back is forgotten.
    """

    needs_order = True

    def __init__(self, node: RunningNode, step: str, row: type[Row], *, backend: StateBackend = MEMORY) -> None:
        self._node = node
        self._aggregation = Aggregation(node.aggregates, node.input_schema, step, takes_back=node.takes_back)
        self._schema = pa.schema(self._aggregation.fields)
        super().__init__("kept", self._schema, step, node.key, ttl_ms=node.ttl_ms, backend=backend)

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        self._at(time)
        groups = group(key_arrays(batch, self._node.key), len(batch))
        firsts = batch.take(groups.first)
        last = np.empty(len(groups), np.int64)
        last[groups.codes] = np.arange(len(batch))
        if self._node.tells_changes:
            changed = self._changes(batch, groups, firsts, last)
            if len(changed):
                emit(None, changed)
            return
        came = self._aggregation.partial(batch.table, groups.codes, len(groups)).cast(self._schema)
        merged = self._kept.update(list(keys_of(firsts, self._node.key)), _Fold(self._aggregation, came))
        order = np.argsort(last, kind="stable")
        emit(None, Batch(self._shown(firsts, merged), batch.timestamps[last]).take(order))

    def _changes(self, batch: Batch, groups: Grouped, firsts: Batch, last: Places) -> Batch:
        """How the results of keys changed, in the order in which the last row of each came."""
        aggregation, count = self._aggregation, len(groups)
        adding = None if batch.kinds is None else adds(batch.kinds)
        fold = _Fold(aggregation, aggregation.partial(batch.table, groups.codes, count, adding).cast(self._schema))
        keys = list(keys_of(firsts, self._node.key))
        now = self._kept.update(keys, fold)
        if self._node.takes_back:
            left = aggregation.left(now)
            self._kept.remove([keys[place] for place in np.flatnonzero(left == 0).tolist()])
            is_there, was_there = left > 0, aggregation.left(fold.before) > 0
        else:
            is_there, was_there = np.ones(count, np.bool_), np.ones(len(fold.places), np.bool_)
        before = fold.places[was_there]
        old = self._shown(firsts.take(before), fold.before.filter(pa.array(was_there)))
        replaced = Replaced(before, old, self._shown(firsts, now), is_there)
        return replaced.told(batch.timestamps, last, sends_before=self._node.sends_before)

    def _shown(self, keys: Batch, accumulators: pa.Table) -> pa.Table:
        """Keys with their results."""
        shown = key_arrays(keys, self._node.key)
        results = self._aggregation.result(accumulators)
        return pa.Table.from_arrays([*shown, *results], schema=self._node.schema.arrow)

    def tables(self) -> dict[str, StateTable]:
        return {"kept": self._kept.table}


class _Fold:
    """Puts what came of keys behind what was kept of some of them, and remembers the latter."""

    places: Places
    """Which of the keys were kept."""
    before: pa.Table
    """What was kept of those."""

    def __init__(self, aggregation: Aggregation, came: pa.Table) -> None:
        self._aggregation, self._came = aggregation, came

    def __call__(self, places: Places, before: pa.Table) -> pa.Table:
        self.places, self.before = places, before
        count = len(self._came)
        if not len(before):
            return self._aggregation.settle(self._came)
        codes = np.concatenate([places, np.arange(count, dtype=np.int64)])
        merged = self._aggregation.merge(pa.concat_tables([before, self._came]), codes, count)
        return self._aggregation.settle(merged)
