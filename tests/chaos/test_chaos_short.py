"""A short run of the chaos suite: three kills, a damaged checkpoint, a full disk and slow storage.

It takes minutes, so it is left to `make test-long`. By default `tests/recovery` kills workers, an executor, the driver and
its JVM, `tests/spark/test_failures.py` damages checkpoints, and `tests/connectors/test_kafka_killed.py` kills a driver
between Kafka and PostgreSQL.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from tests.chaos.plan import Act
from tests.chaos.run import chaos

pytestmark = [pytest.mark.recovery, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1500)]


def test_nothing_is_lost_or_doubled_in_chaos() -> None:
    folder = Path(tempfile.mkdtemp(prefix="hw-chaos-"))  # short: sockets of Spark's workers lie in it
    figures = chaos(folder, kills=3, seed=1, tell=print, moved=lambda _: None)
    assert figures.kills == {Act.WORKER: 1, Act.EXECUTOR: 1, Act.DRIVER: 1}
    assert (figures.lost, figures.doubled) == (0, 0)
    assert figures.refused <= figures.faults[Act.DAMAGED] == 1
    assert figures.rows_in > 0
    shutil.rmtree(folder)
