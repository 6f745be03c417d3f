"""A shelf that lets columns go to disk, those that were put on it first, when the worker holds more than it may."""

from __future__ import annotations

from itertools import count
from weakref import ref

from headwater.state.disk.bound import Bound
from headwater.state.disk.files import ArrowFiles
from headwater.state.shelf import MOST_RUN_BYTES, Piece

_RUN = 0.125
"""The part of a worker's bound that a run may take. A merge has twice as much in memory for a while."""
_LEAST_RUN_BYTES = 1 << 20
"""Smaller runs would be too many."""


class DiskShelf:
    """The shelf of one step on one subtask. It counts what it has in memory; what is mapped, the system takes care of."""

    def __init__(self, files: ArrowFiles, bound: Bound) -> None:
        self._files, self._bound = files, bound
        self.most_bytes = min(max(int(bound.size_bytes * _RUN), _LEAST_RUN_BYTES), MOST_RUN_BYTES)
        self.held_bytes = 0
        self._numbers = count()
        self._held: dict[int, tuple[ref[Piece], int]] = {}
        """The pieces in memory, the oldest first, and what they take."""

    def put(self, piece: Piece) -> None:
        number = next(self._numbers)
        size = sum(table.nbytes for table in piece.columns())
        self._held[number] = (ref(piece, lambda _: self._forget(number)), size)
        self.held_bytes += size
        self._bound.make_room()

    def _forget(self, number: int) -> None:
        """A piece is not in memory any more."""
        if (held := self._held.pop(number, None)) is not None:
            self.held_bytes -= held[1]

    def let_go(self, size_bytes: int) -> int:
        """Write the oldest pieces, so that what is left is that much smaller. A delta has what it needs."""
        before, due = self.held_bytes, []
        for number, (held, size) in list(self._held.items()):  # the collector may free some meanwhile
            if size_bytes <= 0:
                break
            if (piece := held()) is not None:
                due.append((number, piece, piece.columns()))
                size_bytes -= size
        moved = iter(self._files.move([table for _, _, columns in due for table in columns]) if due else ())
        for number, piece, columns in due:
            piece.moved([next(moved) for _ in columns])
            self._forget(number)
        return before - self.held_bytes
