"""The Spark engine: a plan as one streaming query, and the job that watches it."""

from __future__ import annotations

import copy
import shutil
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headwater.errors import HeadwaterError, JobError
from headwater.plan.levels import JobPlan
from headwater.runtime import offsets, progress
from headwater.runtime.alignment import MarksFile
from headwater.runtime.engine import JobStatus, Settings
from headwater.runtime.folder import JobFolder
from headwater.runtime.outbox import Outbox
from headwater.runtime.payload import decode_report
from headwater.runtime.steps import EpochStep
from headwater.spark.failures import unwrap
from headwater.spark.session import job_session, local_session
from headwater.spark.shipped import ShippedJob
from headwater.spark.source import ReadPlan, source_class
from headwater.spark.step import ROW_SCHEMA, LevelProcessor

_MAX_UNPUBLISHED = 8
"""Epochs that may wait for a slow sink before the pipeline waits too."""
_STOP_TIMEOUT_S = 60
"""How long a stop waits for the running epoch; after that the epoch is given up, to be computed again at the next start."""
_POLL_S = 0.02
"""How often the publisher looks for a commit; well below what an epoch takes."""


class SparkEngine:
    """Runs plans on Spark Structured Streaming."""

    def start(self, plan: JobPlan, settings: Settings) -> SparkJob:
        job = SparkJob(plan, settings)
        try:
            job.start()
        except BaseException:
            job.release()
            raise
        return job


class SparkJob:
    """A streaming query, with a publisher that hands committed epochs to the sinks."""

    def __init__(self, plan: JobPlan, settings: Settings) -> None:
        self.name = plan.graph.name
        self._plan, self._settings = plan, settings
        self._is_temporary = settings.job_dir is None
        self._folder = JobFolder(settings.job_dir or Path(tempfile.mkdtemp(prefix=f"headwater-{self.name}-")))
        self._query: StreamingQuery | None = None
        self._shipped: ShippedJob | None = None
        self._status = JobStatus("running")
        self._error: HeadwaterError | None = None
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._published = threading.Condition()
        self._thread = threading.Thread(target=self._watch, name=f"headwater-{self.name}", daemon=True)

    def start(self) -> None:
        """Check the ends, publish what an earlier run left behind, and start the query."""
        plan, settings = self._plan, self._settings
        for source in plan.sources():
            source.source.check(source.schema)
        self._folder.claim(plan)
        for node in plan.sinks():
            node.sink.open(plan.graph.uid(node), self._folder.job_id, node.schema, resumed=self._folder.resumed)
        self._outbox = Outbox(self._folder.outbox, plan.sinks_by_uid(), settings.on_step)
        self._marks = MarksFile(self._folder.outbox, plan)
        self._recover()
        if self._is_finished():
            self._status.state = "finished"
        else:
            self._query = self._start_query()
        self._thread.start()

    def _recover(self) -> None:
        """Publish epochs that Spark committed, discard those it did not: they are computed again."""
        for epoch in self._outbox.pending():
            if self._is_committed(epoch):
                self._outbox.publish(epoch)
            else:
                self._outbox.discard(epoch)
        self._outbox.remove_orphans()
        self._status.epoch = self._status.published = self._outbox.published

    def _is_finished(self) -> bool:
        done = self._outbox.progress
        if not done["end"]:
            return False
        if any(offsets.end_positions(self._plan)[uid] != at for uid, at in done["positions"].items()):
            raise JobError.finished(str(self._folder.path), done["epoch"])
        return True

    def _start_query(self) -> StreamingQuery:
        plan, settings = self._plan, self._settings
        given: SparkSession = settings.spark or local_session(plan.parallelism, settings.spark_config)
        spark = job_session(given, plan.parallelism, settings.spark_config)
        run_id = uuid.uuid4().hex
        self._shipped = shipped = ShippedJob.of(plan, self._folder.job_id, run_id, self._folder.outbox)
        targets = offsets.end_positions(plan) if settings.bounded else None
        name = f"headwater_{self._folder.job_id}"
        spark.dataSource.register(
            source_class(name, ReadPlan(shipped, settings.max_rows_per_epoch, targets, settings.clock))
        )
        stream = spark.readStream.format(name).load()
        for level in range(1, plan.depth + 1):
            stream = stream.groupBy("subtask").transformWithState(
                LevelProcessor(shipped, level), ROW_SCHEMA, "append", "none"
            )
        interval_ms = 0 if settings.bounded else settings.checkpoint_interval_ms
        return (
            stream.writeStream.foreachBatch(self._handle_epoch)
            .queryName(f"{self.name}-{run_id[:8]}")
            .option("checkpointLocation", self._folder.checkpoint.as_uri())
            .trigger(processingTime=f"{interval_ms} milliseconds")
            .start()
        )

    def _handle_epoch(self, output: DataFrame, epoch: int) -> None:
        """Steps 1 to 3 of the epoch protocol, on the query's thread; Spark commits when this returns."""
        on_step = self._settings.on_step
        self._wait_for_room(epoch)
        on_step(EpochStep.PLANNED, epoch)
        reports: list[dict[str, Any]] = [decode_report(bytes(row.payload)) for row in output.collect()]
        on_step(EpochStep.STAGED, epoch)
        end = any(one.get("end", False) for one in reports)
        facts = {"end": end, "positions": progress.positions_of(reports)}
        self._marks.write(epoch, progress.marks_of(reports))
        self._outbox.write_manifest(epoch, progress.staged_files(reports), facts)
        on_step(EpochStep.MANIFEST, epoch)
        with self._lock:
            progress.update_status(self._status, epoch, reports)

    def _wait_for_room(self, epoch: int) -> None:
        with self._published:
            self._published.wait_for(
                lambda: epoch - self._outbox.published <= _MAX_UNPUBLISHED or self._stopping.is_set()
            )

    def _watch(self) -> None:
        """The publisher's thread: steps 4 to 7 of the epoch protocol, and the end of the job."""
        try:
            while self._query is not None and not self._stopping.wait(_POLL_S):
                self._publish_committed()
                if self._outbox.progress["end"]:
                    self._query.stop()
                    self._status.state = "finished"
                    return
                if not self._query.isActive:
                    self._publish_committed()
                    failure = self._query.exception()
                    if failure is not None:
                        raise unwrap(self.name, failure)
                    self._status.state = "stopped"
                    return
        except Exception as error:  # handed to whoever waits
            self._fail(error)
        finally:
            self._stopping.set()
            with self._published:
                self._published.notify_all()
            self.release()

    def _publish_committed(self) -> None:
        for epoch in self._outbox.pending():
            if not self._is_committed(epoch):
                return
            self._settings.on_step(EpochStep.COMMITTED, epoch)
            self._outbox.publish(epoch)
            with self._lock:
                self._status.published = epoch
            with self._published:
                self._published.notify_all()

    def _is_committed(self, epoch: int) -> bool:
        return (self._folder.checkpoint / "commits" / str(epoch)).exists()

    def _fail(self, error: Exception) -> None:
        failure = error if isinstance(error, HeadwaterError) else JobError.engine_failed(self.name, repr(error))
        self._error = failure
        with self._lock:
            self._status.state, self._status.error = "failed", str(failure)
        if self._query is not None and self._query.isActive:
            self._query.stop()

    def wait(self, timeout: float | None = None) -> bool:
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        return not self._thread.is_alive()

    def stop(self) -> None:
        if self._query is not None and self._shipped is not None:
            self._shipped.request_stop()
            deadline = time.monotonic() + _STOP_TIMEOUT_S
            while self._query.isActive and _is_in_epoch(self._query) and time.monotonic() < deadline:
                time.sleep(_POLL_S)
            self._query.stop()
        self._thread.join()

    def status(self) -> JobStatus:
        with self._lock:
            return copy.deepcopy(self._status)

    def release(self) -> None:
        """Let go of the job folder."""
        if self._shipped is not None:
            self._shipped.remove()
        self._folder.close()
        if self._is_temporary:
            shutil.rmtree(self._folder.path, ignore_errors=True)


def _is_in_epoch(query: StreamingQuery) -> bool:
    """Whether an epoch may be running; a trigger that starts after a stop was requested plans none."""
    status = query.status
    return bool(status["isTriggerActive"] and status["isDataAvailable"])
