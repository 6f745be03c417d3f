"""Running aggregates: for each key that an epoch touches, the result over all its rows so far."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from headwater.batch import Batch
from headwater.descriptors import ValueState, state_of_type
from headwater.graph.nodes import RunningNode
from headwater.operators.aggregation import Aggregation
from headwater.operators.contract import Emit, Step, StepTime
from headwater.operators.grouping import group
from headwater.operators.keys import key_arrays, keys_of
from headwater.rows import Row, decode, encode_rows, make_rows, row_class
from headwater.state.backend import StateBackend
from headwater.state.handles import open_states
from headwater.state.memory import MEMORY, Cursor
from headwater.state.table import StateTable


class RunningOperator(Step):
    """Runs one `agg` without windows on one subtask. Rows are aggregated by columns; only keys are looked up one by one."""

    needs_order = True

    def __init__(self, node: RunningNode, step: str, row: type[Row], *, backend: StateBackend = MEMORY) -> None:
        self._node, self._step = node, step
        self._aggregation = Aggregation(node.aggregates, node.input_schema, step)
        fields = self._aggregation.fields
        self._accumulators = pa.schema(fields)
        self._row = row_class(tuple(f"f{place}" for place in range(len(fields))))
        dtype = pa.struct([pa.field(f"f{place}", field.type) for place, field in enumerate(fields)])
        self._cursor = Cursor()
        self._entries, self._tables = open_states(
            [state_of_type(ValueState("kept", "boolean"), dtype)], step, node.key.type, self._cursor, backend=backend
        )
        self._kept: Any = self._tables["kept"]

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        groups = group(key_arrays(batch, self._node.key), len(batch))
        firsts = batch.take(groups.first)
        keys = list(keys_of(firsts, self._node.key))
        partial = self._aggregation.partial(batch.table, groups.codes, len(groups))
        merged = self._merged(keys, partial)
        for key, row in zip(keys, make_rows(self._row, [decode(column) for column in merged.columns]), strict=True):
            self._cursor.entry = self._entries.entry(key)
            self._kept.set(row)
        last = np.empty(len(groups), np.int64)
        last[groups.codes] = np.arange(len(batch))
        shown = key_arrays(firsts, self._node.key)
        table = pa.Table.from_arrays([*shown, *self._aggregation.result(merged)], schema=self._node.schema.arrow)
        order = np.argsort(last, kind="stable")
        emit(None, Batch(table, batch.timestamps[last]).take(order))

    def _merged(self, keys: list[Any], partial: pa.Table) -> pa.Table:
        """What was kept of each key, with what came."""
        places, rows = [], []
        for place, key in enumerate(keys):
            self._cursor.entry = self._entries.entry(key)
            if (kept := self._kept.get()) is not None:
                places.append(place)
                rows.append(tuple(kept))
        if not rows:
            return partial
        before = encode_rows(rows, self._accumulators, self._step)
        together = pa.concat_tables([before, partial.cast(self._accumulators)])
        codes = np.concatenate([np.array(places, np.int64), np.arange(len(keys), dtype=np.int64)])
        return self._aggregation.merge(together, codes, len(keys))

    def tables(self) -> dict[str, StateTable]:
        return self._tables
