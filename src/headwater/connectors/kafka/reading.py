"""Reads ranges of one partition, over a consumer that stays open between epochs and reads ahead."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headwater.connectors.kafka.cluster import Cluster, TopicsGone
from headwater.connectors.kafka.connection import LOG, Connection, Errors, confluent_kafka, may_pass
from headwater.connectors.kafka.splits import Split
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from confluent_kafka import Message

_PIECE_RECORDS = 16_384
_PIECE_BYTES = 16 << 20
"""Records that are decoded together: many enough for a parser to be fast, few enough to stay in the processor's cache."""
_POLL_S, _LOOK_S = 1.0, 3.0
_READ_AHEAD: dict[str, Any] = {
    "queued.max.messages.kbytes": 16 << 10,  # of one partition; librdkafka's own limit is 64 MB
    "fetch.queue.backoff.ms": 20,  # how soon to look again when that is full; a second of its own would starve us
    "fetch.wait.max.ms": 100,  # the end of a partition shows after this, when it ends in marks of transactions
    "fetch.message.max.bytes": 4 << 20,
}


class PartitionReader:
    """Records of one partition by ranges of offsets. Going on where the last range ended costs no new request."""

    def __init__(self, connection: Connection, split: Split, *, group: str | None, skips_lost: bool) -> None:
        package = confluent_kafka()
        self._package, self._connection, self._split = package, connection, split
        self._skips_lost = skips_lost
        self._errors = Errors(connection)
        config = connection.config(
            self._errors,
            group_id=group or "headwater",  # the client wants one; without subscription and commits it joins none
            enable_auto_commit=False,
            enable_partition_eof=True,
            isolation_level="read_committed",
            auto_offset_reset="earliest" if skips_lost else "error",
            max_poll_interval_ms=86_400_000,  # nobody waits for our place in a group: epochs may be far between
        )
        self._consumer = connection.made(package.Consumer, {**_READ_AHEAD, **config})
        self._held: list[Message] = []
        """Records that came and are not handed out yet."""
        self._next: int | None = None
        """Where the next range begins, if it goes on from the last one: all before it is handed out."""
        self._seen = 0
        """All before this has come, or is known not to exist."""

    def close(self) -> None:
        """Give the consumer up."""
        self._consumer.close()

    def pieces(self, start: int, end: int) -> Iterator[list[Message]]:
        """The records at offsets start <= o < end, in order, in lists that are not empty.

        Offsets without a record are no reason to wait: a later record or the end of the partition shows that they have
        none.
        """
        if start != self._next:
            self._go_to(start)
        self._next, at = None, start  # a range that is not read to its end leaves nothing to go on from
        while at < end:
            piece = self._piece(end)
            at = min(self._seen, end)
            if piece:
                yield piece
        self._next = end

    def _go_to(self, start: int) -> None:
        self._held, self._seen = [], start
        self._consumer.assign([self._package.TopicPartition(*self._split, start)])

    def _piece(self, end: int) -> list[Message]:
        """As many records before `end` as are to be decoded together; fewer, perhaps none, if there are no more."""
        size_bytes = sum(map(len, self._held))
        while self._seen < end and len(self._held) < _PIECE_RECORDS and size_bytes < _PIECE_BYTES:
            came = self._come()
            size_bytes += sum(map(len, came))
            self._held += came
        count = len(self._held)
        if count and _offset(self._held[-1]) >= end:
            count = bisect_left(self._held, end, key=_offset)
        piece, self._held = self._held[:count], self._held[count:]
        return piece

    def _come(self) -> list[Message]:
        """Wait for something to come, and take all that has: records, or word of the partition's end."""
        first = self._wait()
        came = [first, *self._consumer.consume(_PIECE_RECORDS, 0)]
        records = [message for message in came if message.error() is None]
        if records:
            if _offset(records[0]) < self._seen:
                raise gone_back(self._connection, self._split, self._seen, _offset(records[0]))
            self._seen = _offset(records[-1]) + 1
        if len(records) < len(came):
            for message in came:
                if message.error() is not None:
                    self._heed(message)
        return records

    def _wait(self) -> Message:
        """The next message. After a moment of silence, looks whether the cluster can say why; then waits to the limit."""
        limit_s, started_s = self._connection.timeout_s, time.monotonic()
        has_looked = False
        while True:
            message: Message | None = self._consumer.poll(min(_POLL_S, limit_s))
            if message is not None:
                return message
            silent_s = time.monotonic() - started_s
            if not has_looked and silent_s >= min(_LOOK_S, limit_s):
                has_looked = True
                self._refuse_known_problem()
            if self._errors.is_hopeless or silent_s >= limit_s:
                raise self._failed(self._errors.as_text() or f"nothing came within {limit_s:g} s")

    def _heed(self, message: Message) -> None:
        """An event that is not a record: the end of the partition, or something that is wrong."""
        error, codes = message.error(), self._package.KafkaError
        assert error is not None
        if error.code() == codes._PARTITION_EOF:
            self._seen = max(self._seen, message.offset() or 0)
        elif error.code() == codes.GROUP_AUTHORIZATION_FAILED:
            LOG.debug("%s: %s; records come without a group too", self._connection.what, error.str())
        elif not may_pass(error):
            self._refuse_known_problem()
            raise self._failed(error.str())

    def _refuse_known_problem(self) -> None:
        """Fail with why records do not come, if the cluster knows: it is gone, or they are."""
        cluster = Cluster(self._connection)
        try:
            (first,) = cluster.earliest([self._split]).values()
            (last,) = cluster.latest([self._split]).values()
        except TopicsGone:
            raise gone(self._connection, [self._split.topic]) from None
        if self._seen < first and not self._skips_lost:
            raise lost(self._connection, self._split, self._seen, first)
        if self._seen > last:
            raise gone_back(self._connection, self._split, self._seen, last)

    def _failed(self, why: str) -> HeadwaterError:
        return self._connection.failed(
            f"{self._split} at offset {self._seen}: {why}", "see that the servers run, and start the job again"
        )


def lost(connection: Connection, split: Split, at: int, first: int) -> HeadwaterError:
    """Records that the job has not read are not there any more."""
    return connection.failed(
        f"offset {at} of {split} has expired, the first one that is left is {first}",
        "set on_lost='skip' to go on there without them, or start the job anew",
    )


def gone_back(connection: Connection, split: Split, at: int, end: int) -> HeadwaterError:
    """The partition ends before the place up to which it was read: it is not the same one."""
    return connection.failed(
        f"the job has read {split} up to offset {at}, and it ends at {end}: the topic was deleted and made again",
        "start the job anew, with a new job_dir",
    )


def gone(connection: Connection, topics: list[str]) -> HeadwaterError:
    """A topic that was there is not there any more."""
    return connection.failed(
        f"topic {', '.join(topics)} does not exist any more", "make it again and start the job anew, or leave it out"
    )


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None
    return offset
