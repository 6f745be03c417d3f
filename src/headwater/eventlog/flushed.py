"""How much of a partition was flushed: a small file beside its segments, by which damage is told from a torn end.

    magic 4s | version u16 | zero u16 | segment's base i64 | position i64 | offset i64 | crc32 u32

It is written after a segment was synced and is not synced itself. So it may be behind, or gone after power loss, and
then less is known to be flushed; it is never ahead of what a disk was told to keep. All numbers are little-endian.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

from headwater.durable import sync_folder
from headwater.eventlog.errors import LogFormatUnknown
from headwater.eventlog.files import OpenFile

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME = "flushed"
VERSION = 1
_MAGIC = b"HWEF"
_FIELDS = struct.Struct("<4sHHqqq")
_CHECK = struct.Struct("<I")
_SIZE = _FIELDS.size + _CHECK.size


class Flushed(NamedTuple):
    """Everything before `position` of the segment that begins with offset `base` was flushed. Later ones are greater."""

    base: int
    position: int
    offset: int
    """Of the row that follows."""


def read_flushed(folder: Path) -> Flushed | None:
    """Return what is known to be flushed; None if nothing is."""
    try:
        file = OpenFile(folder / FILE_NAME)
    except FileNotFoundError:
        return None
    return _read(file)


def advance_flushed(folder: Path, flushed: Flushed) -> bool:
    """Say that so much is flushed, unless more is; the caller holds the partition's lock.

    False if the disk refused: what was flushed is safe without.
    """
    try:
        file = OpenFile(folder / FILE_NAME, os.O_RDWR | os.O_CREAT)
        known = _read(file)
        if known is None or known < flushed:
            fields = _FIELDS.pack(_MAGIC, VERSION, 0, *flushed)
            os.pwrite(file.fd, fields + _CHECK.pack(zlib.crc32(fields)), 0)
    except OSError:
        return False
    return True


def forget_flushed(folder: Path) -> None:
    """Say, for good, that nothing is known to be flushed: rows are about to be given up."""
    (folder / FILE_NAME).unlink(missing_ok=True)
    sync_folder(folder)


def _read(file: OpenFile) -> Flushed | None:
    data = os.pread(file.fd, _SIZE, 0)
    if len(data) < _SIZE:
        return None
    magic, version, _, *facts = _FIELDS.unpack_from(data)
    if magic != _MAGIC or _CHECK.unpack_from(data, _FIELDS.size) != (zlib.crc32(data[: _FIELDS.size]),):
        return None
    if version != VERSION:
        raise LogFormatUnknown.of(file.path, version, VERSION)
    return Flushed(*facts)
