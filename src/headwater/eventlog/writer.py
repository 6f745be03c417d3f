"""Writing a partition: one append at a time, under the partition's lock."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from headwater.durable import sync_folder, write_atomically
from headwater.eventlog.chain import Chain
from headwater.eventlog.errors import LogWriteFailed
from headwater.eventlog.files import READ_ONLY, OpenFile, index_path, locked, segment_bases, segment_path
from headwater.eventlog.flushed import Flushed, advance_flushed, forget_flushed, read_flushed
from headwater.eventlog.frame import ENDS_GROUP, HEADER_BYTES, STARTS_GROUP, pack_header
from headwater.eventlog.index import Mark, add_entries, earns_entry, nearest
from headwater.eventlog.retention import RemovedSegment, Retention, SegmentFacts
from headwater.eventlog.segment import NOT_THE_END, Damage, Scan, frames, lost, scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from headwater.eventlog.frame import FrameBody

LOCK_NAME = "lock"


class _Tail(NamedTuple):
    """Where this writer believes the partition ends. One value, replaced whole: a fork never sees half of it."""

    segment: OpenFile
    base: int
    end: Mark


def create_partition(folder: Path) -> None:
    """Make an empty partition; harmless on one that is there."""
    folder.mkdir(exist_ok=True)
    if segment_bases(folder) == ([], []):
        OpenFile(segment_path(folder, 0), os.O_RDWR | os.O_CREAT)
    sync_folder(folder)


class PartitionWriter:
    """One writer of one partition; any number may exist, in any process."""

    def __init__(self, folder: Path, topic: str, partition: int, segment_bytes: int, retention: Retention) -> None:
        self._folder = folder
        self._lock = folder / LOCK_NAME
        self._topic = topic
        self._partition = partition
        self._segment_bytes = segment_bytes
        self._retention = retention
        self._chain = Chain(folder, topic, partition)
        self._tail: _Tail | None = None
        self._appends = 0
        self._synced_appends = 0
        """Two numbers, not a flag: who flushes while another thread does must not return before that one is done."""

    def append(self, bodies: Iterable[FrameBody], count: int, size_hint: int) -> tuple[int, int]:
        """Write `count` bodies as one append; (first offset, next offset).

        All of it becomes visible with its last frame, or nothing of it ever does. `size_hint` decides when to begin a
        new segment; an append never spans two.
        """
        try:
            with self._locked():
                tail = self._at_end()
                if tail.end.position and tail.end.position + size_hint > self._segment_bytes:
                    tail = self._roll(tail)
                try:
                    end = self._write(tail, bodies, count)
                    self._tail = tail._replace(end=end)
                finally:
                    self._appends += 1  # an interrupt may come after the last byte
                if earns_entry(tail.end.position, end.position):
                    add_entries(index_path(self._folder, tail.base), [tail.end])
                return tail.end.offset, end.offset
        except OSError as error:
            raise LogWriteFailed.append(self._topic, self._partition, error) from error

    def flush(self) -> None:
        """Make every append of this writer survive power loss. Older segments are synced when they are left.

        That it was flushed is noted, so that it is missed if it is not there later.
        """
        appends = self._appends
        tail = self._tail
        if tail is None or self._synced_appends >= appends:
            return
        try:
            os.fsync(tail.segment.fd)
        except OSError as error:
            raise LogWriteFailed.flush(self._topic, self._partition, error) from error
        with suppress(OSError), locked(self._lock):  # without the note the rows are as safe
            if not tail.segment.removed():  # somebody gave its rows up, or retention has
                advance_flushed(self._folder, Flushed(tail.base, *tail.end))
        self._synced_appends = max(self._synced_appends, appends)

    def apply_retention(self, now_ms: int | None) -> list[RemovedSegment]:
        """Remove the segments the retention no longer keeps."""
        with self._locked():
            return self._retain(now_ms)

    def drop_from(self, offset: int) -> int:
        """Give up the append that holds `offset` and every later one; the new end offset.

        Files are replaced, never cut, so that a reader's memory map stays whole.
        """
        with self._locked():
            bases = self._bases()
            forget_flushed(self._folder)
            kept = max((base for base in bases if base <= offset), default=bases[0])
            for base in reversed([base for base in bases if base > kept]):
                self._remove(base)
            path = segment_path(self._folder, kept)
            data = path.read_bytes()
            end = _append_before(memoryview(data), Mark(0, kept), offset)
            index_path(self._folder, kept).unlink(missing_ok=True)
            write_atomically(path, data[: end.position])
            advance_flushed(self._folder, Flushed(kept, *end))
            self._tail = None
            self._synced_appends = self._appends
            return end.offset

    def rebuild_indexes(self) -> None:
        """Write every segment's index anew."""
        with self._locked():
            for base in self._bases():
                index_path(self._folder, base).unlink(missing_ok=True)
                self._open(base)

    def _at_end(self) -> _Tail:
        """Find the proven end of the partition: what was known, checked, or looked up anew; cut away a torn end."""
        tail = self._tail
        if tail is None or tail.segment.removed() or (size := tail.segment.size()) < tail.end.position:
            tail = self._open(self._chain.bases(all_links=True)[-1])
        elif size != tail.end.position:
            tail = tail._replace(end=self._scan_on(tail, verify_last=False).end)
        # Another writer's roll leaves our segment as it was; the next one is named by the offset we stand at.
        while tail.end.offset > tail.base and segment_path(self._folder, tail.end.offset).exists():
            tail = self._open(tail.end.offset)
        self._tail = tail
        return tail

    def _open(self, base: int) -> _Tail:
        segment = OpenFile(segment_path(self._folder, base), os.O_RDWR)
        index = index_path(self._folder, base)
        known = nearest(index, segment, None)
        if known is None:
            index.unlink(missing_ok=True)  # whatever it holds is not true of this file
        tail = _Tail(segment, base, known or Mark(0, base))
        found = self._scan_on(tail, verify_last=True)
        add_entries(index, (mark for mark in found.marks if mark != known))
        return tail._replace(end=found.end)

    def _scan_on(self, tail: _Tail, *, verify_last: bool) -> Scan:
        """Walk from `tail` to the end of its segment and cut away a torn end."""
        try:
            found = scan(tail.segment, tail.end, verify_last=verify_last)
        except Damage as damage:
            raise self._chain.corrupt(tail.segment.path, damage) from damage
        flushed = read_flushed(self._folder)
        if flushed is not None and flushed.base == tail.base and flushed.position > found.end.position:
            raise self._chain.corrupt(tail.segment.path, lost(flushed, found.end))
        if found.torn:
            if tail.base != self._bases()[-1]:  # only the newest segment can have a torn end
                raise self._chain.corrupt(tail.segment.path, Damage(*found.end, NOT_THE_END))
            os.ftruncate(tail.segment.fd, found.end.position)
        return found

    def _write(self, tail: _Tail, bodies: Iterable[FrameBody], count: int) -> Mark:
        segment, (position, offset) = tail.segment, tail.end
        try:
            for at, body in enumerate(bodies):
                flags = (STARTS_GROUP if at == 0 else 0) | (ENDS_GROUP if at == count - 1 else 0)
                segment.write_at(position, pack_header(body, offset, flags), body.message)
                position += HEADER_BYTES + body.message.size
                offset += body.rows
        except BaseException:
            # Cuts what is not complete. An interrupt may come after the last byte: then readers have seen the rows.
            self._scan_on(tail, verify_last=False)
            raise
        return Mark(position, offset)

    def _roll(self, tail: _Tail) -> _Tail:
        """Begin a new segment. The old one is synced first: only the newest can be hurt by power loss."""
        os.fsync(tail.segment.fd)
        base = tail.end.offset
        segment = OpenFile(segment_path(self._folder, base), os.O_RDWR | os.O_CREAT | os.O_EXCL)
        sync_folder(self._folder)
        advance_flushed(self._folder, Flushed(base, 0, base))
        fresh = _Tail(segment, base, Mark(0, base))
        self._tail = fresh
        if not self._retention.unlimited:
            self._retain(None)
        return fresh

    def _retain(self, now_ms: int | None) -> list[RemovedSegment]:
        now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        bases = self._bases()
        states = [segment_path(self._folder, base).stat() for base in bases]
        facts = [
            SegmentFacts(base, state.st_size, state.st_mtime_ns // 1_000_000)
            for base, state in zip(bases, states, strict=True)
        ]
        count = self._retention.expired(facts, now_ms)
        for fact in facts[:count]:  # oldest first: what is left is contiguous whenever we are stopped
            self._remove(fact.base)
        return [
            RemovedSegment(self._partition, fact.base, following.base, fact.size_bytes)
            for fact, following in pairwise(facts[: count + 1])
        ]

    def _bases(self) -> list[int]:
        """Return the segments as they are, a chain or not: the way out of damage must be open."""
        bases, strays = segment_bases(self._folder)
        if strays or not bases:
            return self._chain.bases(all_links=True)  # says what is wrong
        return bases

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the partition's lock; say it well if this user may not."""
        try:
            with locked(self._lock):
                yield
        except OSError as error:
            if error.errno in READ_ONLY:
                raise LogWriteFailed.read_only(self._topic, self._partition, self._folder, error) from error
            raise

    def _remove(self, base: int) -> None:
        index_path(self._folder, base).unlink(missing_ok=True)
        segment_path(self._folder, base).unlink()


def _append_before(view: memoryview, start: Mark, offset: int) -> Mark:
    """Where the append that holds `offset` begins, or the last sound place before it."""
    end = start
    try:
        for position, header in frames(view, start):
            if header.next_offset > offset:
                break
            if header.ends_group:
                end = Mark(position + header.frame_bytes, header.next_offset)
    except Damage:
        return end  # the damage is what the caller gives up
    return end
