"""The Spark engine: a plan as one streaming query, and the job that watches it."""

from __future__ import annotations

import time
import uuid
from contextlib import closing
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headwater.connectors.contract import Positions
from headwater.connectors.dataframes import DataFrameSink
from headwater.epoch import offsets
from headwater.epoch.alignment import MarksFile
from headwater.epoch.backpressure import BacklogFile
from headwater.epoch.protocol import Claim, Computed
from headwater.epoch.reports import TaskReport, backlog_of, marks_of, positions_of
from headwater.errors import HeadwaterError, JobError
from headwater.job.checkpoints.history import History
from headwater.job.checkpoints.listing import Checkpoints, damage_of_newest
from headwater.job.checkpoints.replay import Replay
from headwater.job.checkpoints.rewind import finish_rewind
from headwater.job.engine import Settings
from headwater.job.folder import JobFolder
from headwater.job.reading import JobReader, read_reasons
from headwater.job.state_view import StateView, level_of_state, view_of
from headwater.job.supervised import SupervisedJob
from headwater.plan.plan import JobPlan
from headwater.savepoints.errors import SavepointError
from headwater.savepoints.files import Savepoint
from headwater.savepoints.origin import Origin
from headwater.savepoints.taking import Epoch, take
from headwater.scratch import Scratch
from headwater.spark.checkpoint_files import CheckpointFiles
from headwater.spark.commits import Commits
from headwater.spark.errors import EngineGone
from headwater.spark.failures import explained
from headwater.spark.from_checkpoint import origin_of
from headwater.spark.ingest import Ingest
from headwater.spark.pickled import pickled_plan
from headwater.spark.session import RETAINED_BATCHES, is_gone, is_shut_down, job_session, local_session, location
from headwater.spark.shipped import Request, ShippedJob
from headwater.spark.source import ReadPlan, source_class
from headwater.spark.step import ROW_SCHEMA, LevelProcessor
from headwater.spark.stored import LastLook, StoredEpoch
from headwater.spark.waiting import LocalDisk, is_in_epoch, local_files

_STOP_TIMEOUT_S = 60
"""How long a stop waits for the running epoch; after that the epoch is given up, to be computed again at the next start."""
_CANCEL_TIMEOUT_S = 10
"""How long an epoch that is given up has to fail. A query that is stopped in one may overflow its stack, and print it."""
_SIGNAL_S = 0.5
"""How long after Spark's end the word to stop may come that ended it: a signal reaches processes one after the other."""
_POLL_S = 0.02
"""How often the publisher looks for a commit; well below what an epoch takes."""


class SparkEngine:
    """Runs plans on Spark Structured Streaming."""

    def start(self, plan: JobPlan, settings: Settings) -> SparkJob:
        pickled_plan(plan)  # what cannot travel to workers is told before anything is brought up
        return SparkJob(plan, settings).launch()


class SparkJob(SupervisedJob):
    """A streaming query, or one after another, with a publisher that hands committed epochs to the sinks."""

    engine = "spark"

    def __init__(self, plan: JobPlan, settings: Settings) -> None:
        path, self._scratch = settings.job_dir, None
        if path is None:
            self._scratch = Scratch("job")
            path = self._scratch.path / "job"
        self._folder = JobFolder(path)
        super().__init__(plan, settings, self._folder.layout if self._scratch is None else None)
        self._session: SparkSession | None = None
        self._spark: SparkSession | None = None
        self._query: StreamingQuery | None = None
        self._ingest = Ingest(plan, settings)
        self._is_done = False
        self._raised: Exception | None = None
        """What an epoch has failed with on the query's thread; Spark tells of it as text inside text."""
        self._has_cancelled = False
        """Whether an epoch was ended because the job is to stop."""
        self._shipped: ShippedJob | None = None
        self._commits = Commits(self._folder)
        self._history = History(self._folder.layout.epochs, CheckpointFiles(self._folder.layout.checkpoint))
        self._targets: dict[str, Positions] | None = None
        self._last_look = LastLook()

    def start(self) -> None:
        """Take the folder, and start the first query before the thread that watches it: errors are the caller's."""
        self._protocol.begin(self._folder.layout.sources, self._origin(), is_new=not self._folder.is_claimed())
        self._note(restarts=read_reasons(self._folder.layout.restarts))
        try:
            self._begin(again=False)
        except BaseException as error:
            self._ingest.stop()
            if not self._commits.have_begun():
                self._folder.give_back()
            if isinstance(error, OSError):
                raise explained(self.name, error, self._folder.path) from None
            raise
        super().start()

    def claim(self, origin: Origin | None) -> Claim:
        folder = self._folder
        folder.claim(self._plan, origin)
        finish_rewind(JobReader(folder.path))
        return Claim(folder.job_id, folder.origin, folder.resumed, folder.layout.outbox.path)

    def is_committed(self, epoch: int) -> bool:
        return epoch in self._commits or self._replay.was_committed(epoch)

    def _origin(self) -> Origin | None:
        """What the job goes on from, unless it goes on with what is in its folder."""
        settings = self._settings
        if settings.checkpoint is None:
            return settings.origin
        return origin_of(settings.checkpoint, self._plan, self._folder, self._job_session())

    def _job_session(self) -> SparkSession:
        config = {**self._settings.spark_config, RETAINED_BATCHES: str(self._settings.checkpoints_retained)}
        return job_session(self._shared_session(), self._plan.parallelism, config)

    def _shared_session(self) -> SparkSession:
        """The user's session, or that of the process."""
        if self._session is None:
            self._session = self._settings.spark or local_session(self._plan.parallelism, self._settings.spark_config)
        return self._session

    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self._folder.path)

    def _begin(self, *, again: bool) -> None:
        """Recover, and start a query if there is something to do and to read."""
        plan, outbox = self._plan, self._folder.layout.outbox
        self._query = None
        self._marks = MarksFile(outbox.path, plan)
        self._backlog = BacklogFile(outbox.path, unaligned=self._settings.unaligned_ms is not None)
        self._replay = Replay.in_outbox(outbox)
        for node in plan.sinks():
            if isinstance(node.sink, DataFrameSink):
                node.sink.use(self._shared_session())
        self._protocol.recover(again=again)
        self._is_done = self._is_finished(again=again)
        if not self._is_done:
            damage = damage_of_newest(self._folder.path, whole=False)
            if damage is not None:
                raise damage
            if self._targets is None:
                self._ingest.start()
            if not self._ingest.comes_first:
                self._query = self._start_query()

    def _is_finished(self, *, again: bool) -> bool:
        """Whether the input has ended. What came after that is for another job, unless it came while this one ran."""
        if not self._has_ended():
            return False
        done = self._protocol.progress
        if not again and any(offsets.end_positions(self._plan)[uid] != at for uid, at in done.positions.items()):
            raise JobError.finished(str(self._folder.path), done.epoch)
        return True

    def _has_ended(self) -> bool:
        """Whether the last epoch is published, and committed too: a job that was taken back computes it again."""
        done = self._protocol.progress
        return done.end and done.epoch in self._commits

    def _start_query(self) -> StreamingQuery:
        plan, settings = self._plan, self._settings
        self._spark = spark = self._job_session()
        self._raised = None
        run_id = uuid.uuid4().hex
        self._shipped = shipped = ShippedJob.of(pickled_plan(plan), plan.parallelism, self._folder, run_id)
        if self._wants_aligned.is_set():
            shipped.request(Request.ALIGNED_EPOCH)
        if settings.ends and self._targets is None:
            self._targets = self._positions_now() if settings.available_now else offsets.end_positions(plan)
        name = f"headwater_{self._folder.job_id}"
        most, unaligned_ms = settings.max_rows_per_epoch, settings.unaligned_ms
        read_plan = ReadPlan(shipped, most, self._targets, settings.clock, unaligned_ms, settings.available_now)
        spark.dataSource.register(source_class(name, read_plan))
        stream = spark.readStream.format(name).load()
        for level in range(1, plan.depth + 1):
            stream = stream.groupBy("subtask").transformWithState(
                LevelProcessor(shipped, level), ROW_SCHEMA, "append", "none"
            )
        interval_ms = 0 if settings.ends else settings.checkpoint_interval_ms
        query = (
            stream.writeStream.foreachBatch(self._handle_epoch)
            .queryName(f"{self.name}-{run_id[:8]}")
            .option("checkpointLocation", location(self._folder.layout.checkpoint))
            .trigger(processingTime=f"{interval_ms} milliseconds")
        )
        try:
            return query.start()
        except Exception as error:
            raise explained(self.name, error, self._folder.path) from None

    def _positions_now(self) -> dict[str, Positions]:
        """What is there to read, for a run that goes on from the newest offset."""
        plan, clock = self._plan, self._settings.clock
        logged = CheckpointFiles(self._folder.layout.checkpoint).logged()
        if logged:
            assert self._spark is not None
            start = StoredEpoch(self._spark, self._folder.layout.checkpoint, logged[-1]).offset()
        else:
            start = offsets.first_offset(plan, clock, self._folder.origin)
        return offsets.positions_now(plan, start, clock)

    def _handle_epoch(self, output: DataFrame, batch: int) -> None:
        """An epoch on the query's thread; Spark commits it when this returns."""
        epoch = self._folder.first_epoch + batch
        try:
            self._protocol.prepare(epoch, lambda: self._compute(output, batch))
        except Exception as error:
            self._raised = error
            raise

    def _compute(self, output: DataFrame, batch: int) -> Computed:
        """Let tasks run, and leave what the planner, the history and a rewind have to know of their reports."""
        epoch, began = self._folder.first_epoch + batch, time.monotonic()
        reports = [TaskReport.from_bytes(bytes(row.payload)) for row in output.collect()]
        self._marks.write(epoch, marks_of(reports))
        self._note_backlog(epoch, backlog_of(reports))
        self._history.add(batch, reports, int((time.monotonic() - began) * 1000))
        self._replay = self._replay.after(epoch, self._folder.layout.outbox)
        now_ms = max((one.now_ms for one in reports), default=0)
        return Computed(reports, positions_of(reports), now_ms, any(one.end for one in reports))

    def request_aligned_epoch(self) -> None:
        super().request_aligned_epoch()
        if self._shipped is not None:
            self._shipped.request(Request.ALIGNED_EPOCH)

    def _note_backlog(self, epoch: int, backlog: float) -> None:
        self._backlog.write(epoch, backlog)
        if not backlog and self._wants_aligned.is_set():
            assert self._shipped is not None
            self._reach_alignment()
            self._shipped.withdraw(Request.ALIGNED_EPOCH)
            if self._stopping.is_set():
                self._shipped.request(Request.STOP)

    def _attempt(self, *, again: bool) -> str:
        try:
            return self._attempt_on_spark(again=again)
        except Exception:
            if not self._was_stopped_with_spark():
                raise
            self._protocol.publish_committed()
            return "stopped"

    def _was_stopped_with_spark(self) -> bool:
        """Whether Spark has ended because the job is to: a signal that goes to a group of processes ends the JVM as well."""
        if self._session is None or not is_shut_down(self._session) or not self._stopping.wait(_SIGNAL_S):
            return False
        self.given_up = "Spark was ended at the same time"
        return True

    def _attempt_on_spark(self, *, again: bool) -> str:
        try:
            try:
                if again:
                    self._begin(again=True)
                if self._is_done:
                    return "finished"
                if self._query is None and not self._ingest.wait(self._stopping):
                    return "stopped"
                self._query = self._query or self._start_query()
                return self._watch(self._query)
            finally:
                self._end_query()
        except HeadwaterError:
            raise
        except Exception as error:
            if self._session is not None and is_gone(self._session):
                raise EngineGone.of(self.name) from None
            raise explained(self.name, error, self._folder.path) from None

    def _watch(self, query: StreamingQuery) -> str:
        """The publisher's work: the epoch protocol from the commit on, until the query has come to its end."""
        deadline, disk = None, LocalDisk(self.name, local_files(self._shared_session()))
        while query.isActive:
            self._protocol.publish_committed()
            disk.look(self._protocol.published, partial(is_in_epoch, query))
            self._ingest.check()
            if self._has_ended():
                return "finished"
            assert self._shipped is not None
            if self._shipped.failure() is not None:
                self._cancel_tasks(query)
            if self._draining.is_set():
                self._shipped.request(Request.DRAIN)
            elif self._shipped.is_requested(Request.CAUGHT_UP):
                self._end_query()
                continue
            if not self._stopping.wait(_POLL_S):
                continue
            if deadline is None:
                self._shipped.request(Request.STOP)
                deadline = time.monotonic() + _STOP_TIMEOUT_S
            runs = is_in_epoch(query)
            if runs and time.monotonic() < deadline:
                time.sleep(_POLL_S)
                continue
            if runs:
                self.given_up = f"it took longer than {_STOP_TIMEOUT_S} s"
            self._end_query()
        self._protocol.publish_committed()
        failure = query.exception()
        assert self._shipped is not None
        if failure is not None and self._has_cancelled and self._shipped.failure() is None:
            self.given_up = self.given_up or "it began when the job was about to stop"
        if failure is not None and self.given_up is None:
            raise self._shipped.failure() or explained(self.name, self._raised or failure, self._folder.path)
        return "finished" if self._has_ended() else "stopped"

    def _cancel_tasks(self, query: StreamingQuery) -> None:
        """Let the epoch under way fail now. If it has failed, further attempts would only fail with the same."""
        assert self._spark is not None
        self._spark.sparkContext.cancelJobGroup(str(query.runId))

    def _end_query(self) -> None:
        """Let nothing of the attempt go on. An epoch that waits for room gets it first: a query ends after its epoch."""
        self._protocol.give_up()
        self._ingest.stop()
        query, shipped = self._query, self._shipped
        if query is not None and query.isActive:
            deadline = time.monotonic() + _CANCEL_TIMEOUT_S
            while is_in_epoch(query) and time.monotonic() < deadline:
                self._has_cancelled = self._stopping.is_set()
                self._cancel_tasks(query)
                time.sleep(_POLL_S)
            query.stop()
        if shipped is not None:
            shipped.remove()

    def state(self, uid: str, name: str, *, epoch: int | None = None) -> StateView:
        level = level_of_state(self._plan, uid, name)
        newest = max(self._commits.retained(), default=None)
        stored = self._stored(newest if epoch is None else epoch)
        shown = stored.batch + self._protocol.first_epoch
        if epoch is None:
            return self._last_look.at(stored, self._plan, level, lambda hosts: view_of(hosts, uid, name, shown))
        with closing(stored.level(self._plan, level)) as found:
            return view_of(found.hosts, uid, name, shown)

    def _stored(self, epoch: int | None) -> StoredEpoch:
        known = self._commits.retained()
        if epoch is None or epoch not in known:
            raise JobError.not_retained(self.name, epoch, known)
        self._spark = self._spark or self._job_session()  # a job that had ended before needs no query
        return StoredEpoch(self._spark, self._folder.layout.checkpoint, self._commits.batch(epoch))

    def _save(self, path: Path) -> Savepoint:
        if self._scratch is not None and not self._folder.path.exists():
            raise SavepointError.not_kept(self.name, path)
        self._wait_until_published(path)
        epoch = self._epoch_to_save(path)
        stored = self._stored(epoch)
        what = Epoch(self._plan, self._folder.job_id, epoch, stored.offset(), self._folder.layout.sources)
        parts = partial(stored.write_parts, self._plan)
        return take(path, what, parts, self._settings.on_savepoint_step)

    def _epoch_to_save(self, path: Path) -> int:
        """The newest epoch that is committed and published, or where they are not aligned the next one that is."""
        if self._settings.unaligned_ms is None:
            found = [epoch for epoch in self._commits.retained() if epoch <= self.status().published]
            if not found:
                raise SavepointError.nothing_committed(self.name, path)
            return found[-1]
        if self._goes_on_beside():
            before = self.status().aligned_epoch
            self.request_aligned_epoch()
            while self.status().aligned_epoch == before and not self._ended.is_set():
                time.sleep(_POLL_S)
        status = self.status()
        aligned = status.aligned_epoch
        while aligned > self.status().published and not self._ended.is_set():
            time.sleep(_POLL_S)
        if aligned < 0 or aligned not in self._commits.retained() or (status.epoch > aligned and self._ended.is_set()):
            raise SavepointError.failed(path, "rows are in flight, and the job has ended")
        return aligned

    def release(self) -> None:
        if self._shipped is not None:
            self._shipped.remove()
        self._history.close()
        self._folder.close()
        if self._scratch is not None:
            self._scratch.close()
