"""What windows hold between firings: rows, one Python value, or the accumulators of built-in aggregates.

A content works on the window that its cursor points at. Built-in aggregates are computed for all windows of a batch
together: until the batch ends, a window holds the places of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from headwater.data.batch import Batch
from headwater.data.rows import converter, decode, encode_rows, make_rows, row_class
from headwater.data.schema import Schema
from headwater.descriptors import ListState, StateDeclaration, ValueState, state_of_type
from headwater.functions import AggregateFunction
from headwater.graph.nodes import WindowNode
from headwater.operators.aggregation import Aggregation
from headwater.operators.window.pieces import Bools, Cut, Kept, Pieces, Runs
from headwater.operators.window.scope import Scope
from headwater.state.handles.lists import ListHandle
from headwater.windows.evictors import CountEvictor, Element, Evictor

Point = Callable[[Scope], None]
"""Makes a window's state the current one."""
Folding = Callable[[Any, Any], Any] | AggregateFunction[Any, Any, Any]
Fold = Callable[[Sequence[list[Any]]], Iterable[Any]]
"""Gives, for each list of rows, the row made of it; a user's function is called for one when it is asked for."""
Held = Any
"""What a window held when it fired."""


TAKEN_BACK: Any = object()
"""The value of a window whose rows were all taken back."""


class Results(NamedTuple):
    """What windows give where they fire: the columns of rows, and which of these are of windows without rows."""

    columns: list[pa.Array]
    are_empty: Bools


class Contents(Protocol):
    """The content of the current window."""

    gives_rows: bool
    """Whether a firing's value is a list of rows, not one row."""

    def declarations(self) -> list[StateDeclaration]:
        """The states it is kept in; the handles are put in their place."""

    def begin(self, table: pa.Table) -> None:
        """The rows to come are those of this table."""

    def add(self, row: Any, timestamp: int | None, place: int) -> None:
        """Take in a row, which is at this place of the table."""

    def take(self) -> Held | None:
        """What the window holds, for a firing; None when it holds nothing."""

    def clear(self) -> None:
        """Drop all."""

    def absorb(self, others: Sequence[Scope], target: Scope, point: Point) -> None:
        """Take over what other windows hold; leaves the cursor at the target."""

    def finish(self, point: Point) -> None:
        """The table is done; store what is held."""

    def compute(self, firings: Sequence[Held]) -> Iterable[Any]:
        """For each firing, the value: a list of elements or a row, or that all was taken back.

        A user's function is called for a firing when its value is asked for, so who asks knows where it failed.
        """


class RowContents:
    """The rows themselves, with an evictor perhaps, and with a fold where one is to be made of what the evictor leaves."""

    rows: ListHandle

    def __init__(
        self, schema: Schema, evictor: Evictor | None, *, evicts_after: bool, fold: Fold | None = None
    ) -> None:
        self._type = pa.struct([pa.field("row", schema.struct), pa.field("at", pa.int64())])
        self._evictor, self._evicts_after, self._fold = evictor, evicts_after, fold
        is_known = isinstance(evictor, CountEvictor) and type(evictor).keep is CountEvictor.keep
        self._kept_last: int | None = evictor.count if is_known else None  # type: ignore[union-attr]
        self.gives_rows = fold is None

    def declarations(self) -> list[StateDeclaration]:
        return [state_of_type(ListState("rows", "boolean"), self._type)]

    def begin(self, table: pa.Table) -> None:
        """Rows come with their values."""

    def add(self, row: Any, timestamp: int | None, place: int) -> None:
        self.rows.add((row, timestamp))

    def take(self) -> Held | None:
        kept = self.rows.get()
        if not kept:
            return None
        if self._evictor is None:
            return [row for row, _ in kept]
        if self._kept_last is not None:
            staying: list[Any] = kept[-self._kept_last :]
        else:
            kept = [Element(row, at) for row, at in kept]
            staying = self._evictor.keep(kept)
        gone = len(kept) - len(staying)
        if gone and staying and staying == kept[gone:]:
            self.rows.drop_first(gone)
        elif gone:
            self.rows.update(staying)
        return [row for row, _ in (kept if self._evicts_after else staying)] or None

    def clear(self) -> None:
        self.rows.clear()

    def absorb(self, others: Sequence[Scope], target: Scope, point: Point) -> None:
        moved: list[Any] = []
        for scope in others:
            point(scope)
            moved += self.rows.get()
            self.rows.clear()
        point(target)
        self.rows.add_all(moved)

    def finish(self, point: Point) -> None:
        """Rows are stored as they come."""

    def compute(self, firings: Sequence[Held]) -> Iterable[Any]:
        rows = [held or [] for held in firings]
        return rows if self._fold is None else self._fold(rows)


class FoldedContents:
    """One Python value: a reduced row, or the accumulator of a user's aggregate function."""

    gives_rows = False
    value: ValueState[Any]

    def __init__(self, dtype: pa.DataType, function: Folding, fields: int) -> None:
        self._type, self._function, self._fields = dtype, function, fields

    def declarations(self) -> list[StateDeclaration]:
        return [state_of_type(ValueState("value", "boolean"), self._type)]

    def begin(self, table: pa.Table) -> None:
        """Rows come with their values."""

    def add(self, row: Any, timestamp: int | None, place: int) -> None:
        kept, function = self.value.get(), self._function
        if isinstance(function, AggregateFunction):
            self.value.set(function.add(function.create() if kept is None else kept, row))
        else:
            self.value.set(row if kept is None else function(kept, row))

    def take(self) -> Held | None:
        return self.value.get()

    def clear(self) -> None:
        self.value.clear()

    def absorb(self, others: Sequence[Scope], target: Scope, point: Point) -> None:
        function = self._function
        combine = function.merge if isinstance(function, AggregateFunction) else function
        found = []
        for scope in others:
            point(scope)
            if (value := self.value.get()) is not None:
                found.append(value)
            self.value.clear()
        point(target)
        for value in found:
            kept = self.value.get()
            self.value.set(value if kept is None else combine(kept, value))

    def finish(self, point: Point) -> None:
        """The value is stored as it changes."""

    def compute(self, firings: Sequence[Held]) -> Iterable[Any]:
        return (result_of(self._function, held, self._fields) for held in firings)


def fold_rows(function: Folding, dtype: pa.DataType, fields: int) -> Fold:
    """A Python fold over the rows of each firing. The function gets what it gave as a value of this type, as from state."""
    kept_as = converter(dtype)

    def folded(rows: list[Any]) -> Any:
        if isinstance(function, AggregateFunction):
            kept = function.create()
            for row in rows:
                kept = kept_as(function.add(kept, row))
        else:
            kept = rows[0]
            for row in rows[1:]:
                kept = kept_as(function(kept, row))
        return result_of(function, kept, fields)

    return lambda firings: map(folded, firings)


def aggregate_rows(aggregation: Aggregation, schema: Schema, step: str) -> Fold:
    """Built-in aggregates over the rows of each firing."""

    def fold(firings: Sequence[list[Any]]) -> list[Any]:
        if not firings:
            return []
        table = encode_rows([tuple(row) for rows in firings for row in rows], schema.arrow, step)
        groups = np.repeat(np.arange(len(firings)), [len(rows) for rows in firings])
        columns = aggregation.result(aggregation.partial(table, groups, len(firings)))
        return list(zip(*(decode(column) for column in columns), strict=True))

    return fold


def result_of(function: Folding, held: Any, fields: int) -> Any:
    """The row that a fold gives; a plain value is the one field of its row."""
    if not isinstance(function, AggregateFunction):
        return held
    result = function.result(function.create() if held is None else held)
    return result if isinstance(result, tuple | dict) or fields > 1 else (result,)


def contents_of(node: WindowNode, step: str) -> Contents:
    """What the windows of a step hold."""
    schema = node.input_schema
    fields = 0 if node.folded is None else len(node.folded.names)
    folding = node.reduce or node.aggregate
    aggregation = (
        None if node.aggregates is None else Aggregation(node.aggregates, schema, step, takes_back=node.takes_back)
    )
    if node.evictor is None and aggregation is not None:
        return AggregateContents(aggregation, schema, step, takes_back=node.takes_back)
    if node.evictor is None and folding is not None:
        return FoldedContents(node.accumulator or schema.struct, folding, fields)
    fold = None
    if aggregation is not None:
        fold = aggregate_rows(aggregation, schema, step)
    elif folding is not None:
        fold = fold_rows(folding, node.accumulator or schema.struct, fields)
    return RowContents(schema, node.evictor, evicts_after=node.evicts_after, fold=fold)


@dataclass
class _Segment:
    """Part of what a window holds: accumulators, then places of rows."""

    accumulators: list[Any] = field(default_factory=list)
    places: list[int] = field(default_factory=list)


class AggregateContents:
    """The accumulators of built-in aggregates, computed by columns."""

    gives_rows = False
    kept: ValueState[Any]

    def __init__(self, aggregation: Aggregation, schema: Schema, step: str, *, takes_back: bool) -> None:
        self._aggregation, self._step, self._takes_back = aggregation, step, takes_back
        self._schema = pa.schema(aggregation.fields)
        self._row = row_class(tuple(f"f{place}" for place in range(len(aggregation.fields))))
        self._type = pa.struct([pa.field(f"f{i}", f.type) for i, f in enumerate(aggregation.fields)])
        self._table = schema.arrow.empty_table()
        self._pending: dict[Scope, list[_Segment]] = {}
        """What came into each window in this batch, in order: rows, and what windows held that merged into it."""
        self._scope: Callable[[], Scope]

    def declarations(self) -> list[StateDeclaration]:
        return [state_of_type(ValueState("kept", "boolean"), self._type)]

    def at(self, scope: Callable[[], Scope]) -> None:
        """How to know the current window."""
        self._scope = scope

    def begin(self, table: pa.Table) -> None:
        self._table = table

    def add(self, row: Any, timestamp: int | None, place: int) -> None:
        self._of(self._scope())[-1].places.append(place)

    def add_accumulators(self, accumulators: Any) -> None:
        """Take in what rows were aggregated to."""
        self._of(self._scope())[-1].accumulators.append(accumulators)

    def add_runs(self, batch: Batch, runs: Runs, cut: Cut, scopes: Sequence[Scope], point: Point) -> Results:
        """Take in a run of rows for each window; gives the results where runs are cut, in order of arrival."""
        kept = []
        for scope in scopes:
            point(scope)
            kept.append([] if (value := self.kept.get()) is None else [value])
        before = Kept.of(kept, np.ones(len(scopes), np.bool_), self._schema, self._step)
        pieces = Pieces(self._aggregation, batch, runs, cut, before)
        for scope, row in zip(scopes, pieces.left(), strict=True):
            point(scope)
            self.kept.set(row)
        held = pieces.held(runs.arrived(np.flatnonzero(cut.ends)))
        return Results(self._aggregation.result(held), self._are_empty(held))

    def _are_empty(self, held: pa.Table) -> Bools:
        """Which windows hold no rows, as all of them were taken back."""
        return self._aggregation.left(held) <= 0 if self._takes_back else np.zeros(len(held), np.bool_)

    def _of(self, scope: Scope) -> list[_Segment]:
        segments = self._pending.get(scope)
        if segments is None:
            segments = self._pending[scope] = [_Segment()]
        return segments

    def take(self) -> Held | None:
        return self._held([_Segment([*s.accumulators], [*s.places]) for s in self._pending.get(self._scope(), ())])

    def _held(self, segments: list[_Segment]) -> Held | None:
        """What was kept of the current window, then what came."""
        if (kept := self.kept.get()) is not None:
            first, *rest = segments or [_Segment()]
            segments = [_Segment([kept, *first.accumulators], first.places), *rest]
        return [s for s in segments if s.accumulators or s.places] or None

    def clear(self) -> None:
        self.kept.clear()
        self._pending.pop(self._scope(), None)

    def absorb(self, others: Sequence[Scope], target: Scope, point: Point) -> None:
        into = self._of(target)
        for scope in others:
            point(scope)
            into += self._held(self._pending.pop(scope, [])) or ()
            self.kept.clear()
        into.append(_Segment())
        point(target)

    @property
    def pending(self) -> Iterable[Scope]:
        """The windows that something came into since the last `finish`."""
        return self._pending

    def finish(self, point: Point) -> None:
        pending, self._pending = self._pending, {}
        held, scopes = [], []
        for scope in pending:
            point(scope)
            if (one := self._held(pending[scope])) is not None:
                held.append(one)
                scopes.append(scope)
        for scope, row in zip(scopes, self._rows(self._merged(held)), strict=True):
            point(scope)
            self.kept.set(row)

    def compute(self, firings: Sequence[Held]) -> list[Any]:
        if not firings:
            return []
        merged = self._merged(firings)
        columns = self._aggregation.result(merged)
        rows = list(zip(*(decode(column) for column in columns), strict=True))
        for place in np.flatnonzero(self._are_empty(merged)).tolist():
            rows[place] = TAKEN_BACK
        return rows

    def _merged(self, held: Sequence[Held | None]) -> pa.Table:
        """One accumulator for each."""
        if not held:
            return self._schema.empty_table()
        segments = [(group, segment) for group, one in enumerate(held) for segment in one or ()]
        groups = np.array([group for group, _ in segments], np.int64)
        parts: list[pa.Table] = []
        places: list[np.ndarray[Any, np.dtype[np.int64]]] = []
        kept = [(place, row) for place, (_, segment) in enumerate(segments) for row in segment.accumulators]
        if kept:
            parts.append(encode_rows([tuple(row) for _, row in kept], self._schema, self._step))
            places.append(np.array([place for place, _ in kept], np.int64))
        counts = np.array([len(segment.places) for _, segment in segments], np.int64)
        if counts.any():
            filled = np.flatnonzero(counts)
            rows = np.concatenate([segments[place][1].places for place in filled.tolist()]).astype(np.int64)
            codes = np.repeat(np.arange(len(filled)), counts[filled])
            parts.append(self._aggregation.partial(self._table.take(pa.array(rows)), codes, len(filled)))
            places.append(filled.astype(np.int64))
        order = np.concatenate([np.empty(0, np.int64), *places])
        codes = groups[order]
        nothing = [group for group, one in enumerate(held) if one is None]
        parts += [self._aggregation.empty()] * len(nothing)
        together = pa.concat_tables([part.cast(self._schema) for part in parts])
        if len(segments) > len(held) - len(nothing):  # accumulators came between rows
            sequence = np.argsort(order, kind="stable")
            rest = np.arange(len(order), len(together))
            together, codes = together.take(pa.array(np.concatenate([sequence, rest]))), codes[sequence]
        return self._aggregation.merge(together, np.concatenate([codes, np.array(nothing, np.int64)]), len(held))

    def _rows(self, table: pa.Table) -> list[Any]:
        return list(make_rows(self._row, [decode(column) for column in table.columns]))
