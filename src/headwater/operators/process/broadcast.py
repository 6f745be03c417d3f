"""The operator of a function over a stream and a broadcast stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headwater.data.batch import Batch, timestamp_list
from headwater.data.rows import Row
from headwater.descriptors import StateDeclaration
from headwater.errors import StateError
from headwater.functions import BroadcastContext
from headwater.graph.nodes import BroadcastProcessNode
from headwater.operators.contract import Emit, StepTime, TwoInputs
from headwater.operators.process.keyed import KeyedProcessOperator
from headwater.operators.process.keyed_function import SLICE_ROWS, KeyedContext, times_of_results
from headwater.operators.stateless.functions import SideRow, rows_of
from headwater.operators.timers import NoTimers
from headwater.operators.user_code import user_code_failed
from headwater.state.backend import StateBackend
from headwater.state.handles.broadcast import BroadcastStates
from headwater.state.memory_backend import MEMORY


class BroadcastProcessOperator(KeyedProcessOperator):
    """Runs one function on one subtask: of an epoch first all broadcast rows, then the data rows.

    Every subtask gets the same broadcast rows in the same order, so that all keep the same broadcast state.
    """

    def __init__(
        self,
        node: BroadcastProcessNode,
        step: str,
        data: type[Row],
        broadcast: type[Row],
        *,
        backend: StateBackend = MEMORY,
    ) -> None:
        self._broadcast = BroadcastStates(node.broadcast_states, step)
        super().__init__(node, step, data, backend=backend)
        self._broadcast_row = broadcast
        self._keyed_states: dict[str, Any] = {state.name: self._tables[state.name] for state in node.states}
        self._tables |= self._broadcast.maps
        if node.key.is_nothing:
            self._context.timers = NoTimers(step)

    def _make_context(self) -> KeyedContext:
        return _Context(self)

    def _begin(self, time: StepTime) -> list[SideRow]:
        self._broadcast.begin()
        return super()._begin(time)

    def process_two(self, inputs: TwoInputs, time: StepTime, emit: Emit) -> None:
        self._at(time)
        if inputs.right is not None:
            with self._at_broadcast_rows():
                for start in range(0, len(inputs.right), SLICE_ROWS):
                    self._process_broadcast(inputs.right.slice(start, SLICE_ROWS), time, emit)
        if inputs.left is not None:
            self.process(inputs.left, time, emit)

    @contextmanager
    def _at_broadcast_rows(self) -> Iterator[None]:
        """Broadcast state can be written, and there are neither key nor timers."""
        context, timers = self._context, self._context.timers
        context.timers = NoTimers(self._step, "a broadcast row has none", "set them in process")
        self._broadcast.is_writable = True
        self._cursor.leave()
        try:
            yield
        finally:
            self._broadcast.is_writable = False
            context.timers = timers

    def _process_broadcast(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        context, process = self._context, self._function.process_broadcast
        emitted: list[Any] = []
        counts: list[int] = []
        side = self._begin(time)
        rows = rows_of(batch.table, self._broadcast_row)
        try:
            for timestamp, row in zip(timestamp_list(batch.timestamps), rows, strict=True):
                context.timestamp = timestamp
                results = process(row, context)
                if results is not None:
                    emitted.extend(results)
                counts.append(len(emitted))
        except BaseException as error:
            raise user_code_failed(error, self._step, None, context.timestamp) from None
        self._emit(emitted, times_of_results(batch.timestamps, counts), side, emit)

    def broadcast_state(self, state: Any) -> Any:
        """What `ctx.broadcast_state` gives."""
        return self._broadcast.of(state)

    def apply_to_keyed_state(self, state: Any, function: Callable[[Any, Any], None]) -> None:
        """What `ctx.apply_to_keyed_state` does: each key that has the state becomes the current one in turn."""
        if not self._broadcast.is_writable:
            raise StateError.misused(
                self._step, "a row or timer reaches its own key only", "do it in process_broadcast"
            )
        handle = self._keyed_state(state)
        self._broadcast.is_writable = False  # keys differ between subtasks
        try:
            for entry in handle.entries_by_key():
                self._cursor.entry = entry
                function(self._cursor.key, handle)
        except BaseException as error:
            raise user_code_failed(error, self._step, self._context.key, self._context.timestamp) from None
        finally:
            self._cursor.leave()
            self._broadcast.is_writable = True

    def _keyed_state(self, state: Any) -> Any:
        """The handle of a state that is given as its declaration or as the handle itself."""
        for name, handle in self._keyed_states.items():
            if handle is state or (isinstance(state, StateDeclaration) and state.name == name):
                return handle
        known = ", ".join(map(repr, self._keyed_states)) or "none"
        rule = f"{getattr(state, 'name', state)!r} is no keyed state of its function"
        raise StateError.misused(self._step, rule, f"it declares {known}")


class _Context(KeyedContext, BroadcastContext):
    """The context of all calls of such a function."""

    __slots__ = ("_operator",)

    def __init__(self, operator: BroadcastProcessOperator) -> None:
        super().__init__(operator._cursor)
        self._operator = operator

    def broadcast_state(self, state: Any) -> Any:
        return self._operator.broadcast_state(state)

    def apply_to_keyed_state(self, state: Any, function: Callable[[Any, Any], None]) -> None:
        self._operator.apply_to_keyed_state(state, function)
