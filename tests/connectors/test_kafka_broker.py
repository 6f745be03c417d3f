"""The Kafka broker that tests run against: it keeps records, also over a restart."""

from __future__ import annotations

import uuid

from confluent_kafka import Consumer, Producer
from tests.parts.kafka import KafkaBroker


def produce(broker: KafkaBroker, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0


def consumed(broker: KafkaBroker, topic: str, count: int) -> list[bytes]:
    settings = {"bootstrap.servers": broker.servers, "group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    try:
        consumer.subscribe([topic])
        found = [message.value() for message in consumer.consume(count, 30)]
    finally:
        consumer.close()
    return [value for value in found if value is not None]


def test_records_come_back_also_after_a_restart(kafka: KafkaBroker) -> None:
    kafka.create_topic("kept", retention_ms=-1)
    produce(kafka, "kept", b"a", b"b")
    assert consumed(kafka, "kept", 2) == [b"a", b"b"]
    kafka.stop()
    kafka.start()
    produce(kafka, "kept", b"c")
    assert consumed(kafka, "kept", 3) == [b"a", b"b", b"c"]
    kafka.kill()
    kafka.start()
    assert consumed(kafka, "kept", 3) == [b"a", b"b", b"c"]
    kafka.delete_topic("kept")
