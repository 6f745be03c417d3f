"""Reads the splits of an epoch, in a task.

Packing happens here, so that Spark carries ready payloads.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.epoch.offsets import SplitRange
from headwater.epoch.outbox import stage
from headwater.epoch.reports import TaskReport
from headwater.spark.exchange import salts
from headwater.spark.shipped import ShippedJob
from headwater.spark.worker import worker_of
from headwater.task import garbage_collection
from headwater.task.outlet import Routed

if TYPE_CHECKING:
    from headwater.spark.reader import Bundle

_ARROW = pa.schema([pa.field("subtask", pa.int32()), pa.field("payload", pa.binary())])


def read_bundle(job: ShippedJob, bundle: Bundle) -> Iterator[pa.RecordBatch]:
    """The payloads of the splits, as they become ready, and a report on each."""
    with job.attempt(), garbage_collection.worker_task():
        for place, part in bundle.parts:
            yield from _read_split(job, place, part, bundle)


def _read_split(job: ShippedJob, place: int, part: SplitRange, bundle: Bundle) -> Iterator[pa.RecordBatch]:
    worker = worker_of(job)
    host = worker.split(part.node, part.split)
    by_subtask = salts(job.parallelism)
    for outcome in host.run(part.start, part.end, bundle.facts, ended=part.ended, idle=part.idle):
        ready = outcome.payloads
        if outcome.steps:
            epoch = bundle.facts.epoch
            staged = stage(worker.plan, Path(job.outbox), epoch, f"s{place:04d}", outcome.sink_batches)
            starts, positions = part.at(host.uid, part.start), part.at(host.uid, part.end)
            report = TaskReport(
                tuple(staged),
                outcome.steps,
                positions,
                starts,
                idle=part.idle,
                end=bundle.end,
                now_ms=bundle.facts.now_ms,
            )
            ready = [*ready, (0, report.to_bytes())]
        if ready:
            yield _batch(ready, by_subtask)


def _batch(ready: list[Routed], by_subtask: tuple[int, ...]) -> pa.RecordBatch:
    subtasks = pa.array([by_subtask[subtask] for subtask, _ in ready], pa.int32())
    return pa.RecordBatch.from_arrays([subtasks, pa.array([data for _, data in ready], pa.binary())], schema=_ARROW)
