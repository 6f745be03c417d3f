"""Rows out to a Kafka topic: the records of an epoch and its number are committed in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.connectors.contract import Changes, Guarantee, Sink, Staged, read_staged
from headwater.connectors.kafka.cluster import Cluster
from headwater.connectors.kafka.connection import confluent_kafka
from headwater.connectors.kafka.encoding import Encoding, Record, read_records
from headwater.connectors.kafka.limits import Limits
from headwater.connectors.kafka.marker import Marker, Note
from headwater.connectors.kafka.send_errors import SendError, Stuck
from headwater.connectors.kafka.sending import EpochSender, PlainSender, Sender, SinkConnection
from headwater.data.schema import Schema
from headwater.errors import PublishError

_PIECE_ROWS = 10_000
"""Records that are Python objects at a time."""


class KafkaSink(Sink):
    """Sends records that tasks have encoded, from the driver and in order.

    What the cluster knows of an epoch, and how a topic is handed over, is in `Marker`; a topic has no owner, so other jobs
    may write to it too.
    """

    def __init__(self, topic: str, connection: SinkConnection, encoding: Encoding, *, is_exactly_once: bool) -> None:
        confluent_kafka()  # where it is missing, say so while the job is built
        self.guarantee = Guarantee.EXACTLY_ONCE if is_exactly_once else Guarantee.AT_LEAST_ONCE
        self._topic, self._encoding = topic, encoding
        if encoding.is_upsert:
            self.changes, self.upsert_key = Changes.APPLIED, encoding.key
        self._connection: SinkConnection | None = connection
        self._what = f"{connection.what}, {self.guarantee}"
        self._uid, self._job = "kafka_sink", ""
        self._sender: Sender | None = None
        self._marker: Marker | None = None
        self._limits: Limits | None = None
        """Known when it is open, and then in tasks too."""

    def __getstate__(self) -> dict[str, Any]:
        """Tasks only encode: they get neither options, which may be secret, nor clients."""
        return {**self.__dict__, "_connection": None, "_sender": None, "_marker": None}

    def describe(self) -> str:
        return self._what

    def stage(self, table: pa.Table, path: Path) -> None:
        records = self._encoding.encode(table, self._uid)
        if self._limits is not None:
            self._limits.check(records, self._uid)
        super().stage(records, path)

    def take_over(self, uid: str, job_id: str, before: str, epoch: int) -> None:
        """Mark the job that the savepoint is of, and any that went on from it in vain, as followed by this one.

        First all of them are only looked at, so that a start which is refused does not end a job that runs.
        """
        if self.guarantee is Guarantee.AT_LEAST_ONCE:
            return
        self._uid, self._job = uid, job_id
        connection = self._with_topic(uid)
        for is_sure in (False, True):
            job: str | None = before
            while job is not None and job != job_id:
                sender = EpochSender(connection, self._topic, job)
                try:
                    found = (sender.begin() if is_sure else sender.look()) or Marker(job)
                    self._check_end(found, before, epoch)
                    if is_sure:
                        sender.send(list, found.handed_to(job_id, before, epoch))
                except SendError as failed:
                    raise connection.failed(failed.why, failed.action) from None
                finally:
                    sender.close()
                job = found.next_job

    def _check_end(self, marker: Marker, before: str, epoch: int) -> None:
        """Refuse to follow a job that is not at the savepoint, or that another one follows from somewhere else."""
        if marker.next_job not in (None, self._job) and (marker.before, marker.savepoint) != (before, epoch):
            raise self._refused(marker)
        if marker.epoch > epoch:
            what, found = self._connected(self._uid).what, f"it has epoch {marker.epoch} of job {marker.job}"
            raise PublishError.published_after(self._uid, what, epoch, found, "write to another topic")

    def open(self, uid: str, job_id: str, schema: Schema, *, resumed: bool) -> None:
        self._uid, self._job = uid, job_id
        self._encoding.check(schema.arrow, uid)
        self.close()
        connection = self._with_topic(uid)
        if self.guarantee is Guarantee.AT_LEAST_ONCE:
            self._sender = PlainSender(connection, self._topic)
            return
        try:
            self._begin()
        except SendError as failed:
            raise connection.failed(failed.why, failed.action) from None

    def publish(self, epoch: int, files: list[Staged]) -> None:
        if not files:
            return
        try:
            if self.guarantee is Guarantee.AT_LEAST_ONCE:
                assert self._sender is not None
                self._sender.send(lambda: self._records(files), Marker(self._job, epoch))
            else:
                self._publish_once(epoch, files)
        except SendError as failed:
            why = self._connected(self._uid).hidden(failed.why)
            raise PublishError.failed(self._uid, epoch, f"{self._what}: {why} ({failed.action})") from None

    def _publish_once(self, epoch: int, files: list[Staged]) -> None:
        for is_last in (False, True):
            sender = self._sender
            if not isinstance(sender, EpochSender) or not sender.is_sound:
                sender = self._begin()
            if self._marker is not None and epoch <= self._marker.epoch:
                return
            try:
                self._send(sender, epoch, files)
                return
            except Stuck:
                if is_last:
                    raise

    def _send(self, sender: EpochSender, epoch: int, files: list[Staged]) -> None:
        note = Note(files[0].path, self._uid, self._job, self._topic)
        if self._marker is None:
            if epoch <= note.epoch():
                raise self._unknown(epoch, note)
            first = Marker(self._job, epoch - 1)
            sender.send(list, first)  # what is noted from here on, the cluster has known
            self._marker = first
        note.write(epoch)
        marker = Marker(self._job, epoch)
        sender.send(lambda: self._records(files), marker)
        self._marker = marker

    def _begin(self) -> EpochSender:
        """Make a client that is the only one of this sink and job, and see how far they have come."""
        self.close()
        sender = self._sender = EpochSender(self._connected(self._uid), self._topic, self._job)
        try:
            self._marker = sender.begin()
            if self._marker is not None and self._marker.next_job is not None:
                raise self._refused(self._marker)
        except BaseException:
            self.close()
            raise
        return sender

    def close(self) -> None:
        sender, self._sender, self._marker = self._sender, None, None
        if sender is not None:
            sender.close()

    def _connected(self, uid: str) -> SinkConnection:
        assert self._connection is not None, "tasks do not connect"
        self._connection.sink = uid
        return self._connection

    def _with_topic(self, uid: str) -> SinkConnection:
        """The connection, when it is known that there is something to write to, and what that takes."""
        connection = self._connected(uid)
        cluster = Cluster(connection)
        found = cluster.topics([self._topic])
        if not found:
            raise connection.failed("the topic does not exist", "make it, or mend its name")
        topic_bytes = None if connection.packs else cluster.max_message_bytes(self._topic)
        connection.topic_bytes = topic_bytes
        self._limits = Limits(connection.most_bytes, topic_bytes, len(found[self._topic].partitions))
        return connection

    def _records(self, files: list[Staged]) -> Iterator[Record]:
        last = self._last_of_keys(files)
        at = 0
        for file in files:
            for batch in self._read(file).to_batches(max_chunksize=_PIECE_ROWS):
                for record in read_records(pa.Table.from_batches([batch])):
                    if not record.is_half or last[record.key] == at:
                        yield record
                    at += 1

    def _last_of_keys(self, files: list[Staged]) -> dict[bytes | None, int]:
        """Where in the epoch each key comes last; empty if there are no halves of changes, for which it counts."""
        last: dict[bytes | None, int] = {}
        tables = [self._read(file).select(["key", "half"]) for file in files]
        if any(True in table.column("half").unique().to_pylist() for table in tables):
            keys = (key for table in tables for key in table.column("key").to_pylist())
            last = {key: at for at, key in enumerate(keys)}
        return last

    def _read(self, file: Staged) -> pa.Table:
        try:
            return read_staged(file)
        except FileNotFoundError:
            raise PublishError.staged_file_missing(self._uid, file.path) from None

    def _refused(self, marker: Marker) -> PublishError:
        assert self._connection is not None
        what, owner = self._connection.what, str(marker.next_job)
        if marker.before == self._job:
            return PublishError.handed_over(self._uid, what, marker.savepoint or 0, owner)
        action = "write to another topic, or give this sink another uid with .with_uid(...)"
        return PublishError.output_of_another_job(
            self._uid, what, f"sink {self._uid!r} of job {owner}", self._job, action
        )

    def _unknown(self, epoch: int, note: Note) -> PublishError:
        """Kafka forgets offsets after days, so it cannot say whether an epoch that was being sent has arrived."""
        assert self._connection is not None
        return self._connection.failed(
            f"epoch {epoch} was being sent when the job was last stopped, and the cluster does not know any more whether it "
            f"has arrived: the offset of group headwater-{self._uid}-{self._job} has expired (offsets.retention.minutes)",
            f"look into the topic; if the rows of the epoch are not there, remove {note.path}; if they are, remove the lines "
            f"of this sink from the manifest of the epoch in the same folder; then start the job again",
        )
