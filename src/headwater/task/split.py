"""SplitHost: the source step on one split. Reads a range, assigns event time, runs the fused steps, sends the watermark."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa

from headwater.clock.event_time import timestamps_of
from headwater.connectors.contract import DEAD_LETTERS, NO_SPLIT, DeadLetters
from headwater.data.batch import MAX_TIMESTAMP, Batch, no_timestamps
from headwater.data.errors import UnsoundRow
from headwater.data.sound import fault_in
from headwater.graph.nodes import SourceNode
from headwater.operators.stateless.channel_watermark import channel_watermark
from headwater.plan.plan import JobPlan
from headwater.task.counters import StepCounters
from headwater.task.noticed import Noticed
from headwater.task.outcome import Outcome
from headwater.task.outlet import Outlet, Routed
from headwater.task.payload import EpochFacts

_CHUNK_ROWS = 131_072
"""Rows handled at a time: large enough for vectorised steps, small enough to keep payloads flowing."""


class SplitHost:
    """Stateless by design: what it sends for a range of a split depends on the range and the epoch's facts alone."""

    def __init__(self, plan: JobPlan, node: SourceNode, split: str) -> None:
        self._node, self._split = node, split
        self.uid = plan.graph.uid(node)
        self._outlet = Outlet.behind(plan, node)

    def run(self, start: int, end: int, facts: EpochFacts, *, ended: bool, idle: bool = False) -> Iterator[Outcome]:
        """Payloads as they become ready; the last outcome holds the sinks' tables and the counters."""
        outlet = self._outlet
        outlet.begin(facts, f"{self.uid}/{self._split}", start)
        mark = channel_watermark(self._node.watermarks, self.uid, self._node.schema.row)
        noticed, rows = Noticed(self._node), 0
        dead_letters = 0
        busy, started = 0.0, time.perf_counter()
        for batch in self._batches(start, end):
            if isinstance(batch, DeadLetters):
                dead_letters += len(batch.table)
                outlet.emit(DEAD_LETTERS.name, Batch(batch.table, no_timestamps(len(batch.table))))
                continue
            if len(batch):
                mark.see(batch)
                noticed.see(batch)
                rows += len(batch)
            outlet.emit(None, batch)
            busy += time.perf_counter() - started
            yield Outcome(outlet.take())
            started = time.perf_counter()
        watermark_ms = MAX_TIMESTAMP if ended else mark.end()
        last: list[Routed] = outlet.finish(watermark_ms, idle=idle)
        counters = StepCounters(
            rows + dead_letters,
            rows,
            watermark_ms,
            counters={"dead_letters": dead_letters} if dead_letters else {},
            furthest_ms=noticed.furthest_ms,
            absent=noticed.absent,
            outputs=outlet.outputs(),
            busy_us=round((busy + time.perf_counter() - started) * 1_000_000),
        )
        steps = {self.uid: counters, **outlet.fused()}
        yield Outcome(last, facts.epoch, outlet.sink_batches, outlet.unread, steps)

    def close(self) -> None:
        """Give the place up: the source and fused steps close what they hold open."""
        try:
            if self._split != NO_SPLIT:
                self._node.source.release(self._split)
        finally:
            self._outlet.close()

    def _batches(self, start: int, end: int) -> Iterator[Batch | DeadLetters]:
        """The rows of a range in chunks that depend on the range alone, however the source cuts its batches."""
        waiting: list[pa.RecordBatch] = []
        count = 0
        if start < end:
            for batch in self._node.source.read(self._split, start, end):
                if isinstance(batch, DeadLetters):
                    yield batch
                    continue
                rest = batch
                while count + len(rest) >= _CHUNK_ROWS:
                    room = _CHUNK_ROWS - count
                    yield self._timed([*waiting, rest.slice(0, room)])
                    rest, waiting, count = rest.slice(room), [], 0
                if len(rest):
                    waiting.append(rest)
                    count += len(rest)
        if waiting:
            yield self._timed(waiting)

    def _timed(self, batches: list[pa.RecordBatch]) -> Batch:
        table = pa.Table.from_batches(batches)
        if (fault := fault_in(table)) is not None:
            raise UnsoundRow.of(self.uid, fault, "drop or mend such rows before the job reads them")
        column = self._node.watermarks.column
        if column is None:
            return Batch(table, no_timestamps(len(table)))
        return Batch(table, timestamps_of(table, column, self.uid))
