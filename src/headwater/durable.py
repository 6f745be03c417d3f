"""Small durable writes on a file system: whole files by rename, single lines by append, one process at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PRIVATE_FOLDER = 0o700
"""The mode of a folder that is its owner's alone."""


def write_atomically(path: Path, content: bytes, *, private: bool = False) -> None:
    """Put `content` at `path` so that a reader, also after a crash, finds the old file or the new one and nothing else.

    A `private` file is its owner's alone from the moment that it is there.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb", opener=_open_private if private else None) as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def append_line(path: Path, line: str) -> None:
    """Add one line; a line torn by an earlier crash is cut off first."""
    append_lines(path, [line])


def append_lines(path: Path, lines: Sequence[str]) -> None:
    """Add lines, of which the first ones are there after a crash, or all; one torn by an earlier crash is cut off first."""
    with path.open("a+b") as out:
        size = out.seek(0, os.SEEK_END)
        whole = size
        while whole > 0:
            start = max(0, whole - 4096)
            out.seek(start)
            newline = out.read(whole - start).rfind(b"\n")
            if newline >= 0:
                whole = start + newline + 1
                break
            whole = start
        if whole != size:
            out.truncate(whole)
        out.write("".join(f"{line}\n" for line in lines).encode())
        out.flush()
        os.fsync(out.fileno())


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """Wait until no other process or thread is inside with the same file; it goes on when this one leaves or dies."""
    with lock.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
