"""How much a file becomes when it is unpacked, which has a limit."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

_PACKED = (".gz", ".zst", ".bz2", ".lz4")
_BLOCK_BYTES = 1 << 20
_MOST_TIMES = 100
"""How much larger than itself a file may become beyond the limit: logs become 10 to 30 times as large."""


class Unpacked:
    """What has become of a file: no more than a limit, or than so many times the file's own size."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self._most = max(limit_bytes, _MOST_TIMES * path.stat().st_size)
        self._bytes = 0

    def add(self, count: int) -> None:
        """Count what was unpacked; `ValueError` when it is too much."""
        self._bytes += count
        if self._bytes > self._most:
            raise ValueError(
                f"it unpacks to more than {self._most:,} bytes; if that is right, raise max_unpacked_bytes="
            )


def opened(path: Path) -> pa.NativeFile:
    """A file to read from its beginning; one whose name ends in .gz, .zst or .bz2 as what is packed in it."""
    return pa.input_stream(str(path), compression="detect")


@contextmanager
def unpacked(path: Path, most: Unpacked) -> Iterator[pa.NativeFile]:
    """The same; of what is packed no more than may be is unpacked."""
    with opened(path) as source:
        if path.suffix not in _PACKED:
            yield source
            return
        with pa.PythonFile(_Counting(source, most), mode="r") as counted:
            yield counted


class _Counting(io.RawIOBase):
    """A packed file as what is in it, read in pieces that are counted."""

    def __init__(self, source: pa.NativeFile, most: Unpacked) -> None:
        self._source, self._most = source, most

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        # Not `read`: where that fails, pyarrow keeps the room that it had made for the block.
        piece: bytes = self._source.read_buffer(_BLOCK_BYTES if size < 0 else size).to_pybytes()
        self._most.add(len(piece))
        return piece
