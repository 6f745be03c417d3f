"""Slices: all state of a subtask cut into parts by hashes, so that a base can be written a part at a time.

Most state is cut by keys, windows by slices of time. Into which part a row falls is a matter of the format of stored state,
as the hash is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.state.keys import Hashes, hash_keys
from headwater.state.table import StateTable

MAX_PARTS = 256
"""So many can be told apart by the first byte of a hash."""
_PART_ENTRIES = 65_536
"""About how many entries, or elements of them, a part has: an epoch that writes one takes a tenth of a second longer."""
_HASH_BITS = 64
FORM = 4
"""How bases are cut. Each table says since which form it is cut: in form 1 all rows of joins and slices of windows were in the
first part, in form 2 all timers still were, in form 3 all sessions."""


def first_bytes(keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint8]:
    """The first byte of the hash of each key."""
    return _first_bytes_of(hash_keys(keys))


def first_byte(hashed: int) -> int:
    """The first byte of one hash."""
    return hashed >> _HASH_BITS - 8


def _first_bytes_of(hashes: Hashes) -> npt.NDArray[np.uint8]:
    return (hashes >> np.uint64(_HASH_BITS - 8)).astype(np.uint8)


def parts_for(entries: int) -> int:
    """In how many parts so many entries are written: a power of two."""
    count = 1
    while count < MAX_PARTS and entries > count * _PART_ENTRIES:
        count *= 2
    return count


@dataclass(frozen=True)
class Slice:
    """The parts from `first` up to `stop`, of so many."""

    first: int
    stop: int
    count: int
    form: int = FORM

    def bytes(self) -> range:
        """The first bytes of hashes that fall into it."""
        width = MAX_PARTS // self.count
        return range(self.first * width, self.stop * width)

    def has(self, keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Which keys fall into it."""
        return self.has_hashes(hash_keys(keys))

    def has_hashes(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Which hashes fall into it."""
        found, wanted = _first_bytes_of(hashes), self.bytes()
        return (found >= wanted.start) & (found < wanted.stop)

    def within(self, in_order: Hashes) -> tuple[int, int]:
        """Where those begin and end, of hashes in order, that fall into it."""
        shift, wanted = _HASH_BITS - 8, self.bytes()
        first = int(np.searchsorted(in_order, np.uint64(wanted.start << shift)))
        last = (
            len(in_order)
            if wanted.stop == MAX_PARTS
            else int(np.searchsorted(in_order, np.uint64(wanted.stop << shift)))
        )
        return first, last

    def before(self) -> Slice:
        """The parts before it."""
        return Slice(0, self.first, self.count, self.form)

    def cuts(self, table: StateTable) -> TypeGuard[SlicedTable]:
        """Whether a table is cut into these parts. Of other tables the first part has everything."""
        return isinstance(table, SlicedTable) and self.form >= table.cut_since

    def rows_of(self, table: SlicedTable, rows: pa.Table) -> pa.Table:
        """The rows of a dump or of changes that fall into it, and maybe some that speak of nothing here."""
        is_in = table.falls_into(rows, self) if isinstance(table, CutTable) else self.has(rows["key"])
        return rows.filter(pa.array(is_in))


@runtime_checkable
class SlicedTable(StateTable, Protocol):
    """A table that is cut into parts: by the column `key` of its rows, of dumps and changes, unless it says otherwise."""

    cut_since: int
    """The first form in which it is cut."""

    def dump_slice(self, part: Slice) -> pa.Table:
        """The entries of keys that fall into a slice, as puts."""

    def load(self, dumped: pa.Table) -> None:
        """Take over what `dump_slice` of another copy gave; of these keys there is nothing here."""


@runtime_checkable
class CutTable(SlicedTable, Protocol):
    """A table that says itself into which parts its rows fall."""

    def falls_into(self, rows: pa.Table, part: Slice) -> npt.NDArray[np.bool_]:
        """Which rows of a dump or of changes fall into a slice. Of rows that remove what is not there, any may."""
