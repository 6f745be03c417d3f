"""Shelves: where columns are kept that are written once, as sorted runs of rows, accumulators by key, and indexes over them.

In memory a shelf does nothing. On disk it lets the columns that were put on it first go to files when a worker holds too
much (`state/disk/shelf.py`); whoever has them reads them from there without noticing.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy.typing as npt
import pyarrow as pa

MOST_RUN_BYTES = 16 << 20
"""A merge of twice as much takes a part of an epoch."""


class Piece(Protocol):
    """Columns that are moved together. They go when nobody has the piece any more."""

    def columns(self) -> list[pa.Table]:
        """What it holds."""

    def moved(self, columns: list[pa.Table]) -> None:
        """Hold this from now on, which has the same values."""


class Shelf(Protocol):
    """Holds pieces for one step on one subtask."""

    most_bytes: int
    """Runs are not made larger than that by merging: a merge is done within an epoch, and has its rows in memory."""

    def put(self, piece: Piece) -> None:
        """Take care of a piece, which is not written to any more."""


class MemoryShelf:
    """Leaves everything where it is."""

    most_bytes = MOST_RUN_BYTES

    def put(self, piece: Piece) -> None:
        """Memory has room, or the job fails."""


IN_MEMORY = MemoryShelf()


class KeptTable:
    """A table on a shelf."""

    __slots__ = ("__weakref__", "table")

    def __init__(self, table: pa.Table, shelf: Shelf) -> None:
        self.table = table
        shelf.put(self)

    def __len__(self) -> int:
        return len(self.table)

    def columns(self) -> list[pa.Table]:
        return [self.table]

    def moved(self, columns: list[pa.Table]) -> None:
        (self.table,) = columns


class KeptArrays:
    """Arrays of numbers on a shelf."""

    __slots__ = ("__weakref__", "arrays")

    def __init__(self, shelf: Shelf, *arrays: npt.NDArray[Any]) -> None:
        self.arrays = arrays
        shelf.put(self)

    def columns(self) -> list[pa.Table]:
        return [pa.table([pa.array(array)], names=["values"]) for array in self.arrays]

    def moved(self, columns: list[pa.Table]) -> None:
        self.arrays = tuple(
            array if not len(array) else table.column(0).chunk(0).to_numpy()
            for array, table in zip(self.arrays, columns, strict=True)
        )
