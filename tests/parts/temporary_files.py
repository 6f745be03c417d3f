"""Where tests put their files: into memory, if there is room. Most of what they would wait for is a disk that syncs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import psutil

_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 4 << 30
"""All tests take less than a tenth of it."""


def use() -> None:
    """Have this process and its children put temporary files there, unless TMPDIR says where."""
    if "TMPDIR" not in os.environ and _has_room(_MEMORY):
        os.environ["TMPDIR"] = str(_MEMORY)
        tempfile.tempdir = None  # it is looked for anew


def _has_room(folder: Path) -> bool:
    """Whether files can be made there, and run, as Spark's workers are."""
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(folder)
    free = min(found.f_bavail * found.f_frsize, psutil.virtual_memory().available)
    return free >= _ROOM_BYTES and not found.f_flag & os.ST_NOEXEC
