"""How long the parts of epochs took: a line for each of the newest that were published, in a file of the job folder.

It is there to be looked at, so lines are not forced to the disk, and a full disk is none of its business.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headwater.durable import write_atomically
from headwater.errors import JobFolderDamaged
from headwater.versioned import Versioned

COMPUTE, MANIFEST, COMMIT, PUBLISH, CLEAN = "compute", "manifest", "commit", "publish", "clean"
"""The parts of an epoch, in their order; a job that is at-least-once publishes before it commits."""
_KEPT_LINES = 2_000
"""So many are left when the file has twice as many: some hundred kilobytes."""
_LINE_BYTES = 256
"""More than a line has."""


@dataclass(frozen=True)
class EpochDurations(Versioned):
    """How long the parts of an epoch took in its driver."""

    epoch: int
    published_ms: int
    """When every sink had it."""
    phases_ms: Mapping[str, float]


class DurationsFile:
    """The driver's side: adds a line for each epoch, and now and then drops the oldest ones."""

    def __init__(self, path: Path, now_s: Callable[[], float] = time.time) -> None:
        self._path, self._now_s = path, now_s
        self._room = 0

    def add(self, epoch: int, phases: Mapping[str, float]) -> None:
        """Note an epoch that every sink has; phases are in seconds."""
        in_ms = {name: round(seconds * 1000, 1) for name, seconds in phases.items()}
        line = EpochDurations(epoch, int(self._now_s() * 1000), in_ms).to_text()
        with suppress(OSError):
            if not self._room:
                self._prune()
            with self._path.open("ab") as out:
                out.write(f"{line}\n".encode())
            self._room -= 1

    def _prune(self) -> None:
        lines = _last_lines(self._path, _KEPT_LINES)
        if lines:
            write_atomically(self._path, b"".join(line + b"\n" for line in lines))
        self._room = _KEPT_LINES


def read_durations(path: Path) -> dict[int, EpochDurations]:
    """The newest lines by epoch; one that a crash has torn is passed over."""
    found = {}
    for text in _last_lines(path, 2 * _KEPT_LINES):
        with suppress(JobFolderDamaged):
            one = EpochDurations.from_text(text.decode(errors="replace"), str(path))
            found[one.epoch] = one
    return found


def _last_lines(path: Path, most: int) -> list[bytes]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most * _LINE_BYTES))
            return file.read().split(b"\n")[:-1][-most:]
    except FileNotFoundError:
        return []
