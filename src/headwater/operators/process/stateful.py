"""The process operator with operator state: user code per element, over lists that belong to the subtask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.data.batch import Batch
from headwater.data.rows import Row
from headwater.functions import Context, ProcessFunction
from headwater.graph.nodes import StatefulProcessNode
from headwater.measures import Measured, Metrics
from headwater.operators.contract import Emit, StatefulOperator, StepTime
from headwater.operators.process.keyed_function import SLICE_ROWS
from headwater.operators.stateless.functions import ProcessCalls
from headwater.operators.timers import NoTimers
from headwater.operators.user_code import open_function, own_copy, user_code_failed
from headwater.state.handles.operator_lists import open_operator_states
from headwater.state.table import StateTable


class StatefulProcessOperator(StatefulOperator):
    """Runs one `ProcessFunction` that declares operator state on one subtask.

    The function is made and opened when state is in place, and anew when state came from elsewhere since: what it took out
    of its lists in `open` always fits them.
    """

    needs_order = True

    def __init__(self, node: StatefulProcessNode, step: str, row: type[Row]) -> None:
        self._node, self._step, self._row = node, step, row
        self._cursor, self._lists = open_operator_states(node.states, step)
        self._moved_to: tuple[int, int] | None = None
        self._metrics = Metrics()
        self._calls: ProcessCalls

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        self._make_ready()
        context = Context()
        context.watermark, context.now = time.watermark_ms, time.now_ms
        context.timers, context.metrics = NoTimers(self._step), self._metrics
        for start in range(0, len(batch), SLICE_ROWS):
            for tag, result in self._calls.run(batch.slice(start, SLICE_ROWS), context):
                emit(tag, result)

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        self._make_ready()  # state that has moved is taken over in the first epoch, also in one without rows

    def _make_ready(self) -> None:
        """Have a function that knows the state as it is."""
        cursor = self._cursor
        if not cursor.is_behind:
            return
        cursor.catch_up()
        function = own_copy(self._node.function, self._step)  # each subtask has its own
        for declaration in self._node.states:
            setattr(function, declaration.attribute, self._lists[declaration.name])
        if self._moved_to is not None:
            self._tell(function, *self._moved_to)
            self._moved_to = None
        cursor.is_read_only = True
        try:
            open_function(function, self._step)
        finally:
            cursor.is_read_only = False
        self._calls = ProcessCalls(function, self._node, self._step, self._row)

    def _tell(self, function: ProcessFunction, subtask: int, parallelism: int) -> None:
        try:
            function.restored(subtask, parallelism)
        except BaseException as error:
            raise user_code_failed(error, self._step) from None

    def tables(self) -> dict[str, StateTable]:
        return {**self._lists}

    def measured(self) -> dict[str, Measured]:
        return self._metrics.take()

    def meta(self) -> dict[str, Any]:
        return {} if self._moved_to is None else {"moved_to": list(self._moved_to)}

    def set_meta(self, meta: dict[str, Any]) -> None:
        self._moved_to = tuple(meta["moved_to"]) if meta else None

    def merged_meta(self, metas: Sequence[dict[str, Any]], subtask: int, parallelism: int) -> dict[str, Any]:
        return {"moved_to": [subtask, parallelism]}

    def reset(self) -> None:
        super().reset()
        self._moved_to = None
