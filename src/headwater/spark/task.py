"""A task of a level: one subtask in one epoch, in a Python worker of Spark's."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Row

from headwater.spark.copies.computed import Place
from headwater.spark.exchange import salts
from headwater.spark.shipped import ShippedJob
from headwater.spark.worker import worker_of
from headwater.state.changelog import RecordStore


def run_level(job: ShippedJob, level: int, salt: int, payloads: list[bytes], store: RecordStore) -> Iterator[Row]:
    """Compute an epoch on the copy of the state that is current, store what changed, pass on what goes out."""
    by_subtask = salts(job.parallelism)
    done = worker_of(job).copies.epoch(Place(level, by_subtask.index(salt)), payloads, store)
    for target, payload in done.payloads:
        yield Row(subtask=by_subtask[target], payload=bytearray(payload))
    yield Row(subtask=salt, payload=bytearray(done.report.to_bytes()))
