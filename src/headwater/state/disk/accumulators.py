"""Accumulators on disk, by columns as in memory: what epochs use is there, the rest in sorted runs in files.

A key is in memory or in a run, not in both. The keys of a batch are brought into memory at once; the oldest ones go to a run
when the worker holds too much. That is between epochs: what changed must be told from memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.rows import decode
from headwater.errors import StateError
from headwater.state.columns import Places
from headwater.state.disk.bound import Bound
from headwater.state.disk.cold import ColdRows
from headwater.state.kept_columns import Fold, KeptByColumns
from headwater.state.shelf import Shelf
from headwater.state.slices import Slice
from headwater.state.table import KeyedLayout, StateTable, sorted_by_key

_ENTRY_BYTES, _VALUE_BYTES = 160, 16
"""What Python takes for a key with its places in a dictionary and a list; and for each number of it."""


class DiskAccumulators(KeptByColumns):
    """Accumulators of which those used lately are in memory, and their table."""

    def __init__(self, layout: KeyedLayout, schema: pa.Schema, shelf: Shelf, bound: Bound) -> None:
        self._cold, self._bound = ColdRows(shelf), bound
        self._entry_bytes = _ENTRY_BYTES + _VALUE_BYTES * len(schema)
        self._is_small = all(pa.types.is_primitive(field.type) for field in schema)
        super().__init__(layout, schema)

    @property
    def table(self) -> StateTable:
        return self

    def clear_all(self) -> None:
        self._cold.clear()
        self._clear_memory()

    def _clear_memory(self) -> None:
        super().clear_all()
        self._fetched: list[Places] = []
        """The places of keys that came from disk since the last delta."""
        self._value_bytes = 0
        """What values take that are larger than numbers."""

    @property
    def held_bytes(self) -> int:
        return len(self._places) * self._entry_bytes + self._value_bytes

    def let_go(self, size_bytes: int) -> int:
        """The oldest keys go to a run, or none while a delta is to come."""
        before = self.held_bytes
        if self._written or self._fetched or not self._places:
            return 0
        count = min(-(-size_bytes * len(self._places) // before), len(self._places))
        keys = list(islice(self._places, count))
        places = np.fromiter(map(self._places.pop, keys), np.int64, count)
        rows = self._rows(places)
        value_bytes = self._value_bytes * count // (count + len(self._places))  # as if all had the same
        if self._places:
            self._give_back(places)
            self._value_bytes -= value_bytes
        else:
            self._clear_memory()
        try:
            self._cold.put(rows)
        except StateError:  # the disk is full, say; whoever needs room fails, and this is as it was
            super().apply(rows)
            self._value_bytes += value_bytes
            raise
        self._cold.merge()
        return before - self.held_bytes

    def _give_back(self, places: Places) -> None:
        """The keys of these places are kept elsewhere."""
        if not self._is_small:
            self._empty(places)
        self._free += places.tolist()

    def _fetch(self, keys: Sequence[Any]) -> None:
        """Bring what is on disk of keys into memory."""
        if not len(self._cold):
            return
        missing = [key for key in keys if key not in self._places and key not in self._removed]
        if not missing:
            return
        for places, rows in self._cold.take(missing, self._layout.key_column(missing)):
            at = np.asarray(self._add_keys([missing[place] for place in places.tolist()]), np.int64)
            self._put(at, rows.column("value").flatten())
            self._fetched.append(at)
            self._charge(rows)

    def update(self, keys: Sequence[Any], fold: Fold) -> pa.Table:
        self._fetch(keys)
        return super().update(keys, fold)

    def has(self, keys: Sequence[Any]) -> npt.NDArray[np.bool_]:
        self._fetch(keys)
        return super().has(keys)

    def remove(self, keys: Sequence[Any]) -> None:
        self._fetch(keys)
        super().remove(keys)

    def last(self, keys: Sequence[Any]) -> npt.NDArray[np.int64]:
        self._fetch(keys)
        return super().last(keys)

    def _are_known(self, places: Places) -> npt.NDArray[np.bool_]:
        known = super()._are_known(places)
        return known | np.isin(places, np.concatenate(self._fetched)) if self._fetched else known

    def changes(self) -> pa.Table | None:
        changes = super().changes()
        self.forget_changes()  # also that keys were fetched, where none was written
        if changes is not None:
            self._charge(changes)
        self._make_room()
        return changes

    def _charge(self, rows: pa.Table) -> None:
        """These came into memory. What is there already is charged again when it is written: nobody knows its size."""
        self._value_bytes += 0 if self._is_small else rows.nbytes

    def forget_changes(self) -> None:
        super().forget_changes()
        self._fetched = []

    def _make_room(self) -> None:
        self._bound.told()
        self._bound.make_room()

    def dump(self) -> pa.Table:
        return sorted_by_key(pa.concat_tables([super().dump(), *self._cold.rows()]))

    def dump_slice(self, part: Slice) -> pa.Table:
        return sorted_by_key(pa.concat_tables([super().dump_slice(part), *self._cold.rows(part)]))

    def apply(self, changes: pa.Table) -> None:
        self._fetch(list(dict.fromkeys(decode(changes["key"]))))
        self.load(changes)

    def load(self, dumped: pa.Table) -> None:
        """Goes to memory without a look at what is on disk."""
        super().apply(dumped)
        self._charge(dumped)
        self._make_room()

    def __len__(self) -> int:
        return super().__len__() + len(self._cold)
