"""The Kafka broker that tests run against: it keeps records, also over a restart."""

from __future__ import annotations

from confluent_kafka import Producer
from tests.parts.kafka import KafkaBroker
from tests.parts.topics import messages


def produce(broker: KafkaBroker, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0


def consumed(broker: KafkaBroker, topic: str) -> list[bytes]:
    return [message.value() for message in messages(broker.servers, topic)]


def test_records_come_back_also_after_a_restart(kafka: KafkaBroker) -> None:
    kafka.create_topic("kept", retention_ms=-1)
    produce(kafka, "kept", b"a", b"b")
    assert consumed(kafka, "kept") == [b"a", b"b"]
    kafka.stop()
    kafka.start()
    produce(kafka, "kept", b"c")
    assert consumed(kafka, "kept") == [b"a", b"b", b"c"]
    kafka.kill()
    kafka.start()
    assert consumed(kafka, "kept") == [b"a", b"b", b"c"]
    kafka.delete_topic("kept")
