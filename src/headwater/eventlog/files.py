"""Files as the log needs them: descriptors that close with their owner, names by offset, atomic replacement, locks."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
"""What the system says where this user may not write."""
_SEGMENT = ".segment"
_INDEX = ".index"
_DIGITS = 20  # a signed 64-bit offset has at most 19: names sort as numbers
_NAME = re.compile(rf"[0-9]{{{_DIGITS}}}{re.escape(_SEGMENT)}")


class OpenFile:
    """An open file read and written by position. It closes when nobody refers to it any more."""

    __slots__ = ("fd", "path")

    def __init__(self, path: Path, flags: int = os.O_RDONLY) -> None:
        self.fd = -1
        self.path = path
        self.fd = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)

    def __reduce__(self) -> str:
        raise TypeError(f"an open file cannot be pickled; reopen {self.path} in the other process")

    def size(self) -> int:
        """Return the file's length now."""
        return os.fstat(self.fd).st_size

    def removed(self) -> bool:
        """Whether the file has been deleted or replaced since it was opened."""
        return os.fstat(self.fd).st_nlink == 0

    def read_at(self, position: int, count: int) -> bytes:
        """Up to `count` bytes at `position`; fewer only at the end of the file."""
        data = os.pread(self.fd, count, position)
        if len(data) == count or not data:
            return data
        parts = [data]
        done = len(data)
        while done < count and (data := os.pread(self.fd, count - done, position + done)):
            parts.append(data)
            done += len(data)
        return b"".join(parts)

    def write_at(self, position: int, header: bytes, body: bytes | pa.Buffer) -> None:
        """Write both parts at `position`, in one system call where the kernel takes all of it."""
        total = len(header) + len(body)
        done = os.pwritev(self.fd, [header, body], position)
        while done < total:
            rest = memoryview(body)[done - len(header) :] if done >= len(header) else header[done:] + bytes(body)
            done += os.pwrite(self.fd, rest, position + done)


def segment_path(folder: Path, base: int) -> Path:
    """Return the file of the segment whose first row has offset `base`."""
    return folder / f"{base:0{_DIGITS}d}{_SEGMENT}"


def index_path(folder: Path, base: int) -> Path:
    """Return the sparse index beside a segment."""
    return folder / f"{base:0{_DIGITS}d}{_INDEX}"


def segment_bases(folder: Path) -> tuple[list[int], list[str]]:
    """Return the base offsets of all segments in `folder`, ascending; and the names of files that only look like some."""
    names = [name for name in os.listdir(folder) if name.endswith(_SEGMENT)]  # noqa: PTH208 - no Path per name: readers list often
    strays = sorted(name for name in names if not _NAME.fullmatch(name))
    return sorted(int(name.removesuffix(_SEGMENT)) for name in names if not strays), strays


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the exclusive lock on `path`.

    The file is opened anew each time: two threads exclude each other as two processes do, and a forked child does not
    share its parent's lock. The kernel frees the lock when the holder dies.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)
    finally:
        os.close(fd)
