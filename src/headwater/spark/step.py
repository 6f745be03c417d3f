"""A level as a step of Spark's query: one call per subtask and epoch.

Spark also starts a process for each query that only asks which state a step has: what tasks need is imported by them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from headwater.spark.records import SparkRecordStore
from headwater.spark.shipped import ShippedJob

ROW_SCHEMA = "subtask int, payload binary"


class LevelProcessor(StatefulProcessor):
    """Brings the worker's copy of the state up to date, runs the host, stores what changed, stages what goes out."""

    def __init__(self, job: ShippedJob, level: int) -> None:
        self._job, self._level = job, level

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._store = SparkRecordStore(handle, self._job.folder_version)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        from headwater.spark.task import run_level

        with self._job.attempt():
            yield from run_level(self._job, self._level, key[0], [bytes(row.payload) for row in rows], self._store)

    def close(self) -> None:
        """The worker keeps its copy; the next task on it may go on from there."""
