"""A topic: named partitions of Arrow rows with one schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.eventlog.arguments import whole
from headwater.eventlog.conform import Rows, conform, cut
from headwater.eventlog.descriptor import TopicDescriptor
from headwater.eventlog.errors import LogArgument, LogError, PartitionMissing
from headwater.eventlog.frame import FrameBody, encode
from headwater.eventlog.reader import PartitionReader
from headwater.eventlog.spread import split
from headwater.eventlog.writer import PartitionWriter, create_partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from headwater.eventlog.retention import RemovedSegment, Retention

EAGER_BYTES = 64 << 20
"""Up to here an append is encoded before the lock is taken; beyond, frame by frame under it, to bound memory."""


class Topic:
    """Rows by partition and offset. Get one from `EventLog.topic` or `EventLog.create_topic`.

    Any number of Topic objects, threads and processes may append and read at once. Within a partition offsets are
    contiguous and rows keep the order of the appends. A pickled Topic reopens its folder.
    """

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.path = folder
        self._settings = TopicDescriptor.read(folder)
        self._writers: dict[int, PartitionWriter] = {}
        self._readers: dict[int, PartitionReader] = {}

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, partitions={self.partitions}, path={str(self.path)!r})"

    def __reduce__(self) -> tuple[type[Topic], tuple[Path]]:
        return Topic, (self.path,)

    @property
    def schema(self) -> pa.Schema:
        """The columns of every row."""
        return self._settings.schema

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return self._settings.partitions

    @property
    def segment_bytes(self) -> int:
        """The size at which a new segment begins."""
        return self._settings.segment_bytes

    @property
    def retention(self) -> Retention:
        """What is kept of each partition."""
        return self._settings.retention

    def append(self, rows: Rows, partition: int = 0) -> tuple[int, int]:
        """Append rows to one partition, atomically; (first offset, next offset).

        All rows become visible together, or none ever does, whatever kills the process. Columns are matched by name.
        On LogWriteFailed nothing was kept.
        """
        writer = self._writer(partition)
        batches = cut(conform(rows, self.schema, self.name))
        if not batches:
            end = self._reader(partition).end_offset()
            return end, end
        size = sum(batch.nbytes for batch in batches)
        bodies: Iterable[FrameBody] = encode(batches)
        if size <= EAGER_BYTES:
            bodies = list(bodies)
            size = sum(body.message.size for body in bodies)
        return writer.append(bodies, len(batches), size)

    def append_keyed(self, rows: Rows, by: str) -> dict[int, tuple[int, int]]:
        """Append each row to the partition its key belongs to; per partition (first offset, next offset).

        A key always goes to the same partition, and its rows keep their order. Atomic is each partition's part, not the
        whole: if one fails, the error's `appended` tells which were done before it, in order of their numbers.
        """
        if by not in self.schema.names:
            raise LogArgument.of("by", f"a field of topic {self.name!r} ({', '.join(self.schema.names)})", by)
        conformed = conform(rows, self.schema, self.name)
        table = conformed if isinstance(conformed, pa.Table) else pa.Table.from_batches([conformed])
        done: dict[int, tuple[int, int]] = {}
        for partition, part in split(table, by, self.partitions).items():
            try:
                done[partition] = self.append(part, partition)
            except LogError as error:
                raise error.after(done) from error.__cause__
        return done

    def start_offsets(self) -> dict[int, int]:
        """Per partition, the earliest offset still kept."""
        return {p: self._reader(p).start_offset() for p in range(self.partitions)}

    def end_offsets(self) -> dict[int, int]:
        """Per partition, the offset after the last visible row. Costs what was appended since the last call."""
        return {p: self._reader(p).end_offset() for p in range(self.partitions)}

    def read(
        self, partition: int, start: int, end: int | None = None, *, max_bytes: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Exactly the rows [start, end) of a partition, in batches as they were appended, the outer ones sliced.

        Without `end`, up to what is visible now. With `max_bytes`, no batch follows once that many were read; the first
        always comes. The batches refer to the memory-mapped file: nothing is copied, each is verified as it is read.
        OffsetGone and OffsetAhead are raised at once, OffsetGone also later if retention overtakes the reading.
        """
        reader = self._reader(partition)
        start = whole("start", start)
        end = None if end is None else whole(f"end (with start {start})", end, least=start)
        max_bytes = None if max_bytes is None else whole("max_bytes", max_bytes)
        return reader.read(start, end, max_bytes)

    def flush(self) -> None:
        """Make what this Topic object appended survive power loss (fsync)."""
        for writer in list(self._writers.values()):
            writer.flush()

    def apply_retention(self, now_ms: int | None = None) -> list[RemovedSegment]:
        """Remove what the retention no longer keeps, as of `now_ms` or the wall clock. Also done at each new segment.

        The age of a segment counts from its last append, by the file's modification time.
        """
        return [gone for p in range(self.partitions) for gone in self._writer(p).apply_retention(now_ms)]

    def drop_from(self, partition: int, offset: int) -> int:
        """Give up the append holding `offset` and all later ones in a partition; the new end offset.

        The way out of LogCorrupt when no copy of the file exists. Rows are lost for good; readers see the end go back.
        """
        return self._writer(partition).drop_from(whole("offset", offset))

    def rebuild_indexes(self) -> None:
        """Write the sparse indexes anew. Never needed for correctness: without them a first read walks further."""
        for partition in range(self.partitions):
            self._writer(partition).rebuild_indexes()

    def _writer(self, partition: int) -> PartitionWriter:
        if (writer := self._writers.get(partition)) is None:
            settings = self._settings
            folder = self._folder(partition)
            writer = PartitionWriter(folder, self.name, partition, settings.segment_bytes, settings.retention)
            self._writers[partition] = writer
        return writer

    def _reader(self, partition: int) -> PartitionReader:
        if (reader := self._readers.get(partition)) is None:
            reader = PartitionReader(self._folder(partition), self.name, partition, self.schema)
            self._readers[partition] = reader
        return reader

    def _folder(self, partition: int) -> Path:
        if partition not in range(self.partitions):
            raise PartitionMissing.of(self.name, partition, self.partitions)
        return partition_folder(self.path, partition)


def partition_folder(topic: Path, partition: int) -> Path:
    """Where a partition's segments are."""
    return topic / f"partition-{partition}"


def create_topic_files(folder: Path, settings: TopicDescriptor) -> None:
    """Make a topic's folder; topic.json comes last, so a topic that can be seen is complete."""
    folder.mkdir(exist_ok=True)
    for partition in range(settings.partitions):
        create_partition(partition_folder(folder, partition))
    settings.write(folder)
