"""Walking a segment's frames: to its end for writers and followers, to a row for readers."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

from headwater.eventlog.frame import HEADER_BYTES, MAGIC, BadFrame, FrameHeader, UnknownVersion, parse_header
from headwater.eventlog.index import Mark, earns_entry, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from headwater.eventlog.files import OpenFile
    from headwater.eventlog.flushed import Flushed

NOT_THE_END = "the rest of the file is not an append, yet newer segments follow"
_SEARCH_BYTES = 1 << 20


class Damage(Exception):
    """Bytes that are neither frames nor the torn end of the last append. Becomes LogCorrupt once it is sure."""

    def __init__(self, position: int, offset: int, reason: str) -> None:
        super().__init__(position, offset, reason)
        self.position = position
        self.offset = offset
        self.reason = reason


def lost(flushed: Flushed, end: Mark) -> Damage:
    """Say that what was flushed is not there."""
    return Damage(*end, f"no append can be read there, and rows up to offset {flushed.offset} had been flushed")


class Scan(NamedTuple):
    """What a walk to the end of a segment found."""

    end: Mark
    """Where the next append goes."""
    size_bytes: int
    """The file's length as the walk saw it; more than `end.position` means a torn or unfinished append."""
    marks: list[Mark]
    """The appends passed that belong into the index."""

    @property
    def torn(self) -> bool:
        """Whether bytes of an incomplete append stand after the end."""
        return self.size_bytes > self.end.position


def last_known(segment: OpenFile, index: Path, base: int) -> Mark:
    """Return the nearest proven place to the end of the segment, from its index, or its beginning."""
    return nearest(index, segment, None) or Mark(0, base)


def scan(segment: OpenFile, start: Mark, *, verify_last: bool) -> Scan:
    """Walk the headers from `start` to the end of the last complete append.

    With `verify_last` the bodies of the last append are summed as well: after power loss the file may have its length
    but not its bytes, and a reader may look while a writer cuts a torn end and writes over it. What is not whole and
    has no frame after it is the torn end; anything else that is not a frame raises Damage.
    """
    size = segment.size()
    end, position, offset = start, start.position, start.offset
    group: list[tuple[int, FrameHeader]] = []
    last: list[tuple[int, FrameHeader]] = []
    marks: list[Mark] = []
    while size - position >= HEADER_BYTES:
        try:
            header = parse_header(segment.read_at(position, HEADER_BYTES))
            header.must_follow(offset, in_group=bool(group))
        except BadFrame as bad:
            if _frame_after(segment, position, size):
                raise Damage(position, offset, str(bad)) from None
            break
        if position + header.frame_bytes > size:
            break
        group.append((position, header))
        position += header.frame_bytes
        offset = header.next_offset
        if header.ends_group:
            if earns_entry(end.position, position):
                marks.append(end)
            end, last, group = Mark(position, offset), group, []
    if verify_last and last and (bad_at := _bad_body(segment, last)) is not None:
        if end.position < size:
            raise Damage(*bad_at, "the body's checksum does not match")
        end = Mark(last[0][0], last[0][1].first_offset)
        marks = [mark for mark in marks if mark != end]
    return Scan(end, size, marks)


def frames(view: memoryview, start: Mark) -> Iterator[tuple[int, FrameHeader]]:
    """(position, header) of each frame from `start`, where an append begins, to the end of `view`.

    Damage if something else stands there: the caller asks only for what was visible.
    """
    position, offset = start
    in_group = False
    while position < len(view):
        try:
            header = parse_header(view, position)
            header.must_follow(offset, in_group=in_group)
        except BadFrame as bad:
            raise Damage(position, offset, str(bad)) from None
        if position + header.frame_bytes > len(view):
            raise Damage(position, offset, "the frame is cut short")
        yield position, header
        position += header.frame_bytes
        offset = header.next_offset
        in_group = not header.ends_group


def _bad_body(segment: OpenFile, group: list[tuple[int, FrameHeader]]) -> tuple[int, int] | None:
    for position, header in group:
        if zlib.crc32(segment.read_at(position + HEADER_BYTES, header.body_bytes)) != header.body_crc:
            return position, header.first_offset
    return None


def _frame_after(segment: OpenFile, position: int, size: int) -> bool:
    """Whether a sound header stands anywhere in [position, size)."""
    while position < size:
        data = segment.read_at(position, _SEARCH_BYTES + HEADER_BYTES)
        at = data.find(MAGIC)
        while 0 <= at < _SEARCH_BYTES:
            try:
                parse_header(data, at)
            except UnknownVersion:
                return True
            except BadFrame:
                at = data.find(MAGIC, at + 1)
            else:
                return True
        position += _SEARCH_BYTES
    return False
