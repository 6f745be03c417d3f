"""Reading a partition, without locks, while others write it."""

from __future__ import annotations

import os
from bisect import bisect_right
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from headwater.eventlog.chain import Chain
from headwater.eventlog.errors import LogCorrupt, LogUnreadable, OffsetAhead, OffsetGone
from headwater.eventlog.files import OpenFile, index_path, segment_path
from headwater.eventlog.flushed import read_flushed
from headwater.eventlog.frame import HEADER_BYTES, BadFrame, FrameHeader, decode
from headwater.eventlog.index import Mark, nearest
from headwater.eventlog.segment import NOT_THE_END, Damage, Scan, frames, last_known, lost, scan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class _Tail(NamedTuple):
    """How far this reader has looked."""

    segment: OpenFile
    base: int
    end: Mark


class PartitionReader:
    """One reader of one partition. It remembers how far it looked, so a look costs what was appended since."""

    def __init__(self, folder: Path, topic: str, partition: int, schema: pa.Schema) -> None:
        self._folder = folder
        self._topic = topic
        self._partition = partition
        self._schema = schema
        self._chain = Chain(folder, topic, partition)
        self._bases: list[int] = []
        self._tail: _Tail | None = None

    def start_offset(self) -> int:
        """Return the earliest offset still kept."""
        bases = self._bases
        if not bases or not segment_path(self._folder, bases[0]).exists():  # the oldest always goes first
            with self._reading():
                bases = self._list()
        return bases[0]

    def end_offset(self) -> int:
        """Return the offset after the last visible row; LogCorrupt if rows that were flushed are not there."""
        before: tuple[object, ...] | None = None
        while True:
            with self._reading():
                flushed = read_flushed(self._folder)  # before the rows: what it tells of must be there
                tail = self._followed()
            if flushed is None or (flushed.base, flushed.position) <= (tail.base, tail.end.position):
                return tail.end.offset
            if (flushed, tail.end) == before:  # twice the same: nobody gives rows up just now
                raise self._chain.corrupt(tail.segment.path, lost(flushed, tail.end))
            before = (flushed, tail.end)
            self._tail = None

    def _followed(self) -> _Tail:
        """Go on to the end of the newest segment."""
        tail = self._tail
        while True:
            if tail is None or tail.segment.removed() or tail.segment.size() < tail.end.position:
                tail = self._open_last()
            found = self._settled_scan(tail)
            tail = tail._replace(end=found.end)
            self._tail = tail
            following = self._open_next(tail, torn=found.torn)
            if following is None:
                return tail
            tail = following

    def read(self, start: int, end: int | None, max_bytes: int | None) -> Iterator[pa.RecordBatch]:
        """Exactly rows [start, end), checked before the first is asked for; see Topic.read."""
        last = self.end_offset()
        earliest = self.start_offset()
        stop = last if end is None else end
        for offset in (start, stop):
            if offset > last:
                raise OffsetAhead.of(self._topic, self._partition, offset, last)
        if start < earliest:
            raise OffsetGone.of(self._topic, self._partition, start, earliest)
        return self._rows(start, stop, max_bytes)

    def _rows(self, start: int, stop: int, max_bytes: int | None) -> Iterator[pa.RecordBatch]:
        read_bytes = 0
        with self._reading():
            while start < stop:
                for body_bytes, batch in self._segment_rows(start, stop):
                    start += batch.num_rows
                    read_bytes += body_bytes
                    yield batch
                    if max_bytes is not None and read_bytes >= max_bytes:
                        return

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Say it well if this user may not read."""
        try:
            yield
        except OSError as error:
            raise LogUnreadable.of(self._topic, error) from error

    def _segment_rows(self, start: int, stop: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Rows from `start` to `stop` or to the end of the segment that holds `start`, whichever is first."""
        bases = self._bases
        at = bisect_right(bases, start)
        if at == 0:
            raise OffsetGone.of(self._topic, self._partition, start, self.start_offset())
        base = bases[at - 1]
        stop = min(stop, bases[at]) if at < len(bases) else stop
        path = segment_path(self._folder, base)
        try:
            mapped = _map(path)
            begin = nearest(index_path(self._folder, base), OpenFile(path), start) or Mark(0, base)
        except FileNotFoundError:
            raise self._not_there(path, start) from None
        end = begin
        try:
            for position, header in frames(memoryview(mapped), begin):
                if header.next_offset > start:
                    batch = self._batch(mapped, position, header)
                    skip = max(start - header.first_offset, 0)
                    rows = min(stop, header.next_offset) - header.first_offset - skip
                    yield header.body_bytes, batch.slice(skip, rows)
                if header.next_offset >= stop:
                    return
                end = Mark(position + header.frame_bytes, header.next_offset)
        except Damage as damage:
            raise self._broken(path, damage) from damage
        if end.offset > base and segment_path(self._folder, end.offset).exists():
            self._list()  # a listing made during two rolls may have the later segment and lack the earlier
            return
        raise self._broken(path, Damage(*end, f"the file ends there but rows up to {stop} were in it"))

    def _batch(self, mapped: pa.Buffer, position: int, header: FrameHeader) -> pa.RecordBatch:
        try:
            return decode(header, mapped.slice(position + HEADER_BYTES, header.body_bytes), self._schema)
        except BadFrame as bad:
            raise Damage(position, header.first_offset, str(bad)) from None

    def _open_last(self) -> _Tail:
        """Return the newest segment, from the last place its index knows."""
        while True:
            base = self._list()[-1]
            try:
                segment = OpenFile(segment_path(self._folder, base))
            except FileNotFoundError:
                continue  # rolled and removed between the two calls: there is a newer one
            return _Tail(segment, base, last_known(segment, index_path(self._folder, base), base))

    def _open_next(self, tail: _Tail, *, torn: bool) -> _Tail | None:
        """Return the segment after `tail`'s, if its writer has moved on."""
        base = tail.end.offset
        if base == tail.base:
            return None
        try:
            segment = OpenFile(segment_path(self._folder, base))
        except FileNotFoundError:
            if torn and not tail.segment.removed() and any(other > base for other in self._list()):
                if self._settled_scan(tail).end == tail.end:
                    raise self._chain.corrupt(tail.segment.path, Damage(*tail.end, NOT_THE_END)) from None
                return tail  # the append was finished meanwhile
            return None
        if not self._bases or base > self._bases[-1]:
            self._bases = [*self._bases, base]
        return _Tail(segment, base, last_known(segment, index_path(self._folder, base), base))

    def _settled_scan(self, tail: _Tail) -> Scan:
        """Scan on from `tail`; look again at damage until it stands still, as a writer may be replacing a torn end."""
        before: tuple[object, ...] | None = None
        while True:
            try:
                return scan(tail.segment, tail.end, verify_last=True)
            except Damage as damage:
                state = os.fstat(tail.segment.fd)
                now = (*damage.args, state.st_size, state.st_mtime_ns)
                if now == before:  # twice the same: nobody is at work there
                    raise self._chain.corrupt(tail.segment.path, damage) from damage
                before = now

    def _list(self) -> list[int]:
        self._bases = self._chain.bases(all_links=False)
        return self._bases

    def _not_there(self, path: Path, offset: int) -> OffsetGone | LogCorrupt:
        earliest = self._list()[0]
        if offset < earliest:
            return OffsetGone.of(self._topic, self._partition, offset, earliest)
        return self._broken(path, Damage(0, offset, "the segment's file is missing, older ones are there"))

    def _broken(self, path: Path, damage: Damage) -> LogCorrupt:
        self._chain.bases(all_links=True)  # raises if it is rather that segments do not follow each other
        return self._chain.corrupt(path, damage)


def _map(path: Path) -> pa.Buffer:
    """Return the file as it is now, in memory without a copy; it lives as long as a batch refers to it."""
    with pa.memory_map(str(path)) as file:
        return file.read_buffer(file.size())
