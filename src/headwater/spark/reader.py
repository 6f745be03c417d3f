"""Plans the epochs of a job, and has tasks read its splits.

The epoch's time is part of the offset, which Spark logs before it runs the epoch; a replay reads the same ranges at the
same time. Spark starts a process for each query that only plans: what tasks need is imported by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from headwater.epoch import offsets
from headwater.epoch.alignment import MarksFile
from headwater.epoch.backpressure import BacklogFile, Unaligned
from headwater.epoch.offset import Offset
from headwater.epoch.offsets import SplitRange
from headwater.job.checkpoints.replay import Replay
from headwater.job.layout import OutboxLayout
from headwater.spark.failures import marked
from headwater.spark.shipped import Request
from headwater.spark.source import ReadPlan
from headwater.spark.worker import worker_of
from headwater.task.payload import EpochFacts

Logged = dict[str, Any]
"""An offset as Spark's offset log has it."""
_LOG = "the offset log of Spark"


@dataclass
class Bundle(InputPartition):
    """The splits that one task reads in an epoch, each with its place in the epoch's list of splits."""

    facts: EpochFacts
    parts: list[tuple[int, SplitRange]]
    end: bool


class JobReader(DataSourceStreamReader):
    """Plans epochs in the driver's planning worker, reads splits in tasks."""

    def __init__(self, plan: ReadPlan) -> None:
        self._read_plan = plan
        self._job = plan.job
        self._has_planned = False

    def initialOffset(self) -> Logged:  # noqa: N802
        with marked():
            return offsets.first_offset(worker_of(self._job).plan, self._read_plan.clock, self._job.origin).to_json()

    def latestOffset(self, start: Logged, limit: Any) -> Logged:  # noqa: N802
        with marked():
            if self._job.is_requested(Request.STOP):
                return start
            before = Offset.from_json(start, _LOG)
            after = Replay.in_outbox(OutboxLayout(Path(self._job.outbox))).next_offset(before) or self._next_offset(
                before
            )
            return start if after is before else after.to_json()  # Spark compares texts, and what it has may be older

    def _next_offset(self, start: Offset) -> Offset:
        plan, job = self._read_plan, worker_of(self._job).plan
        unaligned, drains = self._unaligned(start), self._job.is_requested(Request.DRAIN)
        if plan.goes_on and self._has_planned and not drains:
            assert plan.targets is not None
            if offsets.is_caught_up(start, plan.targets, unaligned):
                self._job.request(Request.CAUGHT_UP)
                return start
        self._has_planned = True  # the first epoch of a run is planned in any case: time has gone on since the last one
        return offsets.next_offset(
            job,
            start,
            plan.clock,
            plan.max_rows,
            plan.targets,
            marks=MarksFile(Path(self._job.outbox), job).read(start.epoch, {}),
            unaligned=unaligned,
            drains=drains,
            goes_on=plan.goes_on,
        )

    def _unaligned(self, start: Offset) -> Unaligned | None:
        target_ms = self._read_plan.unaligned_ms
        if target_ms is None:
            return None
        backlog = BacklogFile(Path(self._job.outbox), unaligned=True).read(start.epoch, 0.0)
        return Unaligned(target_ms, backlog, self._job.is_requested(Request.ALIGNED_EPOCH))

    def partitions(self, start: Logged, end: Logged) -> Sequence[InputPartition]:
        with marked():
            if start == end:
                return []
            before, after = Offset.from_json(start, _LOG), Offset.from_json(end, _LOG)
            parts = list(enumerate(offsets.ranges(worker_of(self._job).plan, before, after)))
            tasks = min(len(parts), self._job.parallelism)
            facts = offsets.facts_of(after)
            return [Bundle(facts, parts[i::tasks], after.end) for i in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from headwater.spark.reading import read_bundle

        assert isinstance(partition, Bundle)
        yield from read_bundle(self._job, partition)

    def commit(self, end: Logged) -> None:
        """Sources keep their own history; nothing to release."""
