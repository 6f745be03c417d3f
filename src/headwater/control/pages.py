"""The history of a job's epochs, a page at a time, however long it is."""

from __future__ import annotations

import os
import threading
from array import array
from pathlib import Path
from typing import BinaryIO

from headwater.errors import JobFolderDamaged
from headwater.job.checkpoints.history import EpochLine

_BLOCK_BYTES = 1 << 20
_KNOWN_LINES = 512
"""Of lines that were read, so many are not read again: whoever looks at a job looks at its newest epochs."""


class EpochPages:
    """Knows where each line of the history is; what it has looked through it does not look through again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._ends = array("Q")
        """Where each whole line ends, after its line feed."""
        self._inode, self._seen = -1, 0
        self._known: dict[int, EpochLine | None] = {}
        """By number, the lines that were read; None for one that a crash has torn."""

    def page(self, skip: int, limit: int) -> tuple[int, list[EpochLine]]:
        """How many lines there are, and of those before the newest `skip` the newest `limit`, newest first.

        An epoch that was computed twice within a page is there once, as it was computed last.
        """
        with self._lock:
            try:
                with self._path.open("rb") as file:
                    self._look_through(file)
                    total = len(self._ends)
                    numbers = range(max(total - skip - limit, 0), max(total - skip, 0))
                    lines = [self._line(file, number) for number in numbers]
            except FileNotFoundError:
                return 0, []
        found = {line.epoch: line for line in lines if line is not None}
        return total, [found[epoch] for epoch in sorted(found, reverse=True)]

    def _line(self, file: BinaryIO, number: int) -> EpochLine | None:
        if number not in self._known:
            start = self._ends[number - 1] if number else 0
            file.seek(start)
            text = file.read(self._ends[number] - start)
            try:
                line = EpochLine.from_text(text.decode(errors="replace"), str(self._path))
            except JobFolderDamaged:
                line = None
            if len(self._known) >= _KNOWN_LINES:
                del self._known[next(iter(self._known))]
            self._known[number] = line
        return self._known[number]

    def _look_through(self, file: BinaryIO) -> None:
        about = os.fstat(file.fileno())
        if about.st_ino != self._inode or about.st_size < self._seen:  # the driver has written a shorter one
            self._forget()
            self._inode = about.st_ino
        file.seek(self._seen)
        while block := file.read(_BLOCK_BYTES):
            at = block.find(b"\n")
            while at >= 0:
                self._ends.append(self._seen + at + 1)
                at = block.find(b"\n", at + 1)
            self._seen += len(block)
