from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.parts.kafka import KafkaBroker


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    """The one Kafka broker of the run. A test that stops it starts it again.

    Where its jars cannot be fetched, the tests that need it are left out; but never where CI says that all must run.
    """
    from tests.parts.kafka import KafkaBroker
    from tests.parts.maven import MavenUnreachable

    try:
        broker = KafkaBroker()
    except MavenUnreachable as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no Kafka broker: {error}")
    try:
        broker.start()
        yield broker
    finally:
        broker.remove()
