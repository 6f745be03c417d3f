"""Producers: one whose transactions are epochs, and one that makes sure that every record arrives."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from operator import methodcaller
from typing import Any, ClassVar

from headwater.connectors.kafka.connection import LOG, TRY_S, Connection, Errors, confluent_kafka, is_denied
from headwater.connectors.kafka.encoding import Record
from headwater.connectors.kafka.limits import CLIENT_BYTES
from headwater.connectors.kafka.marker import Marker
from headwater.connectors.kafka.send_errors import RIGHTS, SendError, Stuck, explain, may_pass, too_large
from headwater.errors import PublishError

Records = Callable[[], Iterable[Record]]
"""Gives an epoch's records from the first on, as often as they must be sent."""
_ATTEMPTS = 5
"""How often an epoch is sent whose transactions fail for reasons that pass."""
_POLL_RECORDS = 1000
"""After how many records to hear how earlier ones went."""
_ABORT_S = 5.0
"""How long to try to take a failed transaction back; if that fails, the cluster does it when it times out."""
_STUCK_S = 10.0
"""How long the client may take to hand the cluster an offset. It can wait for ever for a broker that has left the cluster
and come back since (librdkafka, issue 5511); a new client does not."""
_PAUSE_S = 0.1
_BATCH_BYTES = 1_000_000
"""librdkafka's own limit, if `batch.size` does not say another."""
_SOCKET_MS = 10_000
"""How long a request may take before it is made again; a transaction must not be shorter."""
_OURS = {
    "bootstrap.servers": "servers",
    "delivery.report.only.error": "nothing: what is not delivered is told",
    "delivery.timeout.ms": "timeout=",
    "enable.auto.commit": "nothing",
    "enable.idempotence": "nothing: it is on, or records could come twice or out of order",
    "error_cb": "the errors of the job, and the logger 'headwater.kafka'",
    "group.id": "nothing: it follows from sink and job",
    "message.timeout.ms": "timeout=",
    "on_delivery": "nothing: what is not delivered is told",
    "transaction.timeout.ms": "timeout=",
    "transactional.id": "delivery=; it follows from sink and job",
}


class SinkConnection(Connection):
    """A connection to write over."""

    ours: ClassVar = _OURS
    rights: ClassVar = RIGHTS
    sink = ""
    """The uid of the sink, for errors."""
    topic_bytes: int | None = None
    """The most that the topic takes at once, where it is known."""

    @property
    def most_bytes(self) -> int:
        """The most that the client takes as a record."""
        return int(self._resolved(self._options.get("message.max.bytes", CLIENT_BYTES)))

    @property
    def packs(self) -> bool:
        """Whether records are compressed."""
        return any(
            self._resolved(self._options.get(name, "none")) != "none"
            for name in ("compression.type", "compression.codec")
        )

    def batches(self, config: dict[str, Any]) -> dict[str, Any]:
        """Settings with which a batch of many records is not larger than the topic takes."""
        given = int(config.get("batch.size", _BATCH_BYTES))
        return {} if self.topic_bytes is None else {"batch.size": min(given, self.topic_bytes)}

    def failed(self, problem: str, action: str) -> PublishError:
        return PublishError.cannot_write(self.sink, self.what, self.hidden(problem), action)


class Sender(ABC):
    """A client that sends an epoch's records to a topic."""

    def __init__(self, connection: SinkConnection, topic: str, config: dict[str, Any]) -> None:
        self._connection, self._topic = connection, topic
        self._package = confluent_kafka()
        self._errors = Errors(connection)
        self._undelivered: SendError | None = None
        timeout_ms = int(connection.timeout_s * 1000)
        given = connection.config(self._errors, socket_timeout_ms=min(_SOCKET_MS, timeout_ms), **config)
        own = {
            "partitioner": "murmur2_random",  # as Java's clients choose: a key is where their keys are
            "linger.ms": 5,
            **given,
            **connection.batches(given),
            "enable.idempotence": True,
            "message.timeout.ms": timeout_ms,
            "delivery.report.only.error": True,
            "on_delivery": self._delivered,
        }
        self._producer: Any = connection.made(self._package.Producer, own)

    @abstractmethod
    def send(self, records: Records, marker: Marker) -> None:
        """Send an epoch; when this returns, the cluster has it. What fails is a `SendError`."""

    def close(self) -> None:
        """End the client, without waiting for what it has not sent.

        It ends when nothing refers to it. One that lived on, as in the traceback of an error, would go on trying to
        become the only one of its name; so nothing but this attribute refers to it.
        """
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
            producer.flush(0)

    def _produce(self, records: Iterable[Record], deadline: float) -> None:
        topic = self._topic
        for count, record in enumerate(records):
            headers = list(record.headers)
            while True:
                try:
                    self._producer.produce(topic, record.value, record.key, record.partition, headers=headers)
                    break
                except BufferError:  # the queue is full: let it become shorter
                    self._producer.poll(0.1)
                    self._refuse_undelivered()
                    if time.monotonic() > deadline:
                        raise self._no_answer() from None
                except self._package.KafkaException as error:
                    if error.args[0].code() == self._package.KafkaError.MSG_SIZE_TOO_LARGE:
                        raise too_large(record.key, _size_of(record), "this client's") from None
                    raise
            if count % _POLL_RECORDS == 0:
                self._producer.poll(0)
                self._refuse_undelivered()

    def _refuse_undelivered(self) -> None:
        if self._undelivered is not None:
            raise self._undelivered

    def _delivered(self, error: Any, message: Any) -> None:
        """Hears of records that were not delivered; the first counts."""
        if error is None or self._undelivered is not None:
            return
        kinds = self._package.KafkaError
        if error.code() in (kinds._PURGE_QUEUE, kinds._PURGE_INFLIGHT):
            return  # given up because of another
        if error.code() == kinds.MSG_SIZE_TOO_LARGE:
            size = len(message.key() or b"") + len(message.value() or b"")
            self._undelivered = too_large(message.key(), size, "the topic's")
        elif error.code() in (kinds._MSG_TIMED_OUT, kinds._TIMED_OUT):
            self._undelivered = self._no_answer()
        else:
            self._undelivered = explain(error)

    def _no_answer(self) -> SendError:
        told = self._errors.as_text() or "the cluster took too long"
        return SendError(
            f"no answer within {self._connection.timeout_s:g} s: {told}",
            "see that the servers run and let this client in, or raise timeout=",
        )


class PlainSender(Sender):
    """Sends records and waits until the cluster has them; those that an earlier attempt has sent come again."""

    def __init__(self, connection: SinkConnection, topic: str) -> None:
        super().__init__(connection, topic, {})

    def send(self, records: Records, marker: Marker) -> None:
        self._undelivered = None
        deadline = time.monotonic() + self._connection.timeout_s
        try:
            self._produce(records(), deadline)
            left = self._producer.flush(max(0.0, deadline - time.monotonic()))
        except self._package.KafkaException as error:
            raise explain(error.args[0]) from None
        self._refuse_undelivered()
        if left:
            raise self._no_answer()


class EpochSender(Sender):
    """Sends each epoch in a transaction, together with its marker.

    It is known to the cluster by job and sink: `begin` ends what earlier ones of the same name have left, and from then
    on those can send nothing.
    """

    def __init__(self, connection: SinkConnection, topic: str, job: str) -> None:
        uid = connection.sink
        timeout_ms = int(connection.timeout_s * 1000)
        ids = {"transactional_id": f"headwater-{job}-{uid}", "transaction_timeout_ms": timeout_ms}
        super().__init__(connection, topic, ids)
        group = {"group_id": f"headwater-{uid}-{job}", "enable_auto_commit": False, "isolation_level": "read_committed"}
        self._group_settings = connection.config(self._errors, **group)
        self._group: Any = None
        self._is_spent = False

    @property
    def is_sound(self) -> bool:
        """Whether it can go on. One that has heard of an outage may be stuck after it: a new one is safer."""
        self._producer.poll(0)
        return not self._is_spent and self._errors.as_text() is None

    def begin(self) -> Marker | None:
        """Be the only one of this name; how far earlier ones have come, if the cluster knows."""
        deadline = time.monotonic() + self._connection.timeout_s
        try:
            self._do("init_transactions", deadline)
        except self._package.KafkaException as error:
            raise self._failure(error.args[0], deadline) from None
        return self.look()

    def look(self) -> Marker | None:
        """How far those of this name have come, if the cluster knows; they go on."""
        deadline = time.monotonic() + self._connection.timeout_s
        consumer = self._connection.made(self._package.Consumer, self._group_settings)
        try:
            found = self._insist(lambda limit_s: self._committed(consumer, limit_s), deadline)
            self._group = consumer.consumer_group_metadata()
        except self._package.KafkaException as error:
            raise self._failure(error.args[0], deadline) from None
        finally:
            consumer.close()
        return None if found.offset < 0 else Marker.read(found.offset, found.metadata)

    def send(self, records: Records, marker: Marker) -> None:
        deadline = time.monotonic() + self._connection.timeout_s
        attempts = 0
        while True:
            attempts += 1
            self._undelivered = None
            try:
                self._producer.begin_transaction()
                self._produce(records(), deadline)
                self._commit(marker, deadline)
                return
            except self._package.KafkaException as error:
                failure, told = self._failure(error.args[0], deadline), error.args[0]
                again = told.txn_requires_abort() and not failure.is_final
                if not again or attempts == _ATTEMPTS or time.monotonic() > deadline:
                    self._take_back()
                    raise failure from None
                LOG.warning("%s: %s; the epoch is sent again", self._connection.what, failure.why)
                self._do("abort_transaction", deadline)
            except Stuck:
                raise
            except BaseException:
                self._take_back()
                raise

    def _committed(self, consumer: Any, limit_s: float) -> Any:
        try:
            (found,) = consumer.committed([self._package.TopicPartition(self._topic, 0)], min(TRY_S, limit_s))
        except self._package.KafkaException:
            heard = consumer.poll(0)  # why there is no answer, if the cluster has said so
            if heard is not None and heard.error() is not None and is_denied(heard.error()):
                raise self._package.KafkaException(heard.error()) from None
            raise
        if found.error is not None:
            raise self._package.KafkaException(found.error)
        return found

    def _commit(self, marker: Marker, deadline: float) -> None:
        place = self._package.TopicPartition(self._topic, 0, marker.offset, marker.metadata)
        self._within(
            min(_STUCK_S, deadline - time.monotonic()),
            lambda limit_s: self._producer.send_offsets_to_transaction([place], self._group, limit_s),
        )
        self._do("commit_transaction", deadline)

    def _failure(self, told: Any, deadline: float) -> SendError:
        """What is wrong: what became of a record says more than that the transaction failed."""
        if self._undelivered is not None:
            return self._undelivered
        failure = explain(told)
        is_late = time.monotonic() >= deadline
        return self._no_answer() if is_late and (failure.is_fenced or not failure.is_final) else failure

    def _take_back(self) -> None:
        try:
            self._producer.purge()
            self._producer.abort_transaction(_ABORT_S)
        except self._package.KafkaException as error:
            self._is_spent = True
            LOG.debug("%s: the transaction is left to the cluster: %s", self._connection.what, error.args[0].str())

    def _within(self, limit_s: float, call: Callable[[float], Any]) -> None:
        """Insist on a call that may not come back: it is made in a thread, which is given up then."""
        raised: list[BaseException | None] = []

        def run() -> None:
            try:
                self._insist(call, time.monotonic() + limit_s)
                raised.append(None)
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=run, name="headwater-kafka-offsets", daemon=True)
        thread.start()
        thread.join(limit_s + 1)
        if not raised:
            self._is_spent = True
            raise Stuck(f"no answer within {limit_s:g} s for the epoch's number", "see that the servers run")
        if raised[0] is not None:
            raise raised[0]

    def _do(self, step: str, deadline: float) -> None:
        self._insist(lambda limit_s: methodcaller(step, limit_s)(self._producer), deadline)

    def _insist(self, call: Callable[[float], Any], deadline: float) -> Any:
        """Call again as long as that helps and there is time."""
        while True:
            left_s = deadline - time.monotonic()
            try:
                return call(max(0.1, left_s))
            except self._package.KafkaException as error:
                self._producer.poll(0)
                if self._errors.is_hopeless or left_s <= 0 or not may_pass(error.args[0]):
                    raise
            time.sleep(_PAUSE_S)


def _size_of(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"")
