"""Rolling reduce: user code makes one row of all rows of a key so far, after each of them."""

from __future__ import annotations

from headwater.data.batch import Batch, timestamp_list
from headwater.data.rows import Row, encode_rows
from headwater.descriptors import ValueState, state_of_type
from headwater.expiry import Ttl
from headwater.graph.nodes import ReduceNode
from headwater.operators.contract import Emit, StatefulOperator, StepTime
from headwater.operators.process.keyed_function import SLICE_ROWS, rows_and_keys
from headwater.operators.user_code import user_code_failed
from headwater.state.backend import StateBackend
from headwater.state.handles.expiring import Expiry
from headwater.state.handles.opening import open_states
from headwater.state.handles.values import ValueHandle
from headwater.state.memory import Cursor
from headwater.state.memory_backend import MEMORY
from headwater.state.table import StateTable


class ReduceOperator(StatefulOperator):
    """Runs one `reduce` without windows on one subtask. The first row of a key is its first result."""

    needs_order = True

    def __init__(self, node: ReduceNode, step: str, row: type[Row], *, backend: StateBackend = MEMORY) -> None:
        self._node, self._step, self._row = node, step, row
        self._cursor = Cursor()
        ttl = None if node.ttl_ms is None else Ttl(node.ttl_ms)
        declaration = state_of_type(ValueState("reduced", "boolean", ttl=ttl), node.schema.struct)
        self._entries, self._tables = open_states([declaration], step, node.key.type, self._cursor, backend=backend)
        handle = self._tables["reduced"]
        assert isinstance(handle, ValueHandle)
        self._reduced, self._expiry = handle, Expiry([handle])

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        self._expiry.at(time.now_ms)
        for start in range(0, len(batch), SLICE_ROWS):
            part = batch.slice(start, SLICE_ROWS)
            table = encode_rows(self._results(part), self._node.schema.arrow, self._step)
            emit(None, Batch(table, part.timestamps))

    def _results(self, batch: Batch) -> list[Row]:
        rows, keys = rows_and_keys(batch, self._row, self._node.key)
        cursor, reduced, function = self._cursor, self._reduced, self._node.function
        keys = self._entries.fetch(keys)
        known, blank = self._entries.entries.get, self._entries.entry
        found = []
        for key, timestamp, row in zip(keys, timestamp_list(batch.timestamps), rows, strict=True):
            cursor.entry = known(key) or blank(key)
            kept = reduced.get()
            try:
                reduced.set(row if kept is None else function(kept, row))
            except BaseException as error:
                raise user_code_failed(error, self._step, key, timestamp) from None
            found.append(reduced.get())
        return found

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        self._expiry.at(time.now_ms)

    def counters(self) -> dict[str, int]:
        return self._expiry.counters()

    def tables(self) -> dict[str, StateTable]:
        return self._tables
