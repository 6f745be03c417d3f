from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from tests.parts import shared_classes, temporary_files
from tests.parts.examples import LONG, examples

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession
    from tests.parts.postgres import PostgresServer

temporary_files.use()
shared_classes.use()
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # by a shell, in what it runs in the background and all below it
    signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile("headwater", examples(100), deadline=None, derandomize=not LONG, print_blob=True)
hypothesis.settings.load_profile("headwater")

LEFT_OUT = pytest.StashKey[str]()
"""Why tests are left out that need a Kafka broker, or a browser."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Deal the tests out to workers as they share fixtures."""
    from tests.parts.shares import Shares

    return Shares(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the unit tests first: they take seconds, and must pass before a JVM has started.

    Leave long tests to `make test-long`, and those that need a Kafka broker or a browser out where its jars cannot be
    fetched, or it cannot be installed; but never where CI says that all must run.
    """
    items.sort(key=lambda item: "unit" not in item.path.parts)
    if not LONG:
        _deselect(config, items, [item for item in items if item.get_closest_marker("long")])
    if os.environ.get("CI"):
        return
    _leave_out(config, items, "kafka_jars", "a Kafka broker", _no_broker)
    _leave_out(config, items, "chromium", "a browser", _no_browser)


def _leave_out(
    config: pytest.Config, items: list[pytest.Item], fixture: str, what: str, why_not: Callable[[], str | None]
) -> None:
    """Leave out what uses a fixture that cannot be had here, and note why."""
    some = [item for item in items if fixture in getattr(item, "fixturenames", ())]
    reason = why_not() if some else None
    if reason is not None:
        files = Counter(item.nodeid.partition("::")[0] for item in some)
        which = "".join(f"\n  {file} ({count})" for file, count in files.items())
        told = f"{len(some)} tests need {what} and are left out: {reason}{which}"
        config.stash[LEFT_OUT] = "\n".join([*filter(None, [config.stash.get(LEFT_OUT, "")]), told])
        _deselect(config, items, some)


def _no_broker() -> str | None:
    from tests.parts.kafka import broker_jars
    from tests.parts.maven import MavenUnreachable

    try:
        broker_jars()
    except MavenUnreachable as error:
        return str(error)
    return None


def _no_browser() -> str | None:
    from tests.parts.chromium import ChromiumMissing, chromium

    try:
        chromium()
    except ChromiumMissing as error:
        return str(error)
    return None


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
def chromium() -> Iterator[Browser]:
    """The one browser of the run."""
    from tests.parts.chromium import browser

    with browser() as started:
        yield started


@pytest.fixture(scope="session")
def kafka_jars() -> None:
    """The jars of a Kafka broker, in the cache."""
    from tests.parts.kafka import broker_jars

    broker_jars()
