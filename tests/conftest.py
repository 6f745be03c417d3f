from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.parts.postgres import PostgresServer


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the unit tests first: they take seconds, and must pass before a JVM has started."""
    items.sort(key=lambda item: "unit" not in item.path.parts)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the run: starting a JVM takes longer than most tests."""
    from headwater.spark.session import local_session

    session = local_session(2, {"spark.driver.memory": "2g"})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The one PostgreSQL server of the run. A test that stops it starts it again."""
    from tests.parts.postgres import PostgresServer

    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def kafka_jars() -> None:
    """The jars of a Kafka broker, in the cache.

    Where they cannot be fetched, the tests that need them are left out; but never where CI says that all must run.
    """
    from tests.parts.kafka import broker_jars
    from tests.parts.maven import MavenUnreachable

    try:
        broker_jars()
    except MavenUnreachable as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"there is no Kafka broker to test with: {error}")
