"""The join of two inputs over tumbling, sliding and cumulating windows in event time, by columns.

Rows are kept as they came, one table for each slice, epoch and side. A window that fires has its rows matched by key all at
once. The results are those of the general operator, except that several updates of a key's window in one epoch come out as
one, and that rows come in the order of slices.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.batch import Batch
from headwater.data.rows import Row
from headwater.graph.nodes import WindowInput, WindowJoinNode
from headwater.late_rows import LateRow, newest
from headwater.operators.contract import Emit, StatefulOperator, StepTime, TwoInputs
from headwater.operators.grouping import Codes, Columns, among, group, stacked
from headwater.operators.join.columns import PairColumns, taken
from headwater.operators.join.keys import can_meet, key_columns, key_names, stored_schema, with_key_column
from headwater.operators.join.matching import NONE, alone, matches
from headwater.operators.pairs import places_of_pairs
from headwater.operators.window.late import LateRows
from headwater.operators.window.schedule import SliceSchedule
from headwater.operators.window.slices import SliceTable
from headwater.state.backend import StateBackend
from headwater.state.memory_backend import MEMORY
from headwater.state.shelf import Shelf
from headwater.state.table import StateTable
from headwater.windows.assigners import SlicedAssigner, Window

Flags = npt.NDArray[np.bool_]
_MATCHED_ROWS = 1 << 18
"""About so many rows are matched at a time, of small windows together; bounds memory when many fire."""


@dataclass(frozen=True)
class _Firing:
    """A window and its rows, of both sides."""

    window: Window
    left: pa.Table
    right: pa.Table


class WindowJoinOperator(StatefulOperator):
    """Runs one such join on one subtask."""

    needs_order = False

    def __init__(
        self, node: WindowJoinNode, step: str, left: type[Row], right: type[Row], *, backend: StateBackend = MEMORY
    ) -> None:
        self._node, self._step, self._assigner = node, step, node.assigner
        self._schedule = SliceSchedule(node.assigner, node.lateness_ms)
        left_rows = WindowInput(node.left_schema, node.key, node.lateness_ms, node.late_left)
        right_rows = WindowInput(node.right_schema, node.right_key, node.lateness_ms, node.late_right)
        how = node.how
        self._shows_left_alone, self._shows_right_alone = how in ("left", "full", "anti"), how in ("right", "full")
        self._left = JoinSide(left_rows, self._schedule, step, backend.shelf, keeps_all=self._shows_left_alone)
        self._right = JoinSide(
            right_rows,
            self._schedule,
            step,
            backend.shelf,
            keeps_all=self._shows_right_alone,
            is_asked_only=how in ("semi", "anti"),
        )
        self._columns = PairColumns(node, left_may_lack=self._shows_right_alone)
        self._of_right = node.right_schema.names if self._shows_right_alone else list(node.right_columns)

    def reset(self) -> None:
        self._left.slices.clear_all()
        self._right.slices.clear_all()
        self._schedule.reset()

    # -- rows -------------------------------------------------------------------------------------------------------

    def process_two(self, inputs: TwoInputs, time: StepTime, emit: Emit) -> None:
        touched: dict[Window, list[Columns]] = {}
        for side, batch in ((self._left, inputs.left), (self._right, inputs.right)):
            for start, rows in side.add(batch, self._assigner, time.watermark_ms) if batch is not None else ():
                for window in self._schedule.fired(start, time.watermark_ms):
                    touched.setdefault(window, []).append(side.keys(rows))
            for tag, late in side.late.take():
                emit(tag, late)
        windows = sorted(touched, key=lambda w: (w.end, w.start))
        self._emit((self._firing(window, touched[window]) for window in windows), emit)

    # -- time -------------------------------------------------------------------------------------------------------

    def advance_watermark(self, time: StepTime, emit: Emit) -> None:
        self._emit((self._firing(window) for window in self._schedule.fire(time.watermark_ms)), emit)
        for start in self._schedule.drop(time.watermark_ms):
            self._left.slices.remove(start)
            self._right.slices.remove(start)

    # -- results ----------------------------------------------------------------------------------------------------

    def _firing(self, window: Window, keys: list[Columns] | None = None) -> _Firing:
        """The rows of a window; those of some keys only, if given."""
        starts = self._assigner.slices_of_window(window)
        return _Firing(window, self._left.rows(starts, keys), self._right.rows(starts, keys))

    def _emit(self, firings: Iterable[_Firing], emit: Emit) -> None:
        """Match the rows of windows, of many small ones together."""
        ready: list[_Firing] = []
        rows = 0
        for firing in firings:
            has_left, has_right = len(firing.left) > 0, len(firing.right) > 0
            shows_alone = (has_left and self._shows_left_alone) or (has_right and self._shows_right_alone)
            if (has_left and has_right) or shows_alone:
                ready.append(firing)
                rows += len(firing.left) + len(firing.right)
            if rows >= _MATCHED_ROWS:
                self._match(ready, emit)
                ready, rows = [], 0
        if ready:
            self._match(ready, emit)

    def _match(self, firings: list[_Firing], emit: Emit) -> None:
        left = pa.concat_tables([firing.left for firing in firings]).combine_chunks()
        right = pa.concat_tables([firing.right for firing in firings]).combine_chunks()
        numbers = np.arange(len(firings))
        of_left = np.repeat(numbers, [len(firing.left) for firing in firings])
        of_right = np.repeat(numbers, [len(firing.right) for firing in firings])
        keys = stacked([self._left.keys(left), self._right.keys(right)])
        groups = group(keys, len(left) + len(right), np.concatenate([of_left, of_right]))
        codes = groups.codes[: len(left)], groups.codes[len(left) :]
        for number, (side, rows) in enumerate(((self._left, left), (self._right, right))):
            side.set_apart(codes[number], rows, len(groups) + number)
        edges = np.array([firing.window for firing in firings], np.int64)
        left, right = left.select(self._node.left_schema.names), right.select(self._of_right)
        parts = matches(self._node.how if self._node.condition is None else "inner", *codes, len(groups) + 2)
        has_met = np.zeros(len(left), np.bool_), np.zeros(len(right), np.bool_)
        for lefts, rights in parts if self._node.condition is None else itertools.chain(parts, self._alone(has_met)):
            windows = edges[of_left[lefts] if lefts[0] != NONE else of_right[rights]]
            moments = [pa.array(edge * 1000).view(pa.timestamp("us", "UTC")) for edge in windows.T]
            columns = [*self._columns.of(taken(left, lefts), taken(right, rights)), *moments]
            shown = Batch(pa.Table.from_arrays(columns, schema=self._node.schema.arrow), windows[:, 1] - 1)
            if self._node.condition is not None and lefts[0] != NONE and rights[0] != NONE:
                kept = places_of_pairs(self._node.condition, shown.table, self._step)
                has_met[0][lefts[kept]], has_met[1][rights[kept]] = True, True
                shown = shown.take(kept)
            if len(shown):
                emit(None, shown)

    def _alone(self, has_met: tuple[Flags, Flags]) -> Iterator[tuple[Codes, Codes]]:
        """The rows of which no pair is left, when all pairs are known."""
        for is_shown, met, is_left in (
            (self._shows_left_alone, has_met[0], True),
            (self._shows_right_alone, has_met[1], False),
        ):
            if is_shown:
                yield from alone(np.flatnonzero(~met), is_left=is_left)

    # -- state ------------------------------------------------------------------------------------------------------

    def tables(self) -> dict[str, StateTable]:
        return {"left": self._left.slices, "right": self._right.slices}

    def counters(self) -> dict[str, int]:
        return {"late_dropped": self._left.late.take_dropped() + self._right.late.take_dropped()}

    def late_rows(self) -> tuple[LateRow, ...]:
        return newest((), [self._left.late.take_newest(), self._right.late.take_newest()])

    def meta(self) -> dict[str, Any]:
        return {"watermark_ms": self._schedule.watermark_ms}

    def set_meta(self, meta: dict[str, Any]) -> None:
        self._schedule.watermark_ms = meta["watermark_ms"]

    def merged_meta(self, metas: Sequence[dict[str, Any]], subtask: int, parallelism: int) -> dict[str, Any]:
        return {"watermark_ms": min(meta["watermark_ms"] for meta in metas)}


class JoinSide:
    """The rows of one input by slice."""

    def __init__(
        self,
        rows: WindowInput,
        schedule: SliceSchedule,
        step: str,
        shelf: Shelf,
        *,
        keeps_all: bool = False,
        is_asked_only: bool = False,
    ) -> None:
        """Rows with a null in their key are kept if it `keeps_all`; nothing but keys if it is only asked whether it has one."""
        self._input, self._schedule, self._step, self._keeps_all = rows, schedule, step, keeps_all
        shown = [field for field in rows.input_schema.arrow if not is_asked_only or field.name in rows.key.columns]
        self._schema, self._key_names = stored_schema(pa.schema(shown), rows.key), key_names(rows.key)
        self.slices = SliceTable(self._schema, self._key_names, _one_table, schedule.expect, shelf)
        self.late = LateRows(rows, step)

    def keys(self, rows: pa.Table) -> Columns:
        """The columns of rows that make their key."""
        return key_columns(rows, self._key_names)

    def set_apart(self, codes: Codes, rows: pa.Table, code: int) -> None:
        """Give rows that can meet none a code of their own, where there are such."""
        if self._keeps_all:
            codes[~can_meet(rows, self._key_names)] = code

    def rows(self, starts: Iterable[int], keys: list[Columns] | None) -> pa.Table:
        """The rows of slices; those of some keys only, if given."""
        tables = [table for start in starts for table in self.slices.tables(start)]
        found = pa.concat_tables(tables) if tables else self._schema.empty_table()
        return found if keys is None else found.filter(pa.array(among(self.keys(found), keys)))

    def add(self, batch: Batch, assigner: SlicedAssigner, watermark_ms: int) -> list[tuple[int, pa.Table]]:
        """Keep the rows that are not late and, unless it keeps all, have a key without nulls.

        Gives those that are not late, by slice: also one that is not kept lets the window of its key fire again.
        """
        starts = self._schedule.starts(batch, self._step)
        is_open = self._schedule.are_open(starts, watermark_ms)
        if not is_open.all():
            self.late.add_rows(batch, ~is_open, assigner, watermark_ms)
            batch = batch.take(np.flatnonzero(is_open))
        rows = with_key_column(batch, self._input.key)
        kept = timely = list(self._by_slice(rows))
        if not self._keeps_all and not (meets := can_meet(rows.table, self._key_names)).all():
            kept = list(self._by_slice(rows.take(np.flatnonzero(meets))))
        for start, table in kept:
            self.slices.add(start, table)
        return timely

    def _by_slice(self, batch: Batch) -> Iterator[tuple[int, pa.Table]]:
        found, codes = np.unique(self._schedule.starts(batch, self._step), return_inverse=True)
        columns = batch.table.select(self._schema.names).columns
        table = pa.Table.from_arrays(columns, schema=self._schema).combine_chunks()
        if len(found) > 1:
            table = table.take(pa.array(np.argsort(codes, kind="stable")))
        end = 0
        for start, rows in zip(found.tolist(), np.bincount(codes).tolist(), strict=True):
            begin, end = end, end + rows
            yield start, table.slice(begin, rows)


def _one_table(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).combine_chunks()
