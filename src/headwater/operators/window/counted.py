"""Built-in aggregates over windows of a number of rows, by columns.

The rows of a key are cut into pieces of the greatest common divisor of size and slide, and the accumulators of the pieces
that a later window can hold are kept: at every slide, the last ones up to the size are put together.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headwater.data.batch import MAX_TIMESTAMP, Batch
from headwater.data.rows import Row
from headwater.descriptors import ListState, ValueState, state_of_type
from headwater.graph.nodes import WindowNode
from headwater.late_rows import LateRow
from headwater.operators.aggregation import Aggregation
from headwater.operators.contract import Emit, StatefulOperator, StepTime
from headwater.operators.grouping import Codes, group
from headwater.operators.keys import key_arrays, keys_of
from headwater.operators.window.contents import Results
from headwater.operators.window.late import LateRows, MissedWindows
from headwater.operators.window.panes import Fired, PaneBook
from headwater.operators.window.pieces import Cut, Kept, Pieces, Runs
from headwater.operators.window.scope import Scope, scope_of, scope_spread, scope_type
from headwater.state.backend import StateBackend
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor
from headwater.state.memory_backend import MEMORY
from headwater.state.table import StateTable
from headwater.windows.assigners import GLOBAL, CountWindows


class _KeptOfKey(NamedTuple):
    seen: int
    """Rows since the last window."""
    pieces: list[Any]
    tail: list[Any]
    """The piece that is not full yet, if there is one."""


class CountWindowOperator(StatefulOperator):
    """Runs one such step on one subtask."""

    needs_order = True

    def __init__(self, node: WindowNode, step: str, row: type[Row], *, backend: StateBackend = MEMORY) -> None:
        assert isinstance(node.assigner, CountWindows)
        assert node.aggregates is not None
        self._node, self._step = node, step
        size, self._slide = node.assigner.size, node.assigner.slide or node.assigner.size
        self._is_discarding = node.panes.mode == "discarding"
        self._piece = math.gcd(size, self._slide)
        self._width = size // self._piece
        self._aggregation = Aggregation(node.aggregates, node.input_schema, step)
        self._book = PaneBook(node, step)
        self._late = LateRows(node, step)
        self._cursor = Cursor()
        fields = [pa.field(f"f{place}", field.type) for place, field in enumerate(self._aggregation.fields)]
        own = [
            ValueState("seen", "bigint", default=0),
            state_of_type(ListState("pieces", "boolean"), pa.struct(fields)),
            state_of_type(ValueState("tail", "boolean"), pa.struct(fields)),
        ]
        declarations = [*own, *self._book.declarations()]
        self._entries, self._tables = open_states(
            declarations, step, scope_type(node.key.type), self._cursor, scope_spread(node.key), backend=backend
        )
        self._seen: Any = self._tables["seen"]
        self._pieces: Any = self._tables["pieces"]
        self._tail: Any = self._tables["tail"]
        for declaration in self._book.declarations():
            setattr(self._book, declaration.attribute, self._tables[declaration.name])

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        if time.watermark_ms == MAX_TIMESTAMP:
            self._drop(batch, time.watermark_ms, emit)
        elif len(batch):
            self._add(batch, emit)

    def _drop(self, batch: Batch, watermark_ms: int, emit: Emit) -> None:
        """The input had ended before these rows, and with it the only window."""
        nowhere = np.zeros(len(batch), np.int64)
        self._late.add_batch(batch, MissedWindows(nowhere, nowhere, nowhere.astype(np.bool_)), watermark_ms)
        for tag, late in self._late.take():
            emit(tag, late)

    def _add(self, batch: Batch, emit: Emit) -> None:
        groups = group(key_arrays(batch, self._node.key), len(batch))
        runs = Runs.by(groups.codes, len(groups))
        scopes = [scope_of(key, GLOBAL) for key in keys_of(batch.take(groups.first), self._node.key)]
        kept = [self._kept(scope) for scope in self._entries.fetch(scopes)]
        seen = np.array([one.seen for one in kept], np.int64)
        reached = seen[runs.of] + runs.numbers + 1
        fires = reached % self._slide == 0
        cut = Cut(reached % self._piece == 0, fires if self._is_discarding else np.zeros_like(fires))
        held = [one.pieces[-self._width :] + one.tail for one in kept]
        before = Kept.of(held, seen % self._piece > 0, pa.schema(self._aggregation.fields), self._step)
        pieces = Pieces(self._aggregation, batch, runs, cut, before)
        self._store(scopes, kept, reached[runs.lasts], pieces)
        fired = runs.arrived(np.flatnonzero(fires))
        columns = self._aggregation.result(pieces.held(fired, self._width))
        results = Results(columns, np.zeros(len(fired), np.bool_))
        kinds = ["early"] * len(scopes)
        self._book.fire(Fired(batch, runs.rows[fired], runs.of[fired], results, scopes, kinds), self._point)
        if (found := self._book.take()) is not None:
            emit(None, found)

    def _kept(self, scope: Scope) -> _KeptOfKey:
        self._point(scope)
        tail = self._tail.get()
        return _KeptOfKey(self._seen.get(), self._pieces.get(), [] if tail is None else [tail])

    def _store(self, scopes: list[Scope], kept: list[_KeptOfKey], reached: Codes, pieces: Pieces) -> None:
        """Keep the pieces that the next window of each key can hold: those since its last one, and some before.

        New ones are put behind the others, and those that are not needed any more go when they are as many.
        """
        seen = reached % self._slide
        needed = np.minimum(self._width, max(0, self._width - self._slide // self._piece) + seen // self._piece)
        has_tail = seen % self._piece > 0
        lefts = pieces.left_apart(needed + has_tail)
        for scope, one, to, count, left, is_tailed in zip(
            scopes, kept, reached.tolist(), seen.tolist(), lefts, has_tail.tolist(), strict=True
        ):
            self._point(scope)
            self._seen.set(count or None)
            self._tail.set(left.pop() if is_tailed else None)
            new = to // self._piece - one.seen // self._piece
            is_dropped = self._is_discarding and to >= self._slide
            if is_dropped or new >= len(left) or len(one.pieces) + new > 2 * self._width:
                self._pieces.update(left)
            elif new:
                self._pieces.add_all(left[-new:])

    def _point(self, scope: Scope) -> None:
        self._cursor.entry = self._entries.entry(scope)

    def tables(self) -> dict[str, StateTable]:
        return self._tables

    def counters(self) -> dict[str, int]:
        return {"late_dropped": self._late.take_dropped()}

    def late_rows(self) -> tuple[LateRow, ...]:
        return self._late.take_newest()
