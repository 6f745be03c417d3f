"""A changelog by key, completed: the row of each key is kept, and told when another one takes its place."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.data.batch import Batch
from headwater.data.row_kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, adds, inserts
from headwater.data.rows import Row
from headwater.graph.nodes import NormalizeNode
from headwater.operators.contract import Emit, StatefulOperator, StepTime
from headwater.operators.grouping import Grouped, group
from headwater.operators.keys import key_arrays, keys_of
from headwater.operators.replaced import Replaced
from headwater.state.accumulators import open_accumulators
from headwater.state.backend import StateBackend
from headwater.state.columns import Places
from headwater.state.memory_backend import MEMORY
from headwater.state.table import StateTable


class NormalizeOperator(StatefulOperator):
    """Runs on one subtask. Of the rows of a key in an epoch the last one counts, unless all of them are to be told."""

    needs_order = True

    def __init__(self, node: NormalizeNode, step: str, row: type[Row], *, backend: StateBackend = MEMORY) -> None:
        self._node = node
        self._schema = pa.schema([pa.field(field.name, field.type) for field in node.schema.arrow])
        self._kept = open_accumulators("rows", self._schema, step, node.key.type, backend=backend)

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        groups = group(key_arrays(batch, self._node.key), len(batch))
        last = np.empty(len(groups), np.int64)
        last[groups.codes] = np.arange(len(batch))
        newest = batch.take(last)
        is_there = adds(inserts(len(newest)) if newest.kinds is None else newest.kinds)
        kept = _Newest(newest.table.cast(self._schema))
        keys = list(keys_of(newest, self._node.key))
        self._kept.update(keys, kept)
        self._kept.remove([keys[place] for place in np.flatnonzero(~is_there).tolist()])
        before = kept.before.cast(self._node.schema.arrow)
        if self._node.tells_versions:
            emit(None, _each(batch, groups, kept.places, before))
            return
        told = Replaced(kept.places, before, newest.table, is_there).told(batch.timestamps, last, sends_before=True)
        if len(told):
            emit(None, told)

    def tables(self) -> dict[str, StateTable]:
        return {"rows": self._kept.table}


def _each(batch: Batch, groups: Grouped, places: Places, before: pa.Table) -> Batch:
    """Every row of a batch, behind the one of its key that it takes the place of."""
    count = len(batch)
    kinds = inserts(count) if batch.kinds is None else batch.kinds
    is_there = adds(kinds)
    order = np.argsort(groups.codes, kind="stable")
    is_first = np.diff(groups.codes[order], prepend=-1) != 0
    replaced = np.empty(count, np.int64)
    """For each row the one that it replaces: of the batch, or behind those of the batch of what was kept; or none."""
    replaced[order] = np.where(is_first, -1, np.roll(order, 1))
    replaced[(replaced >= 0) & ~is_there[replaced]] = -1
    was_kept = np.full(len(groups), -1, np.int64)
    was_kept[places] = count + np.arange(len(places))
    firsts = order[is_first]
    replaced[firsts] = was_kept[groups.codes[firsts]]
    takes, gives = np.flatnonzero(replaced >= 0), np.flatnonzero(is_there)
    both = pa.concat_tables([batch.table, before])
    table = pa.concat_tables([both.take(pa.array(replaced[takes])), batch.table.take(pa.array(gives))])
    told = np.concatenate(
        [
            np.where(is_there[takes], UPDATE_BEFORE, DELETE),
            np.where(replaced[gives] >= 0, UPDATE_AFTER, INSERT),
        ]
    ).astype(np.int8)
    of = np.concatenate([takes, gives])
    return Batch(table, batch.timestamps[of], kinds=told).take(np.argsort(of, kind="stable"))


class _Newest:
    """Puts rows in the place of those that were kept, and remembers these."""

    places: Places
    before: pa.Table

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __call__(self, places: Places, before: pa.Table) -> pa.Table:
        self.places, self.before = places, before
        return self._rows
