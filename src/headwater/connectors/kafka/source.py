"""Kafka topics as a source: each partition is a split, positions are offsets."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.connectors.contract import DeadLetters, Positions, Source
from headwater.connectors.formats import Format
from headwater.connectors.kafka.cluster import Cluster, Topic, TopicsGone
from headwater.connectors.kafka.committing import Committer
from headwater.connectors.kafka.connection import LOG, Connection, confluent_kafka
from headwater.connectors.kafka.reading import PartitionReader, gone, gone_back, lost
from headwater.connectors.kafka.records import PARTS, RecordDecoder
from headwater.connectors.kafka.splits import Split
from headwater.connectors.kafka.start import Start
from headwater.data.schema import Schema
from headwater.errors import GraphError, SourceError

_REFRESH_S = 5.0
"""How often to look for new topics, new partitions and expired records; ends of partitions are asked for every time."""


@dataclass(frozen=True)
class Topics:
    """Which topics are read: those with some names, or all that match a pattern as a whole."""

    names: tuple[str, ...] = ()
    pattern: str | None = None

    @classmethod
    def of(cls, topics: str | Iterable[str] | None, pattern: str | None) -> Topics:
        """What a user has written: one of the two."""
        names = (topics,) if isinstance(topics, str) else tuple(topics or ())
        if bool(names) == (pattern is not None):
            raise GraphError.bad_argument(
                "kafka", "reads topics, or those that match pattern=", (topics, pattern), "give one of the two"
            )
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as error:
                raise GraphError.bad_argument(
                    "kafka", f"needs a regular expression ({error})", pattern, "mend it"
                ) from None
        return cls(names, pattern)

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"Kafka topics like {self.pattern}"
        return f"Kafka topic{'s' if len(self.names) > 1 else ''} {', '.join(self.names)}"

    def found(self, cluster: Cluster) -> dict[str, Topic]:
        """Those that exist."""
        if self.pattern is None:
            return cluster.topics(self.names)
        names = [name for name in cluster.topic_names() if re.fullmatch(self.pattern, name)]
        return cluster.topics(names) if names else {}


@dataclass(frozen=True)
class Reading:
    """How records are read, beside where from."""

    format: Format
    metadata: Mapping[str, str]
    start: Start
    has_dead_letters: bool
    skips_lost: bool
    group: str | None

    def __post_init__(self) -> None:
        for column, part in self.metadata.items():
            if part not in PARTS:
                raise GraphError.bad_argument(
                    "kafka", f"knows no part of a record for column {column!r}", part, f"choose from {', '.join(PARTS)}"
                )


class KafkaSource(Source):
    """Reads committed records of Kafka topics, in tasks, over consumers that stay open between epochs."""

    def __init__(self, topics: Topics, connection: Connection, reading: Reading) -> None:
        confluent_kafka()  # where it is missing, say so while the job is built
        self._topics, self._connection, self._reading = topics, connection, reading
        self.has_dead_letters = reading.has_dead_letters
        self.finds_columns_by_name = reading.format.name == "json"
        self._decoder: RecordDecoder | None = None
        self._open: _Open = _Open()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": _Open()}

    def describe(self) -> str:
        return self._connection.what

    def check(self, schema: Schema) -> None:
        if self._decoder is not None and self._decoder.schema != schema.arrow:
            known = Schema(self._decoder.schema).ddl()
            raise GraphError.bad_argument(
                "kafka", f"is read as '{known}' already", schema.ddl(), "make a source for each schema"
            )
        self._decoder = RecordDecoder(schema, self._reading.format, self._reading.metadata)

    def earliest(self) -> Positions:
        cluster = self._cluster()
        found = self._topics.found(cluster)
        if missing := sorted(set(self._topics.names) - set(found)):
            raise self._connection.failed(f"topic {', '.join(missing)} does not exist", "make it, or mend its name")
        if not found:
            raise self._connection.failed("no topic matches the pattern", "make one, or mend the pattern")
        self._open.topics = found
        splits = _splits(found)
        offsets = self._reading.start.offsets or {}
        if unknown := sorted(str(split) for split in offsets if split not in splits):
            raise self._connection.failed(f"start= names {', '.join(unknown)}, which does not exist", "leave it out")
        return {str(split): at for split, at in self._reading.start.positions(cluster, splits).items()}

    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        for _ in range(2):  # topics that are gone are noticed at the next look, which is then made at once
            try:
                ends = self._cluster().latest(self._known(start))
                break
            except TopicsGone:
                self._open.looked_s = None
        else:
            raise self._connection.failed("topics come and go", "see what deletes them, and start the job again")
        for split, end in ends.items():
            if end < (at := start.get(str(split), 0)):
                raise gone_back(self._connection, split, at, end)
        return {str(split): end for split, end in ends.items()}

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch | DeadLetters]:
        assert self._decoder is not None, "a source is checked before it is read"
        for piece in self._reader(split).pieces(start, end):
            for rows in self._decoder.rows(piece):
                if isinstance(rows, tuple):
                    yield self._dead_letter(split, *rows)
                else:
                    yield rows

    def published(self, positions: Positions) -> None:
        if self._reading.group is None:
            return
        try:
            if self._open.committer is None:
                self._open.committer = Committer(self._connection, self._reading.group)
            self._open.committer.commit(positions)
        except SourceError as error:
            LOG.warning("%s", error)

    def release(self, split: str) -> None:
        self._open.release(split)

    def rows_after(self, positions: Positions) -> int:
        if self._open.asked is None:
            self._open.asked = Cluster(self._connection)
        ends = self._open.asked.latest([Split.parse(split) for split in positions])
        return sum(max(0, end - positions[str(split)]) for split, end in ends.items())

    def _known(self, start: Positions) -> list[Split]:
        """The partitions to read now; looks for new ones, and for what is lost, every few seconds."""
        opened, now_s = self._open, time.monotonic()
        if opened.looked_s is None or now_s - opened.looked_s > _REFRESH_S:
            found = self._topics.found(self._cluster())
            self._refuse_what_is_gone(start, found)
            splits = _splits(found)
            self._refuse_what_is_lost(start, splits)
            opened.topics, opened.splits, opened.looked_s = found, splits, now_s
        return opened.splits

    def _refuse_what_is_gone(self, start: Positions, found: Mapping[str, Topic]) -> None:
        missing = sorted({Split.parse(split).topic for split in start} - set(found))
        if missing and not self._reading.skips_lost:
            raise gone(self._connection, missing)
        for name in missing:
            LOG.warning("%s: topic %s does not exist any more; its splits end", self.describe(), name)
        again = [name for name, topic in found.items() if (old := self._open.topics.get(name)) and old.id != topic.id]
        if again:
            raise self._connection.failed(
                f"topic {', '.join(again)} was deleted and made again while it was read",
                "start the job anew, with a new job_dir",
            )

    def _refuse_what_is_lost(self, start: Positions, splits: list[Split]) -> None:
        """Refuse when records that were to be read have expired; a split that is new was to be read from its start."""
        for split, first in self._cluster().earliest(splits).items():
            at = start.get(str(split), 0)
            if at >= first:
                continue
            if not self._reading.skips_lost:
                raise lost(self._connection, split, at, first)
            LOG.warning("%s: offsets %d to %d of %s have expired", self.describe(), at, first - 1, split)

    def _dead_letter(self, split: str, record: Any, reason: str) -> DeadLetters:
        if not self.has_dead_letters:
            raise self._connection.failed(
                f"the record at offset {record.offset()} of {split} is no {self._reading.format.name}: {reason}",
                "set bad_records='dead_letters' to put such records aside, or change the schema or the format",
            )
        return DeadLetters.of(self, split, record.offset(), reason, record.value())

    def _cluster(self) -> Cluster:
        if self._open.cluster is None:
            self._open.cluster = Cluster(self._connection)
        return self._open.cluster

    def _reader(self, split: str) -> PartitionReader:
        readers, reading = self._open.readers, self._reading
        if split not in readers:
            readers[split] = PartitionReader(
                self._connection, Split.parse(split), group=reading.group, skips_lost=reading.skips_lost
            )
        return readers[split]


class _Open:
    """What a source holds open in one process, and what it has last seen; nothing of it travels."""

    def __init__(self) -> None:
        self.cluster: Cluster | None = None
        self.asked: Cluster | None = None
        """For who looks at the job, on a thread of its own."""
        self.committer: Committer | None = None
        self.readers: dict[str, PartitionReader] = {}
        self.topics: Mapping[str, Topic] = {}
        self.splits: list[Split] = []
        self.looked_s: float | None = None

    def release(self, split: str) -> None:
        """Close the reader of a split and, with the last one, everything."""
        reader = self.readers.pop(split, None)
        if reader is not None:
            reader.close()
        if not self.readers:
            committer, self.committer, self.cluster = self.committer, None, None
            if committer is not None:
                committer.close()


def _splits(found: Mapping[str, Topic]) -> list[Split]:
    return [Split(name, partition) for name, topic in sorted(found.items()) for partition in topic.partitions]
