"""Slices: all keys of a subtask cut into parts by their hashes, so that a base can be written a part at a time.

Into which part a key falls is a matter of the format of stored state, as the hash is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.state.keys import hash_keys
from headwater.state.table import StateTable

MAX_PARTS = 256
"""So many can be told apart by the first byte of a hash."""
_PART_ENTRIES = 65_536
"""About how many entries a part has: an epoch that writes one takes a tenth of a second longer."""
_HASH_BITS = 64


def first_bytes(keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint8]:
    """The first byte of the hash of each key."""
    return (hash_keys(keys) >> np.uint64(_HASH_BITS - 8)).astype(np.uint8)


def parts_for(entries: int) -> int:
    """In how many parts so many entries are written: a power of two."""
    count = 1
    while count < MAX_PARTS and entries > count * _PART_ENTRIES:
        count *= 2
    return count


@dataclass(frozen=True, eq=False)
class Slice:
    """The parts from `first` up to `stop`, of so many."""

    first: int
    stop: int
    count: int

    def bytes(self) -> range:
        """The first bytes of hashes that fall into it."""
        width = MAX_PARTS // self.count
        return range(self.first * width, self.stop * width)

    def has(self, keys: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Which keys fall into it."""
        found, wanted = first_bytes(keys), self.bytes()
        return (found >= wanted.start) & (found < wanted.stop)


@runtime_checkable
class SlicedTable(StateTable, Protocol):
    """A table whose rows, of dumps and changes, have a column `key`. Of other tables the first part has everything."""

    def dump_slice(self, part: Slice) -> pa.Table:
        """The entries of keys that fall into a slice, as puts."""

    def load(self, dumped: pa.Table) -> None:
        """Take over what `dump_slice` of another copy gave; of these keys there is nothing here."""
