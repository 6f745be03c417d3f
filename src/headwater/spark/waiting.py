"""Whether an epoch runs, and what one that does not come to its end may wait for."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.sizes import size_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOG = logging.getLogger("headwater.job")
_LONG_S = 60.0
"""After how long without a new epoch the disk is looked at, and again."""
_LITTLE_BYTES = 256 << 20


def is_in_epoch(query: StreamingQuery) -> bool:
    """Whether an epoch may be running; a trigger that starts after a stop was requested plans none."""
    status = query.status
    return bool(status["isTriggerActive"] and status["isDataAvailable"])


def local_files(spark: SparkSession) -> Path:
    """Where Spark keeps working copies; on a cluster that is the driver's."""
    configured = spark.sparkContext.getConf().get("spark.local.dir") or tempfile.gettempdir()
    return Path((os.environ.get("SPARK_LOCAL_DIRS") or configured).split(",")[0])


class LocalDisk:
    """The disk of Spark's local files. If it is full nobody else tells: RocksDB waits within a write, and waits on."""

    def __init__(self, job: str, folder: Path) -> None:
        self._job, self._folder = job, folder
        self._newest, self._looked_s = -1, time.monotonic()

    def look(self, newest: int, runs: Callable[[], bool]) -> None:
        """Tell of a full disk if none has come after the newest epoch for long, and one runs."""
        now_s = time.monotonic()
        if newest == self._newest and now_s - self._looked_s < _LONG_S:
            return
        is_long, self._newest, self._looked_s = newest == self._newest, newest, now_s
        if not is_long or not self._folder.is_dir() or not runs():
            return
        free = shutil.disk_usage(self._folder).free
        if free < _LITTLE_BYTES:
            _LOG.warning(
                "job %r: no epoch was published for %.0f s, and the disk of Spark's local files %s has %s free; its state "
                "store waits for room there, and may not go on when there is some: make room, and if no epoch follows, kill "
                "the process and start the job again; nothing is lost",
                self._job,
                _LONG_S,
                self._folder,
                size_text(free),
            )
