"""The first row of each key: rows and what is known of keys both go by columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.data.batch import Batch
from headwater.data.rows import Row
from headwater.graph.nodes import DistinctNode
from headwater.operators.contract import Emit, StepTime
from headwater.operators.grouping import group
from headwater.operators.idle import ForgetsIdleKeys
from headwater.operators.keys import key_arrays, keys_of
from headwater.state.backend import StateBackend
from headwater.state.columns import Places
from headwater.state.memory_backend import MEMORY
from headwater.state.table import StateTable

_SEEN = pa.schema([pa.field("seen", pa.bool_())])


class DistinctOperator(ForgetsIdleKeys):
    """Runs one such step on one subtask: of each key it keeps that it was seen."""

    needs_order = True

    def __init__(self, node: DistinctNode, step: str, row: type[Row], *, backend: StateBackend = MEMORY) -> None:
        self._key = node.key
        super().__init__(
            "seen", _SEEN, step, node.key, ttl_ms=node.ttl_ms, since_first=node.since_first, backend=backend
        )

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        self._at(time)
        first = np.sort(group(key_arrays(batch, self._key), len(batch)).first)
        rows = batch.take(first)
        is_new = np.ones(len(rows), np.bool_)

        def fold(known: Places, _: pa.Table) -> pa.Table:
            is_new[known] = False
            return pa.Table.from_arrays([pa.array(np.ones(len(rows), np.bool_))], schema=_SEEN)

        self._kept.update(list(keys_of(rows, self._key)), fold)
        if is_new.any():
            emit(None, rows.take(np.flatnonzero(is_new)))

    def tables(self) -> dict[str, StateTable]:
        return {"seen": self._kept.table}
