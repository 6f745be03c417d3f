"""Running aggregates: for each key that an epoch touches, the result over all its rows so far."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.data.batch import Batch
from headwater.data.rows import Row
from headwater.graph.nodes import RunningNode
from headwater.operators.aggregation import Aggregation
from headwater.operators.contract import Emit, StatefulOperator, StepTime
from headwater.operators.grouping import group
from headwater.operators.keys import key_arrays, keys_of
from headwater.state.accumulators import open_accumulators
from headwater.state.backend import StateBackend
from headwater.state.columns import Places
from headwater.state.memory import MEMORY
from headwater.state.table import StateTable


class RunningOperator(StatefulOperator):
    """Runs one `agg` without windows on one subtask: rows and what is kept of keys both go by columns."""

    needs_order = True

    def __init__(self, node: RunningNode, step: str, row: type[Row], *, backend: StateBackend = MEMORY) -> None:
        self._node = node
        self._aggregation = Aggregation(node.aggregates, node.input_schema, step)
        self._schema = pa.schema(self._aggregation.fields)
        self._kept = open_accumulators("kept", self._schema, step, node.key.type, backend=backend)

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        groups = group(key_arrays(batch, self._node.key), len(batch))
        firsts = batch.take(groups.first)
        came = self._aggregation.partial(batch.table, groups.codes, len(groups)).cast(self._schema)

        def fold(places: Places, before: pa.Table) -> pa.Table:
            if not len(before):
                return came
            codes = np.concatenate([places, np.arange(len(groups), dtype=np.int64)])
            return self._aggregation.merge(pa.concat_tables([before, came]), codes, len(groups))

        merged = self._kept.update(list(keys_of(firsts, self._node.key)), fold)
        last = np.empty(len(groups), np.int64)
        last[groups.codes] = np.arange(len(batch))
        shown = key_arrays(firsts, self._node.key)
        table = pa.Table.from_arrays([*shown, *self._aggregation.result(merged)], schema=self._node.schema.arrow)
        order = np.argsort(last, kind="stable")
        emit(None, Batch(table, batch.timestamps[last]).take(order))

    def tables(self) -> dict[str, StateTable]:
        return {"kept": self._kept.table}
