"""The operator of a function over two connected inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from headwater.data.batch import Batch, timestamp_array, timestamp_list
from headwater.data.rows import Row
from headwater.graph.edges import LEFT
from headwater.graph.nodes import CoProcessNode
from headwater.operators.contract import Emit, StepTime, TwoInputs
from headwater.operators.process.keyed_function import (
    SLICE_ROWS,
    KeyedFunctionOperator,
    rows_and_keys,
    times_of_results,
)
from headwater.operators.timers import NoTimers
from headwater.operators.user_code import user_code_failed
from headwater.state.backend import StateBackend
from headwater.state.memory_backend import MEMORY

_Call = tuple[Any, Any, int | None, Any]
"""A function, the key, the timestamp and the row to call it with."""


class CoProcessOperator(KeyedFunctionOperator):
    """Runs one `CoProcessFunction` on one subtask. The rows of both inputs come in the order of event time."""

    def __init__(
        self, node: CoProcessNode, step: str, left: type[Row], right: type[Row], *, backend: StateBackend = MEMORY
    ) -> None:
        super().__init__(node, node.function, step, backend=backend)
        self._rows, self._keys = (left, right), (node.key, node.right_key)
        if node.key.is_nothing:
            self._context.timers = NoTimers(step)

    def process_two(self, inputs: TwoInputs, time: StepTime, emit: Emit) -> None:
        assert inputs.turns is not None
        self._at(time)
        done = [0, 0]
        for start in range(0, len(inputs.turns), SLICE_ROWS):
            turns = inputs.turns[start : start + SLICE_ROWS]
            counts = np.bincount(turns, minlength=2).tolist()
            parts = [
                None if batch is None else batch.slice(done[side], counts[side])
                for side, batch in enumerate((inputs.left, inputs.right))
            ]
            done = [before + count for before, count in zip(done, counts, strict=True)]
            self._process_slice(parts, turns.tolist(), time, emit)

    def _process_slice(self, parts: list[Batch | None], turns: list[int], time: StepTime, emit: Emit) -> None:
        calls = [iter(()) if part is None else self._calls(part, side) for side, part in enumerate(parts)]
        cursor, context, entry = self._cursor, self._context, self._entries.entry
        emitted: list[Any] = []
        counts: list[int] = []
        times: list[int | None] = []
        side_rows = self._begin(time)
        try:
            for side in turns:
                process, key, timestamp, row = next(calls[side])
                cursor.entry = entry(key)
                context.timestamp = timestamp
                results = process(row, context)
                if results is not None:
                    emitted.extend(results)
                counts.append(len(emitted))
                times.append(timestamp)
        except BaseException as error:
            raise user_code_failed(error, self._step, context.key, context.timestamp) from None
        self._emit(emitted, times_of_results(timestamp_array(times), counts), side_rows, emit)

    def _calls(self, batch: Batch, side: int) -> Iterator[_Call]:
        process = self._function.process_left if side == LEFT else self._function.process_right
        rows, keys = rows_and_keys(batch, self._rows[side], self._keys[side])
        keys = self._entries.fetch(keys)
        for key, timestamp, row in zip(keys, timestamp_list(batch.timestamps), rows, strict=True):
            yield process, key, timestamp, row
