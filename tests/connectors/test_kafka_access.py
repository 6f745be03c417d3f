"""What the cluster does not allow is told at once, with what to allow."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation, ResourceType
from tests.parts.kafka import KafkaBroker, login

import headwater as hw

LIMIT = "60 s"
"""Longer than a test may take: what is denied must not be waited for."""


def read(kafka: KafkaBroker, topic: str, **settings: Any) -> list[Any]:
    env = hw.Environment("access", engine="local")
    source = hw.connectors.kafka(topic, kafka.sasl_servers, options=login(kafka.password), timeout=LIMIT, **settings)
    return [row.n for row in env.source(source, "n long").collect()]


def write(kafka: KafkaBroker, topic: str) -> None:
    env = hw.Environment("access", engine="local")
    sink = hw.connectors.kafka_sink(topic, kafka.sasl_servers, options=login(kafka.password), timeout=LIMIT)
    env.from_rows([(1,)], "n long").sink(sink)
    env.run(bounded=True)


@pytest.fixture
def filled(kafka: KafkaBroker, topic: str) -> str:
    """The topic, with a record."""
    producer = Producer({"bootstrap.servers": kafka.servers})
    producer.produce(topic, b'{"n": 1}')
    assert producer.flush(20) == 0
    return topic


@pytest.mark.parametrize("operation", [AclOperation.READ, AclOperation.DESCRIBE])
def test_a_topic_that_may_not_be_read(kafka: KafkaBroker, filled: str, operation: AclOperation) -> None:
    with (
        kafka.denied(ResourceType.TOPIC, filled, operation),
        pytest.raises(
            hw.SourceError,
            match=r"does not allow it: .*Topic authorization failed; allow the client to read and to describe the topic",
        ),
    ):
        read(kafka, filled)
    assert read(kafka, filled) == [1]


def test_records_are_read_where_no_group_is_allowed(
    kafka: KafkaBroker, filled: str, caplog: pytest.LogCaptureFixture
) -> None:
    with kafka.denied(ResourceType.GROUP, "*", AclOperation.READ):
        assert read(kafka, filled) == [1]
        assert caplog.records == []


def test_a_group_that_may_not_be_used_is_told_and_ends_nothing(
    kafka: KafkaBroker, filled: str, caplog: pytest.LogCaptureFixture
) -> None:
    with kafka.denied(ResourceType.GROUP, "watched", AclOperation.READ), caplog.at_level(logging.WARNING):
        assert read(kafka, filled, group="watched") == [1]
    assert any(
        "offsets of group watched are not committed" in message and "allow the client to read the group" in message
        for message in caplog.messages
    )


@pytest.mark.parametrize(
    ("kind", "operation"),
    [
        (ResourceType.TOPIC, AclOperation.WRITE),
        (ResourceType.TOPIC, AclOperation.DESCRIBE),
        (ResourceType.TRANSACTIONAL_ID, AclOperation.WRITE),
        (ResourceType.TRANSACTIONAL_ID, AclOperation.DESCRIBE),
        (ResourceType.GROUP, AclOperation.READ),
    ],
)
def test_what_a_sink_needs_and_may_not(
    kafka: KafkaBroker, topic: str, kind: ResourceType, operation: AclOperation
) -> None:
    name = topic if kind is ResourceType.TOPIC else "*"
    with (
        kafka.denied(kind, name, operation),
        pytest.raises(
            hw.PublishError,
            match=r"does not allow it: .*authorization failed.*; allow the client to write to the topic, and to use the "
            r"transactional ids and groups that begin with 'headwater-'",
        ),
    ):
        write(kafka, topic)
    write(kafka, topic)
