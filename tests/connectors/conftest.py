from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.parts.kafka import KafkaBroker


@pytest.fixture(scope="session")
def kafka(kafka_jars: None) -> Iterator[KafkaBroker]:
    """The one Kafka broker of the run. A test that stops it starts it again."""
    from tests.parts.kafka import KafkaBroker

    broker = KafkaBroker()
    try:
        broker.start()
        yield broker
    finally:
        broker.remove()


@pytest.fixture
def topic(kafka: KafkaBroker, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own, of as many partitions as it asks for."""
    name = f"orders-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(name, getattr(request, "param", 1))
    return name
