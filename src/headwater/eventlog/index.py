"""The sparse index of a segment: (offset, position) of some appends, to start a walk near an offset.

It is a hint and nothing more. Every entry carries its checksum and is believed only if a frame with that offset stands
at that position; a lost, stale or damaged index costs time, never rows. An append gets an entry when it crosses a
boundary of `STRIDE_BYTES` in its segment: a rule without memory, so that writers taking turns need not agree on
anything, and a rebuilt index equals the first.
"""

from __future__ import annotations

import os
import struct
import zlib
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from headwater.eventlog.files import OpenFile
from headwater.eventlog.frame import HEADER_BYTES, BadFrame, parse_header

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

STRIDE_BYTES = 64 * 1024
"""At most some 600 headers (small appends) are walked from an entry to a row: under a millisecond."""

_ENTRY = struct.Struct("<qqII")


class Mark(NamedTuple):
    """Where an append begins."""

    position: int
    offset: int


def earns_entry(start: int, end: int) -> bool:
    """Whether an append in bytes [start, end) of its segment is put in the index."""
    return start // STRIDE_BYTES != end // STRIDE_BYTES


def add_entries(path: Path, marks: Iterable[Mark]) -> bool:
    """Append entries; the caller holds the partition's lock. False if the disk refused: the rows are safe without."""
    data = b"".join(_pack(mark) for mark in marks)
    if not data:
        return True
    try:
        file = OpenFile(path, os.O_RDWR | os.O_CREAT)
        whole = file.size() // _ENTRY.size * _ENTRY.size  # a torn last entry is written over
        os.pwrite(file.fd, data, whole)
    except OSError:
        return False
    return True


def nearest(path: Path, segment: OpenFile, offset: int | None) -> Mark | None:
    """Return the last proven entry at or before `offset` (None: of all); None if there is none to trust."""
    try:
        file = OpenFile(path)
    except OSError:  # not there, or not for this user to read
        return None
    count = file.size() // _ENTRY.size
    if offset is None:
        at = count - 1
        data = file.read_at(max(at, 0) * _ENTRY.size, _ENTRY.size)
        mark = _unpack(data, 0) if at >= 0 else None
    else:
        data = file.read_at(0, count * _ENTRY.size)
        count = len(data) // _ENTRY.size
        wanted = offset
        at = bisect_right(range(count), wanted, key=lambda i: int(_ENTRY.unpack_from(data, i * _ENTRY.size)[1])) - 1
        mark = _unpack(data, at) if at >= 0 else None
    return mark if mark is not None and _proven(segment, mark) and (offset is None or mark.offset <= offset) else None


def _pack(mark: Mark) -> bytes:
    return _ENTRY.pack(mark.position, mark.offset, _checksum(mark), 0)


def _unpack(data: bytes, at: int) -> Mark | None:
    if len(data) < (at + 1) * _ENTRY.size:
        return None
    position, offset, crc, _ = _ENTRY.unpack_from(data, at * _ENTRY.size)
    mark = Mark(position, offset)
    return mark if crc == _checksum(mark) else None


def _checksum(mark: Mark) -> int:
    return zlib.crc32(struct.pack("<qq", *mark))


def _proven(segment: OpenFile, mark: Mark) -> bool:
    try:
        header = parse_header(segment.read_at(mark.position, HEADER_BYTES))
    except BadFrame:
        return False
    return header.starts_group and header.first_offset == mark.offset
