"""Plain numbers on disk, by columns as in memory: what epochs use is there, the rest in sorted runs in files.

A key is in memory or in a run, not in both. The keys of a slice of rows are brought into memory at once. The oldest keys go
to a run when the worker holds too much, between epochs alone: during one, what the cursor points at is a place in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.data.rows import decode
from headwater.descriptors import StateDeclaration
from headwater.errors import StateError
from headwater.state.disk.bound import Bound
from headwater.state.disk.cold import ColdRows
from headwater.state.memory import Entry
from headwater.state.packed import NEW, PRESENT, PackedTable, Places
from headwater.state.shelf import Shelf
from headwater.state.slices import Slice
from headwater.state.table import KeyedLayout

_ENTRY_BYTES, _STATE_BYTES = 140, 16
"""What Python takes for a key with its place in a dictionary and a list; and for each number of it with its mark."""


class DiskNumbers(PackedTable):
    """The entries of a step as places, of which `entries` has those that are in memory."""

    HOLDS_ALL = False

    def __init__(
        self, declarations: Sequence[StateDeclaration], key: pa.DataType, step: str, shelf: Shelf, bound: Bound
    ) -> None:
        super().__init__(declarations)
        self._cold, self._bound = ColdRows(shelf), bound
        self._layout = KeyedLayout(step, "@numbers", key, [one.columns()[0] for one in declarations])
        self._entry_bytes = _ENTRY_BYTES + _STATE_BYTES * len(declarations)
        self._is_in_use = False
        """Whether the cursor may point at a place, or runs are about to change: nothing goes meanwhile."""
        self._absent: set[Any] = set()
        """Keys that were asked for last and are in no run."""
        self._cleared: set[int] = set()
        """The states of which what is in runs is gone, where it is not for all."""

    @property
    def held_bytes(self) -> int:
        return len(self.entries) * self._entry_bytes

    def entry(self, key: Any) -> int:
        self._is_in_use = True
        if key not in self.entries and key not in self._absent:
            self.fetch([key])
        return super().entry(key)

    def fetch(self, keys: Iterable[Any]) -> Sequence[Any]:
        keys = keys if isinstance(keys, list) else list(keys)
        self._is_in_use = True
        if len(self._cold):
            self._bring([key for key in dict.fromkeys(keys) if key not in self.entries])
        return keys

    def _bring(self, missing: list[Any]) -> None:
        """Bring what is in runs of keys into memory."""
        if not missing:
            return
        self._clean()
        self._absent = set(missing)
        for found, rows in self._cold.take(missing, self._layout.key_column(missing)):
            keys = [missing[place] for place in found.tolist()]
            self._absent.difference_update(keys)
            self._remember(keys, rows)

    def _remember(self, keys: list[Any], rows: pa.Table) -> None:
        """Have keys in memory, with what their rows say."""
        places = self.places_of(keys)
        for state in range(len(self.values)):
            column = rows.column(f"v{state}").combine_chunks()
            is_there = column.is_valid().to_numpy(zero_copy_only=False)
            if is_there.any():
                self.put(state, places[is_there], column.drop_null().to_numpy())

    def settle(self, state: int, changed: list[Entry], size_bytes: int) -> None:
        self._is_in_use = False
        self._bound.told()
        self._bound.make_room()

    def let_go(self, size_bytes: int) -> int:
        """The oldest entries go to a run, but for those that a delta is to tell of."""
        if self._is_in_use or not self.entries:
            return 0
        self._clean()
        self._absent.clear()
        oldest = np.array(list(islice(self.entries.values(), -(-size_bytes // self._entry_bytes))), np.int64)
        is_new = [(self.marks_at(state, oldest) & NEW).astype(np.bool_) for state in range(len(self.marks))]
        places = oldest[~np.logical_or.reduce(is_new)]
        keys = list(map(self.keys.__getitem__, places.tolist()))
        columns = {f"v{state}": self._column(state, places) for state in range(len(self.values))}
        rows = pa.table({"key": self._layout.key_column(keys), **columns})
        self._give_back(places.tolist())
        try:
            self._cold.put(rows)
        except StateError:  # the disk is full, say; whoever needs room fails, and this is as it was
            self._remember(keys, rows)
            raise
        self._cold.merge()
        return len(keys) * self._entry_bytes

    def _column(self, state: int, places: Places) -> pa.Array:
        """The values of a state at places, and nulls where there is none."""
        return pa.array(self.numbers(state, places), mask=self.marks_at(state, places) < PRESENT)

    def rest(self, state: int, part: Slice | None = None) -> Iterator[tuple[pa.Array, pa.Array]]:
        self._clean()
        value = f"v{state}"
        for rows in self._cold.rows(part):
            there = rows.filter(pc.is_valid(rows[value])) if rows[value].null_count else rows
            if len(there):
                yield there["key"].combine_chunks(), there[value].combine_chunks()

    def scan(self, state: int) -> Iterator[tuple[Any, Any]]:
        yield from super().scan(state)
        for keys, values in self.rest(state):
            yield from zip(decode(keys), values.to_pylist(), strict=True)

    def scan_slice(self, state: int, part: Slice, layout: KeyedLayout) -> Iterator[tuple[Any, Any]]:
        yield from super().scan_slice(state, part, layout)
        for keys, values in self.rest(state, part):
            yield from zip(decode(keys), values.to_pylist(), strict=True)

    def clear(self, state: int) -> None:
        super().clear(state)
        if len(self._cold):
            self._cleared.add(state)
            if len(self._cleared) == len(self.values):
                self._cold.clear()
                self._cleared.clear()

    def _clean(self) -> None:
        """Take states that were cleared, where others were not, out of the runs."""
        if not self._cleared:
            return
        was_in_use, self._is_in_use = self._is_in_use, True
        cleared, self._cleared = self._cleared, set()
        runs = self._cold.rows()
        self._cold.clear()
        for rows in runs:
            values = {
                f"v{state}": pa.nulls(len(rows), rows[f"v{state}"].type) if state in cleared else rows[f"v{state}"]
                for state in range(len(self.values))
            }
            is_left = np.logical_or.reduce(
                [column.is_valid().to_numpy(zero_copy_only=False) for column in values.values()]
            )
            self._cold.put(pa.table({"key": rows["key"], **values}).filter(pa.array(is_left)))
        self._is_in_use = was_in_use
