from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from tests.parts.examples import LONG, examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.parts.postgres import PostgresServer

os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData")
"""A JVM that lives some minutes had better compile quickly than well: a job in a new one takes two thirds of the time."""

hypothesis.settings.register_profile("headwater", examples(100), deadline=None, derandomize=not LONG, print_blob=True)
hypothesis.settings.load_profile("headwater")

LEFT_OUT = pytest.StashKey[str]()
"""Why the tests that need a Kafka broker are left out."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Deal the tests out to workers as they share fixtures."""
    from tests.parts.shares import Shares

    return Shares(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the unit tests first: they take seconds, and must pass before a JVM has started.

    Leave long tests to `make test-long`, and those that need a Kafka broker out where its jars cannot be fetched; but
    never where CI says that all must run.
    """
    items.sort(key=lambda item: "unit" not in item.path.parts)
    if not LONG:
        _deselect(config, items, [item for item in items if item.get_closest_marker("long")])
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
        _deselect(config, items, with_kafka)


def _deselect(config: pytest.Config, items: list[pytest.Item], some: list[pytest.Item]) -> None:
    if some:
        config.hook.pytest_deselected(items=some)
        items[:] = [item for item in items if item not in some]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let a worker tell what it left out."""
    config: Any = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = config.stash.get(LEFT_OUT, "")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Hear it: every worker left out the same."""
    left_out = getattr(node, "workeroutput", {}).get("left_out")
    if left_out:
        node.config.stash[LEFT_OUT] = left_out


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
