"""Notes: how the driver tells the planner, which is another process, what came of the epoch it has just computed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.errors import JobError
from headwater.shapes import fits
from headwater.versioned import Versioned


@dataclass(frozen=True)
class _Note(Versioned):
    epoch: int
    value: Any


class EpochNote:
    """A file with one value and the epoch it is of."""

    def __init__(self, path: Path, kind: Any, *, is_needed: bool) -> None:
        """The value is of a kind, as fields are annotated. A note that is not needed is neither written nor read."""
        self._path, self._kind, self._is_needed = path, kind, is_needed

    def write(self, epoch: int, value: Any) -> None:
        """Replace the file, before the epoch is committed."""
        if self._is_needed:
            _Note(epoch, value).write(self._path)

    def read(self, next_epoch: int, default: Any) -> Any:
        """What was written by an epoch before `next_epoch`; a file from after it belongs to a history that is gone."""
        note = _Note.read_if_there(self._path) if self._is_needed else None
        if note is None or note.epoch >= next_epoch:
            return default
        if not fits(note.value, self._kind):
            raise JobError.corrupt(str(self._path), f"its value is a {type(note.value).__name__}")
        return note.value
