"""The state of sliced windows: per slice of time, tables of accumulators by key, or of rows.

An epoch adds one table to each slice it touches, and that table is also what the changelog gets: no key is looked up.
Tables of a slice are merged when the newer ones have grown as large as the oldest, and when they are many, those that
are as large as one of them. That depends only on the tables that were added, so every copy of the state has the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.state.shelf import IN_MEMORY, KeptTable, Shelf
from headwater.state.slices import Slice
from headwater.state.spread import Spread, by_columns
from headwater.state.table import PUT, REMOVE

_HEADING = ("@op", "@slice", "@run")
"""Columns beside those of the slices; users' names do not start so."""
_MANY_TABLES = 16
"""Tables of a slice that may be of any size; more of them grow by a factor of two at least."""
Merge = Callable[[list[pa.Table]], pa.Table]
"""Makes one table of several: with one row for each key, or with all their rows."""


class SliceTable:
    """Tables by the start of their slice."""

    cut_since = 2

    def __init__(
        self,
        schema: pa.Schema,
        keys: Sequence[str],
        merge: Merge,
        on_new_slice: Callable[[int], None],
        shelf: Shelf = IN_MEMORY,
    ) -> None:
        """`keys` are the columns that make the key; none where all rows have one."""
        self.schema, self._merge, self._on_new_slice, self._shelf = schema, merge, on_new_slice, shelf
        self.spread: Spread = by_columns(keys)
        heading = [
            pa.field(name, dtype) for name, dtype in zip(_HEADING, (pa.int8(), pa.int64(), pa.int64()), strict=True)
        ]
        self._stored = pa.schema([*heading, *schema])
        self._watchers: list[Callable[[int], None]] = []
        self.clear_all()

    def watch(self, on_change: Callable[[int], None]) -> None:
        """Call this with the start of each slice that changes or goes, whoever changes it."""
        self._watchers.append(on_change)

    def clear_all(self) -> None:
        self._slices: dict[int, list[KeptTable]] = {}
        self._known: set[int] = set()
        """The slices that the changelog has."""
        self._added: dict[int, list[pa.Table]] = {}
        self._removed: dict[int, None] = {}
        self._rows = 0

    def kept(self, start: int) -> Sequence[KeptTable]:
        """What a slice holds, as it is kept."""
        return self._slices.get(start, ())

    def tables(self, start: int) -> list[pa.Table]:
        """What a slice holds."""
        return [kept.table for kept in self.kept(start)]

    def add(self, start: int, table: pa.Table) -> None:
        """Add a table to a slice."""
        self._added.setdefault(start, []).append(table)
        self._put(start, table)

    def _put(self, start: int, table: pa.Table) -> None:
        self._tell(start)
        kept = self._slices.get(start)
        if kept is None:
            kept = self._slices[start] = []
            self._on_new_slice(start)
        self._rows += len(table)
        first = _outgrown([*map(len, kept), len(table)])
        if first is not None:
            tables = [*(one.table for one in kept[first:]), table]
            table = self._merge(tables)
            self._rows += len(table) - sum(map(len, tables))
            del kept[first:]
        kept.append(KeptTable(table, self._shelf))

    def _tell(self, start: int) -> None:
        for on_change in self._watchers:
            on_change(start)

    def remove(self, start: int) -> None:
        """Drop a slice if it is there."""
        tables = self._slices.pop(start, None)
        if tables is None:
            return
        self._tell(start)
        self._rows -= sum(map(len, tables))
        self._added.pop(start, None)
        if start in self._known:
            self._removed[start] = None

    def changes(self) -> pa.Table | None:
        if not self._added and not self._removed:
            return None
        table = self._table(self._removed, self._added)
        self.forget_changes()
        return table

    def forget_changes(self) -> None:
        self._known = set(self._slices) if not self._known else (self._known - set(self._removed)) | set(self._added)
        self._added, self._removed = {}, {}

    def dump(self) -> pa.Table:
        return self._table({}, {start: self.tables(start) for start in sorted(self._slices)})

    def dump_slice(self, part: Slice) -> pa.Table:
        starts = np.array(sorted(self._slices), np.int64)
        chosen = starts[part.has(pa.array(starts))].tolist()
        return self._table({}, {start: self.tables(start) for start in chosen})

    def load(self, dumped: pa.Table) -> None:
        self.apply(dumped)

    def falls_into(self, rows: pa.Table, part: Slice) -> npt.NDArray[np.bool_]:
        return part.has(rows["@slice"])

    def _table(self, removed: dict[int, None], slices: dict[int, list[pa.Table]]) -> pa.Table:
        parts = []
        if removed:
            nothing = [pa.nulls(len(removed), field.type) for field in self.schema]
            runs = pa.array(np.zeros(len(removed), np.int64))
            parts.append(self._headed(REMOVE, pa.array(list(removed), pa.int64()), runs, nothing))
        for start, tables in slices.items():
            for run, table in enumerate(tables):
                starts = pa.array(np.full(len(table), start, np.int64))
                parts.append(self._headed(PUT, starts, pa.array(np.full(len(table), run, np.int64)), table.columns))
        return pa.concat_tables(parts).combine_chunks() if parts else self._stored.empty_table()

    def _headed(self, op: int, starts: pa.Array, runs: pa.Array, columns: list[pa.Array]) -> pa.Table:
        ops = pa.array(np.full(len(starts), op, np.int8))
        return pa.Table.from_arrays([ops, starts, runs, *columns], schema=self._stored)

    def apply(self, changes: pa.Table) -> None:
        ops, starts, runs = (changes[name].to_numpy() for name in _HEADING)
        for start in starts[ops == REMOVE].tolist():
            self.remove(start)
        content = changes.select(self.schema.names)
        first = int(np.count_nonzero(ops == REMOVE))
        edges = np.flatnonzero((np.diff(starts[first:]) != 0) | (np.diff(runs[first:]) != 0)) + 1
        bounds = [first, *(edges + first).tolist(), len(changes)]
        for begin, end in pairwise(bounds):
            if begin < end:
                self._put(int(starts[begin]), content.slice(begin, end - begin).combine_chunks())
        self._known = set(self._slices)
        self._added, self._removed = {}, {}

    def __len__(self) -> int:
        return self._rows


def _outgrown(sizes: list[int]) -> int | None:
    """The first table such that those behind it have as many rows, if it is the oldest or there are many tables."""
    behind = sum(sizes) - sizes[0]
    if behind > sizes[0]:
        return 0
    if len(sizes) > _MANY_TABLES:
        for place in range(1, len(sizes) - 1):
            behind -= sizes[place]
            if behind >= sizes[place]:
                return place
    return None
