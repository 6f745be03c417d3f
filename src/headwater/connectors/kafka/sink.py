"""Rows out to a Kafka topic: the records of an epoch and its number are committed in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.connectors.contract import Guarantee, Sink, Staged, read_staged
from headwater.connectors.kafka.cluster import Cluster
from headwater.connectors.kafka.connection import confluent_kafka
from headwater.connectors.kafka.encoding import Encoding, Record, read_records
from headwater.connectors.kafka.marker import Marker, Note
from headwater.connectors.kafka.send_errors import SendError
from headwater.connectors.kafka.sending import EpochSender, PlainSender, Sender, SinkConnection
from headwater.errors import PublishError
from headwater.schema import Schema

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
        self._connection: SinkConnection | None = connection
        self._what = f"{connection.what}, {self.guarantee}"
        self._uid, self._job = "kafka_sink", ""
        self._sender: Sender | None = None
        self._marker: Marker | None = None

    def __repr__(self) -> str:
        return f"KafkaSink({self.describe()})"

    def __getstate__(self) -> dict[str, Any]:
        """Tasks only encode: they get neither options, which may be secret, nor clients."""
        return {**self.__dict__, "_connection": None, "_sender": None, "_marker": None}

    def describe(self) -> str:
        return self._what

    def stage(self, table: pa.Table, path: Path) -> None:
        super().stage(self._encoding.encode(table, self._uid), path)

    def take_over(self, uid: str, job_id: str, before: str, epoch: int) -> None:
        """Mark the job that the savepoint is of, and any that went on from it in vain, as followed by this one."""
        connection = self._connected(uid)
        if self.guarantee is Guarantee.AT_LEAST_ONCE:
            return
        job: str | None = before
        while job is not None and job != job_id:
            sender = EpochSender(connection, self._topic, job)
            try:
                found = sender.begin() or Marker(job)
                if found.next_job not in (None, job_id) and (found.before, found.savepoint) != (before, epoch):
                    raise self._refused(found)
                if found.epoch > epoch:
                    raise PublishError.published_after(
                        uid,
                        connection.what,
                        epoch,
                        f"it has epoch {found.epoch} of job {job}",
                        "write to another topic",
                    )
                sender.send(list, found.handed_to(job_id, before, epoch))
            except SendError as failed:
                raise connection.failed(failed.why, failed.action) from None
            finally:
                sender.close()
            job = found.next_job

    def open(self, uid: str, job_id: str, schema: Schema, *, resumed: bool) -> None:
        self._uid, self._job = uid, job_id
        self._encoding.check(schema.arrow, uid)
        self.close()
        connection = self._connected(uid)
        if not Cluster(connection).topics([self._topic]):
            raise connection.failed("the topic does not exist", "make it, or mend its name")
        if self.guarantee is Guarantee.AT_LEAST_ONCE:
            self._sender = PlainSender(connection, self._topic)
            return
        sender = EpochSender(connection, self._topic, job_id)
        self._sender = sender
        try:
            self._marker = sender.begin()
        except SendError as failed:
            raise connection.failed(failed.why, failed.action) from None
        if self._marker is not None and self._marker.next_job is not None:
            raise self._refused(self._marker)

    def publish(self, epoch: int, files: list[Staged]) -> None:
        marker = self._marker
        if not files or (marker is not None and epoch <= marker.epoch):
            return
        assert self._sender is not None, "a sink that has failed is opened again"
        if self.guarantee is Guarantee.EXACTLY_ONCE:
            note = Note(files[0].path, self._uid)
            if marker is None and epoch <= note.epoch():
                raise self._unknown(epoch, note)
            note.write(epoch)
        marker = Marker(self._job, epoch)
        try:
            self._sender.send(lambda: self._records(files), marker)
        except SendError as failed:
            raise PublishError.failed(self._uid, epoch, f"{self._what}: {failed.why} ({failed.action})") from None
        if self.guarantee is Guarantee.EXACTLY_ONCE:
            self._marker = marker

    def close(self) -> None:
        sender, self._sender, self._marker = self._sender, None, None
        if sender is not None:
            sender.close()

    def _connected(self, uid: str) -> SinkConnection:
        assert self._connection is not None, "tasks do not connect"
        self._connection.sink = uid
        return self._connection

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
