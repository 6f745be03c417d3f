"""The ingest: beside the job, a query for each of its DataFrames that puts the micro-batches down for the job to read.

A batch that is put down stays as it is. Spark commits it afterwards; one that it has not committed when the process dies
it computes again, and that is thrown away.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from headwater.connectors.batches import Batches
from headwater.connectors.dataframes import DataFrameSource, query_folder
from headwater.errors import HeadwaterError, SourceError
from headwater.job.engine import Settings
from headwater.plan.plan import JobPlan
from headwater.spark.failures import found_in
from headwater.spark.session import location

_POLL_S = 0.05
_STOP_TIMEOUT_S = 60
"""How long a stop waits for a batch that is being put down; after that it is given up, and computed again."""
_MOST_CHARACTERS = 4000


class Ingest:
    """The queries of a job's DataFrames. Without any, all that it is asked for is done."""

    def __init__(self, plan: JobPlan, settings: Settings) -> None:
        found = ((plan.graph.uid(node), node.source) for node in plan.sources())
        self._sources = {uid: source for uid, source in found if isinstance(source, DataFrameSource)}
        self._job, self._settings = plan.graph.name, settings
        self._queries: dict[str, StreamingQuery] = {}
        self._failures: dict[str, Exception] = {}
        """What was raised while a batch was put down; Spark tells of it as text inside text."""
        self._writing = {uid: threading.Lock() for uid in self._sources}
        """Held while a batch is put down."""
        self._stopping = threading.Event()

    @property
    def comes_first(self) -> bool:
        """Whether the job is to wait until all is put down: then it reads what came."""
        return any(self._settings.ends or source.bounded for source in self._sources.values())

    def start(self) -> None:
        """Start the query of each streaming DataFrame."""
        self._stopping.clear()
        self._failures = {}
        for uid, source in self._sources.items():
            source.retain(self._settings.checkpoints_retained)
            if not source.bounded:
                self._queries[uid] = self._start(uid, source)

    def _start(self, uid: str, source: DataFrameSource) -> StreamingQuery:
        writer = (
            source.frame.writeStream.foreachBatch(partial(self._put_down, uid))
            .queryName(f"{self._job}-{uid}-{uuid.uuid4().hex[:8]}")
            .option("checkpointLocation", location(query_folder(source.folder)))
        )
        interval = f"{self._settings.checkpoint_interval_ms} milliseconds"
        trigger = {"availableNow": True} if self._settings.ends else {"processingTime": interval}
        try:
            query: StreamingQuery = writer.trigger(**trigger).start()
        except Exception as error:
            raise self._failed(uid, error) from None
        return query

    def wait(self, stopping: threading.Event) -> bool:
        """Put down what is not streaming, and wait for queries that come to an end. False when the job is to stop first."""
        for uid, source in self._sources.items():
            if source.bounded and not source.batches.count():
                try:
                    self._put_down(uid, source.frame, 0)
                except Exception as error:
                    raise self._failed(uid, error) from None
        while self._settings.ends and self._queries:
            self.check()
            if stopping.wait(_POLL_S):
                return False
        return not stopping.is_set()

    def check(self) -> None:
        """Raise what a query has failed with."""
        for uid, query in list(self._queries.items()):
            if query.isActive:
                continue
            failure = self._failures.get(uid) or query.exception()
            if failure is not None:
                raise self._failed(uid, failure)
            if not self._settings.ends:
                raise SourceError.at_step(
                    uid, "the query of its DataFrame was stopped from outside", "start the job again"
                )
            del self._queries[uid]

    def stop(self) -> None:
        """Stop the queries, if possible not in the middle of a batch; one that waits for room is given up."""
        self._stopping.set()
        for uid, query in self._queries.items():
            if self._writing[uid].acquire(timeout=_STOP_TIMEOUT_S):
                self._writing[uid].release()
            query.stop()
        self._queries = {}

    def _put_down(self, uid: str, frame: DataFrame, batch: int) -> None:
        try:
            with self._writing[uid]:
                self._write(self._sources[uid], frame, batch)
        except Exception as error:
            self._failures[uid] = error
            raise

    def _write(self, source: DataFrameSource, frame: DataFrame, batch: int) -> None:
        """Write a micro-batch. One that is there already is computed for the sake of Spark's own state, and thrown away."""
        if batch < source.batches.count():
            frame.write.format("noop").mode("overwrite").save()
            return
        while not source.bounded and not self._settings.ends and not source.has_room(batch):
            if self._stopping.wait(_POLL_S):
                raise InterruptedError("the job stops")
        task = _part_writer(source.folder, batch, source.schema.arrow)
        parts = frame.mapInArrow(task, "part int, name string").collect()
        source.batches.complete(batch, [row.name for row in sorted(parts, key=lambda row: row.part)])

    def _failed(self, uid: str, error: Exception) -> HeadwaterError:
        return found_in(error) or SourceError.at_step(
            uid,
            f"its DataFrame failed: {_said_by(error)}",
            "mend its cause and start the job again: it goes on where it was",
        )


def _said_by(error: Exception) -> str:
    """What an error says, with the traceback of user code in Python, and without Java's."""
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith("\tat ")]
    return "\n".join(lines)[:_MOST_CHARACTERS]


def _part_writer(folder: Path, batch: int, schema: pa.Schema) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    """What tasks do: write the rows of a partition, and tell the name of the file."""

    def write(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        part = context.partitionId()
        first = next(rows, None)
        if first is None:
            return
        name = Batches(folder).put_part(batch, part, chain([first], rows), schema)
        yield pa.RecordBatch.from_arrays([pa.array([part], pa.int32()), pa.array([name])], names=["part", "name"])

    return write
