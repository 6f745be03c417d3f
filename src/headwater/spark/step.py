"""A level as a step of Spark's query: one call per subtask and epoch."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from headwater.epoch.outbox import stage
from headwater.epoch.reports import level_report
from headwater.savepoints.origin import begin
from headwater.spark.exchange import salts
from headwater.spark.records import SparkRecordStore
from headwater.spark.shipped import ShippedJob
from headwater.state.changelog import append, catch_up
from headwater.task import garbage_collection

ROW_SCHEMA = "subtask int, payload binary"


class LevelProcessor(StatefulProcessor):
    """Brings the worker's copy of the state up to date, runs the host, stores what changed, stages what goes out."""

    def __init__(self, job: ShippedJob, level: int) -> None:
        self._job, self._level = job, level

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._store = SparkRecordStore(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        with self._job.attempt(), garbage_collection.worker_task():
            yield from self._run(key[0], [bytes(row.payload) for row in rows])

    def _run(self, salt: int, payloads: list[bytes]) -> Iterator[Row]:
        job = self._job
        by_subtask = salts(job.parallelism)
        subtask = by_subtask.index(salt)
        host = job.host(self._level, subtask)
        head = catch_up(host, self._store, f"level {self._level}, subtask {subtask}")
        if head is None:
            begin(host, job.plan(), subtask, job.origin)
        host.token = None  # not to be trusted again before this attempt has come to its end
        outcome = host.run(payloads)
        written = append(host, self._store, head, uuid.uuid4().hex)
        staged = stage(
            job.plan(), Path(job.outbox), outcome.epoch, f"l{self._level}-{subtask:04d}", outcome.sink_batches
        )
        for target, payload in outcome.payloads:
            yield Row(subtask=by_subtask[target], payload=bytearray(payload))
        yield Row(subtask=salt, payload=bytearray(level_report(outcome, staged, written).to_bytes()))

    def close(self) -> None:
        """The worker keeps its copy; the next task on it may go on from there."""
