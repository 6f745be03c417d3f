"""Folders on the local disk that nobody trusts after the process that made them.

A folder is removed when it is closed, and at the end of its process. Of a process that was killed the next one on the
same host finds it: the lock in it is free then.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import socket
import tempfile
from pathlib import Path

_LOCK = "lock"


class Scratch:
    """A new folder for something, under `parent` or where temporary files go.

    No other process or host has one of the same name.
    """

    def __init__(self, what: str, parent: Path | None = None) -> None:
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        prefix = f"headwater-{what}-{socket.gethostname()}-"
        _remove_abandoned(parent, prefix)
        self.path = Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=parent))
        self._lock = (self.path / f"{_LOCK}.new").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        (self.path / f"{_LOCK}.new").rename(self.path / _LOCK)  # nobody finds it before it is locked
        self._owner = os.getpid()
        atexit.register(self.close)

    def close(self) -> None:
        """Remove the folder; a process that was forked from its owner leaves it alone."""
        atexit.unregister(self.close)
        if os.getpid() == self._owner:
            shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _remove_abandoned(parent: Path, prefix: str) -> None:
    for folder in parent.glob(f"{prefix}*"):
        try:
            with (folder / _LOCK).open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except FileNotFoundError:  # it is being made, or somebody has written to it after it was removed
            if not _is_alive(folder.name.removeprefix(prefix).partition("-")[0]):
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # its process lives, or another one removes it
            continue


def _is_alive(number: str) -> bool:
    """Whether there is a process of this number; what is none is left alone."""
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError, ValueError):
        return True
    return True
