"""The lock of a job folder: one process at a time holds it, and everybody can see which one."""

from __future__ import annotations

import fcntl
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from headwater.errors import JobError

_LOCKS = Path("/proc/locks")


@dataclass(frozen=True)
class Owner:
    """A process that runs a job."""

    pid: int
    host: str

    def __str__(self) -> str:
        return f"{self.pid} on {self.host}"

    @classmethod
    def this_process(cls) -> Owner:
        return cls(os.getpid(), socket.gethostname())

    @classmethod
    def of(cls, text: str) -> Owner | None:
        """The one that a lock's file names."""
        pid, _, host = text.partition(" on ")
        return cls(int(pid), host) if pid.isdecimal() and host else None


def take(lock: Path) -> TextIO:
    """Hold the lock until the file is closed, or the process ends; refuses when another one holds it."""
    held = lock.open("a+")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.seek(0)
        owner = held.read()
        held.close()
        is_own = owner == str(Owner.this_process())
        raise JobError.folder_in_use(str(lock.parent), owner, is_own=is_own) from None
    held.truncate(0)
    held.write(str(Owner.this_process()))
    held.flush()
    return held


def give_up(held: TextIO) -> None:
    """Let another process have it; nobody is named any more."""
    if not held.closed:
        held.truncate(0)
        held.close()


def owner_of(lock: Path) -> Owner | None:
    """Who holds the lock, without taking it even for a moment: a job that starts just then finds it free.

    Of a process on another host nothing is known but that it did not give the lock up.
    """
    try:
        owner, inode = Owner.of(lock.read_text()), lock.stat().st_ino
    except (OSError, ValueError):
        return None
    if owner is None or owner.host != socket.gethostname():
        return owner
    return owner if _is_held(inode, owner.pid) else None


def _is_held(inode: int, pid: int) -> bool:
    """Whether a process of this host holds a file's lock; where the system does not list locks, whether it is alive."""
    try:
        held = [line.split() for line in _LOCKS.read_text().splitlines()]
    except OSError:
        return _is_alive(pid)
    return any(
        one[1] == "FLOCK" and one[-3].rpartition(":")[2] == str(inode) and int(one[4]) in (pid, 0)  # 0: of a container
        for one in held
        if len(one) == 8
    )


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
