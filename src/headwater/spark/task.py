"""A task of a level: one subtask in one epoch, in a Python worker of Spark's."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import Row

from headwater.epoch.outbox import stage
from headwater.epoch.reports import LevelTimes, level_report
from headwater.savepoints.origin import begin
from headwater.spark.exchange import salts
from headwater.spark.shipped import ShippedJob
from headwater.spark.worker import worker_of
from headwater.state.changelog import RecordStore, append, catch_up
from headwater.task import garbage_collection


def run_level(job: ShippedJob, level: int, salt: int, payloads: list[bytes], store: RecordStore) -> Iterator[Row]:
    """Bring the worker's copy of the state up to date, run the host, store what changed, stage what goes out."""
    with garbage_collection.worker_task():
        worker, by_subtask = worker_of(job), salts(job.parallelism)
        subtask = by_subtask.index(salt)
        host = worker.host(level, subtask)
        times = LevelTimes()  # without what a new process imports
        head = catch_up(host, store, f"level {level}, subtask {subtask}")
        times.caught_up()
        if head is None:
            begin(host, worker.plan, subtask, job.origin)
        host.token = None  # not to be trusted again before this attempt has come to its end
        outcome = host.run(payloads)
        written = append(host, store, head, uuid.uuid4().hex)
        outcome = host.weighed(outcome)
        staged = stage(worker.plan, Path(job.outbox), outcome.epoch, f"l{level}-{subtask:04d}", outcome.sink_batches)
        for target, payload in outcome.payloads:
            yield Row(subtask=by_subtask[target], payload=bytearray(payload))
        report = times.told_by(level_report(outcome, staged, written))
        yield Row(subtask=salt, payload=bytearray(report.to_bytes()))
