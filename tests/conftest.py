from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.parts.postgres import PostgresServer


LEFT_OUT = pytest.StashKey[str]()
"""Why the tests that need a Kafka broker are left out."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the unit tests first: they take seconds, and must pass before a JVM has started.

    Leave out those that need a Kafka broker where its jars cannot be fetched; but never where CI says that all must run.
    """
    items.sort(key=lambda item: "unit" not in item.path.parts)
    with_kafka = [item for item in items if "kafka_jars" in getattr(item, "fixturenames", ())]
    if not with_kafka or os.environ.get("CI"):
        return
    from tests.parts.kafka import broker_jars
    from tests.parts.maven import MavenUnreachable

    try:
        broker_jars()
    except MavenUnreachable as error:
        files = Counter(item.nodeid.partition("::")[0] for item in with_kafka)
        which = "".join(f"\n  {file} ({count})" for file, count in files.items())
        config.stash[LEFT_OUT] = f"{len(with_kafka)} tests need a Kafka broker and are left out: {error}{which}"
        config.hook.pytest_deselected(items=with_kafka)
        items[:] = [item for item in items if item not in with_kafka]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say once what was left out."""
    if LEFT_OUT in config.stash:
        terminalreporter.write_line(config.stash[LEFT_OUT], yellow=True)


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
    """The jars of a Kafka broker, in the cache."""
    from tests.parts.kafka import broker_jars

    broker_jars()
