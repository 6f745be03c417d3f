"""Notes: how the driver tells the planner, which is another process, what came of the epoch it has just computed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.versioned import Versioned


@dataclass(frozen=True)
class _Note(Versioned):
    epoch: int
    value: Any


class EpochNote:
    """A file with one value and the epoch it is of."""

    def __init__(self, path: Path, *, is_needed: bool) -> None:
        """A note that is not needed is neither written nor read."""
        self._path, self._is_needed = path, is_needed

    def write(self, epoch: int, value: Any) -> None:
        """Replace the file, before the epoch is committed."""
        if self._is_needed:
            _Note(epoch, value).write(self._path)

    def read(self, next_epoch: int, default: Any) -> Any:
        """What was written by an epoch before `next_epoch`; a file from after it belongs to a history that is gone."""
        note = _Note.read_if_there(self._path) if self._is_needed else None
        return default if note is None or note.epoch >= next_epoch else note.value
