"""Notes: how the driver tells the planner, which is another process, what came of the epoch it has just computed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headwater.durable import write_atomically
from headwater.errors import JobError


class EpochNote:
    """A file with one value and the epoch it is of."""

    def __init__(self, path: Path, *, is_needed: bool) -> None:
        """A note that is not needed is neither written nor read."""
        self._path, self._is_needed = path, is_needed

    def write(self, epoch: int, value: Any) -> None:
        """Replace the file, before the epoch is committed."""
        if self._is_needed:
            write_atomically(self._path, json.dumps({"epoch": epoch, "value": value}, sort_keys=True).encode())

    def read(self, next_epoch: int, default: Any) -> Any:
        """What was written by an epoch before `next_epoch`; a file from after it belongs to a history that is gone."""
        if not self._is_needed or not self._path.exists():
            return default
        try:
            content = json.loads(self._path.read_text())
            return content["value"] if content["epoch"] < next_epoch else default
        except (OSError, ValueError, KeyError) as error:
            raise JobError.corrupt(str(self._path), str(error)) from None
