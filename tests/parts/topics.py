"""What is in a topic, for whoever reads it to its end."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

_ANSWER_S = 30


def messages(servers: str, topic: str, isolation: str = "read_committed") -> Iterator[Any]:
    """All records of a topic, partition by partition, in order; those of open and aborted transactions only if wanted."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": uuid.uuid4().hex,
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    try:
        for partition in sorted(consumer.list_topics(topic, timeout=_ANSWER_S).topics[topic].partitions):
            consumer.assign([TopicPartition(topic, partition, 0)])
            yield from _to_the_end(consumer, f"{topic}-{partition}")
    finally:
        consumer.close()


def _to_the_end(consumer: Consumer, partition: str) -> Iterator[Any]:
    while True:
        message = consumer.poll(_ANSWER_S)
        if message is None:
            raise TimeoutError(f"{partition} cannot be read to its end")
        error = message.error()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:
            return
        elif not error.retriable():
            raise KafkaException(error)
