"""The frame: one Arrow record batch on disk, behind a fixed header that proves it whole.

    magic 4s | version u16 | flags u16 | rows u32 | body crc32 u32 | first offset i64 | body bytes u64
    header crc32 u32 | zero u32

The header's crc covers every field before it, the body's crc among them. So a walk over headers alone is safe, and a
frame is whole when both match. All numbers are little-endian. 40 bytes keep Arrow's buffers aligned to 8.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAGIC = b"HWEL"
VERSION = 1
STARTS_GROUP = 1
"""Flag: the first frame of an append."""
ENDS_GROUP = 2
"""Flag: the last frame of an append. Until it is on disk, no frame of the append is visible."""

_FIELDS = struct.Struct("<4sHHIIqQ")
_CHECK = struct.Struct("<II")
HEADER_BYTES = _FIELDS.size + _CHECK.size


class BadFrame(Exception):
    """The bytes at a position are not the frame that must be there. Callers decide: a torn end, or LogCorrupt."""


class UnknownVersion(BadFrame):
    """A sound frame of another version: never to be taken for a torn one."""


class FrameHeader(NamedTuple):
    """What a frame says about itself."""

    flags: int
    rows: int
    body_crc: int
    first_offset: int
    body_bytes: int

    @property
    def frame_bytes(self) -> int:
        """Header and body."""
        return HEADER_BYTES + self.body_bytes

    @property
    def next_offset(self) -> int:
        """The offset after the frame's last row."""
        return self.first_offset + self.rows

    @property
    def starts_group(self) -> bool:
        """Whether an append begins here."""
        return bool(self.flags & STARTS_GROUP)

    @property
    def ends_group(self) -> bool:
        """Whether an append is complete with this frame."""
        return bool(self.flags & ENDS_GROUP)

    def must_follow(self, offset: int, *, in_group: bool) -> None:
        """Raise BadFrame unless this frame continues a walk that stands at `offset`."""
        if self.first_offset != offset:
            raise BadFrame(f"the frame holds offset {self.first_offset} where {offset} must follow")
        if self.starts_group == in_group:
            raise BadFrame("an append begins inside another" if in_group else "an append lacks its first frame")


class FrameBody(NamedTuple):
    """A record batch, encoded and summed up, not yet given its offset."""

    message: pa.Buffer
    crc: int
    rows: int


def encode(batches: Iterable[pa.RecordBatch]) -> Iterator[FrameBody]:
    """Turn batches into frame bodies: Arrow IPC record-batch messages without the schema."""
    for batch in batches:
        message = batch.serialize()
        yield FrameBody(message, zlib.crc32(message), batch.num_rows)


def pack_header(body: FrameBody, first_offset: int, flags: int) -> bytes:
    """Return the bytes that stand before `body`."""
    fields = _FIELDS.pack(MAGIC, VERSION, flags, body.rows, body.crc, first_offset, body.message.size)
    return fields + _CHECK.pack(zlib.crc32(fields), 0)


def parse_header(data: bytes | memoryview, position: int = 0) -> FrameHeader:
    """Read the header at `position`; BadFrame if it is cut short, damaged or of a version unknown here."""
    if len(data) - position < HEADER_BYTES:
        raise BadFrame("the header is cut short")
    magic, version, flags, rows, body_crc, first_offset, body_bytes = _FIELDS.unpack_from(data, position)
    if magic != MAGIC:
        raise BadFrame("no frame begins here")
    crc, _ = _CHECK.unpack_from(data, position + _FIELDS.size)
    if zlib.crc32(data[position : position + _FIELDS.size]) != crc:
        raise BadFrame("the header's checksum does not match")
    if version != VERSION:
        raise UnknownVersion(f"the frame has version {version}, this Headwater reads {VERSION}")
    return FrameHeader(flags, rows, body_crc, first_offset, body_bytes)


def decode(header: FrameHeader, message: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch in a frame's body, without a copy; BadFrame if it is not what the header promises."""
    if zlib.crc32(message) != header.body_crc:
        raise BadFrame("the body's checksum does not match")
    try:
        batch = pa.ipc.read_record_batch(message, schema)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadFrame(f"the body is not a record batch of the topic's schema ({error})") from error
    if batch.num_rows != header.rows:
        raise BadFrame(f"the body holds {batch.num_rows} rows, the header says {header.rows}")
    return batch
