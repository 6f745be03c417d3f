"""The keyed process operator: user code per element and per timer, over working state."""

from __future__ import annotations

from typing import Any

from headwater.data.batch import Batch, timestamp_list
from headwater.data.rows import Row
from headwater.graph.nodes import BroadcastProcessNode, KeyedProcessNode
from headwater.operators.contract import Emit, StepTime
from headwater.operators.process.keyed_function import (
    SLICE_ROWS,
    KeyedFunctionOperator,
    rows_and_keys,
    times_of_results,
)
from headwater.operators.user_code import user_code_failed
from headwater.state.backend import StateBackend
from headwater.state.memory_backend import MEMORY


class KeyedProcessOperator(KeyedFunctionOperator):
    """Runs one `KeyedProcessFunction` on one subtask."""

    def __init__(
        self,
        node: KeyedProcessNode | BroadcastProcessNode,
        step: str,
        row: type[Row],
        *,
        backend: StateBackend = MEMORY,
    ) -> None:
        function: Any = node.function  # without keys it has no `on_timer`, and no timers
        super().__init__(node, function, step, backend=backend)
        self._row, self._key = row, node.key

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        self._at(time)
        for start in range(0, len(batch), SLICE_ROWS):
            self._process_slice(batch.slice(start, SLICE_ROWS), time, emit)

    def _process_slice(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        rows, keys = rows_and_keys(batch, self._row, self._key)
        cursor, context, process = self._cursor, self._context, self._function.process
        keys = self._entries.fetch(keys)
        known, blank = self._entries.entries.get, self._entries.entry
        emitted: list[Any] = []
        counts: list[int] = []
        side = self._begin(time)
        try:
            for key, timestamp, row in zip(keys, timestamp_list(batch.timestamps), rows, strict=True):
                cursor.entry = known(key) or blank(key)
                context.timestamp = timestamp
                results = process(row, context)
                if results is not None:
                    emitted.extend(results)
                counts.append(len(emitted))
        except BaseException as error:
            raise user_code_failed(error, self._step, context.key, context.timestamp) from None
        self._emit(emitted, times_of_results(batch.timestamps, counts), side, emit)
