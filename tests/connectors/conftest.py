from __future__ import annotations

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
