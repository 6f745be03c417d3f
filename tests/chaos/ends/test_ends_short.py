"""A short run between real systems: three kills, the broker and the database restarted once each.

It starts a dozen JVMs, so it is left to `make test-long`. By default `tests/connectors/test_kafka_killed.py` kills a driver
between the same systems while it publishes, `tests/recovery/test_tasks_killed.py` kills workers and an executor, and the
tests of both connectors restart the broker and the database.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from tests.chaos.ends.events import Events
from tests.chaos.ends.run import Torment, chaos

pytestmark = [pytest.mark.recovery, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1500)]


@pytest.mark.usefixtures("kafka_jars")
def test_kafka_to_kafka_and_postgres_is_exactly_once() -> None:
    folder = Path(tempfile.mkdtemp(prefix="hw-ends-"))
    figures = chaos(folder, Torment(Events(6_000, seed=3), 1_000, 3, 1, 1), print)
    assert sum(figures.kills.values()) == 3
    assert figures.epochs >= 6
    shutil.rmtree(folder)
