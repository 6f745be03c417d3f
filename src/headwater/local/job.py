"""A job on the local engine: the same hosts as on Spark, in one process, without a JVM.

State lives in memory: a local job starts from the beginning each time. While its process lives, it can go on from its
last committed epoch after a failure, as a job on Spark does.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import uuid
import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from headwater.connectors.contract import Positions
from headwater.epoch import offsets
from headwater.epoch.alignment import Marks
from headwater.epoch.backpressure import Unaligned
from headwater.epoch.manifest import Manifest
from headwater.epoch.offset import Offset
from headwater.epoch.outbox import Outbox, stage
from headwater.epoch.reports import backlog_of, level_report, staged_files, tell_sources
from headwater.epoch.steps import EpochStep
from headwater.errors import JobError
from headwater.job.engine import Settings
from headwater.job.state_view import StateView, level_of_state, view_of
from headwater.job.supervised import SupervisedJob
from headwater.local.cluster import CommittedEpoch, LocalCluster
from headwater.plan.plan import JobPlan
from headwater.savepoints.errors import SavepointError
from headwater.savepoints.files import Savepoint
from headwater.savepoints.remembered import begin_sources
from headwater.savepoints.taking import Epoch, Part, take, write_part
from headwater.task.closing import close_all
from headwater.task.host import Outcome
from headwater.task.outlet import Routed

_POLL_S = 0.01


class LocalJob(SupervisedJob):
    """A job in a thread, and what of it is committed: state in the stores of its cluster, the offset, the marks, the backlog.

    As an engine with a log does, it runs an epoch that failed again from the offset that was planned.
    """

    def __init__(self, plan: JobPlan, settings: Settings) -> None:
        super().__init__(plan.graph.name, settings)
        self._plan = plan
        self._folder = Path(tempfile.mkdtemp(prefix="headwater-local-"))
        self._sources = Path(tempfile.mkdtemp(prefix="headwater-local-sources-"))
        weakref.finalize(self, shutil.rmtree, self._sources, ignore_errors=True)  # a job that has ended can be saved
        self._job_id = uuid.uuid4().hex
        origin = settings.origin
        self._outbox = Outbox(self._folder, plan.sinks_by_uid(), settings.on_step, self._first_epoch)
        self._cluster = LocalCluster(plan, origin=origin, stopwatch=settings.stopwatch)
        self._committed = threading.Lock()
        """Held while an epoch is committed and published, so that who has it sees a published epoch."""
        self._targets: dict[str, Positions] | None = None
        self._offset: Offset | None = None
        self._planned: Offset | None = None
        self._marks: Marks = {}
        self._backlog = 0.0
        self._aligned: CommittedEpoch | None = None
        self._is_aligned = threading.Event()

    @property
    def _first_epoch(self) -> int:
        return 0 if self._settings.origin is None else self._settings.origin.epoch + 1

    def start(self) -> None:
        origin = self._settings.origin
        begin_sources(self._plan, self._sources, origin, is_new=True)
        if origin is not None:
            for node in self._plan.sinks():
                node.sink.take_over(self._plan.graph.uid(node), self._job_id, origin.job_id, origin.epoch)
        self._open_sinks(resumed=origin is not None)
        super().start()

    def _open_sinks(self, *, resumed: bool) -> None:
        for node in self._plan.sinks():
            node.sink.open(self._plan.graph.uid(node), self._job_id, node.schema, resumed=resumed)

    def _attempt(self, *, again: bool) -> str:
        if again:
            self._recover()
        try:
            state = self._run_epochs()
        except BaseException:
            with suppress(Exception):  # what made the attempt fail is what counts
                self._cluster.close()
            raise
        self._cluster.close()
        return state

    def checkpoints(self) -> NoReturn:
        raise JobError.not_supported(
            "a job on the local engine keeps its state in memory and has no checkpoints to list",
            "run it on Spark with a job_dir",
        )

    def _recover(self) -> None:
        """Go back to what is committed: new places over its state, and its epochs published."""
        settings = self._settings
        self._cluster = LocalCluster(
            self._plan, self._cluster.stores, origin=settings.origin, stopwatch=settings.stopwatch
        )
        self._open_sinks(resumed=True)
        self._outbox.recover(lambda epoch: self._offset is not None and epoch < self._offset.epoch)
        self._note(epoch=self._outbox.published, published=self._outbox.published)

    def release(self) -> None:
        close_all(self._plan.sinks_by_uid().values())
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run_epochs(self) -> str:
        plan, settings = self._plan, self._settings
        if settings.bounded and self._targets is None:
            self._targets = offsets.end_positions(plan)
        if self._offset is None:
            self._offset = offsets.first_offset(plan, settings.clock, settings.origin)
        while not self._stopping.is_set():
            before = self._offset
            after = self._planned = self._planned or self._next_offset(before)
            if after is before:
                return "finished"
            self._run_epoch(before, after)
            if after.positions == before.positions and not after.end and not self._backlog:
                self._stopping.wait(settings.checkpoint_interval_ms / 1000)
        return "stopped"

    def _next_offset(self, start: Offset) -> Offset:
        settings = self._settings
        unaligned = None
        if settings.unaligned_ms is not None:
            unaligned = Unaligned(settings.unaligned_ms, self._backlog, self._wants_aligned.is_set())
        return offsets.next_offset(
            self._plan,
            start,
            settings.clock,
            settings.max_rows_per_epoch,
            self._targets,
            marks=self._marks,
            unaligned=unaligned,
            drains=self._draining.is_set(),
        )

    def _run_epoch(self, start: Offset, end: Offset) -> None:
        plan, on_step = self._plan, self._settings.on_step
        facts = offsets.facts_of(end)
        on_step(EpochStep.PLANNED, facts.epoch)
        payloads: list[Routed] = []
        outcomes: list[tuple[str, Outcome]] = []
        marks: Marks = {}
        for index, part in enumerate(offsets.ranges(plan, start, end)):
            host = self._cluster.split(part.node, part.split)
            for outcome in host.run(part.start, part.end, facts, ended=part.ended, idle=part.idle):
                payloads.extend(outcome.payloads)
                outcomes.append((f"s{index:04d}", outcome))
            marks.setdefault(host.uid, {})[part.split] = outcome.steps[host.uid].watermark_ms
        outcomes += self._cluster.run_levels(payloads)
        reports = []
        for place, outcome in outcomes:
            staged = stage(plan, self._folder, facts.epoch, place, outcome.sink_batches)
            reports.append(level_report(outcome, staged))
        on_step(EpochStep.STAGED, facts.epoch)
        files = staged_files(reports)
        self._outbox.write_manifest(
            Manifest.of(facts.epoch, files, end=end.end, positions=end.positions, now_ms=facts.now_ms)
        )
        on_step(EpochStep.MANIFEST, facts.epoch)
        if self._plan.publishes_early:
            self._hand_over(facts.epoch)
        with self._committed:
            self._cluster.commit()
            self._offset, self._planned, self._marks, self._backlog = end, None, marks, backlog_of(reports)
            with self._lock:
                self._status = replace(self._status.after(facts.epoch, reports), positions=end.positions)
            on_step(EpochStep.COMMITTED, facts.epoch)
            if not self._plan.publishes_early:
                self._hand_over(facts.epoch)
            tell_sources(plan, self._outbox.close(facts.epoch).positions)
            if not self._backlog and self._wants_aligned.is_set():
                self._aligned = self._copies()
                self._is_aligned.set()
                self._reach_alignment()

    def _hand_over(self, epoch: int) -> None:
        self._outbox.hand_over(epoch)
        self._note(published=epoch)

    def state(self, uid: str, name: str, *, epoch: int | None = None) -> StateView:
        level = level_of_state(self._plan, uid, name)
        with self._committed:
            copies = self._copies()
        known = [copies.epoch] if copies.epoch >= self._first_epoch else []
        if not known or epoch not in (None, copies.epoch):
            raise JobError.not_retained(self.name, epoch, known)
        with copies.hosts(self._plan) as hosts:
            return view_of([host for (at, _), host in hosts.items() if at == level], uid, name, copies.epoch)

    def _save(self, path: Path) -> Savepoint:
        self._wait_until_published(path)
        copies = self._copies_to_save(path)
        assert copies.offset is not None, "an epoch is published"
        if copies.offset.epoch != copies.epoch + 1:
            raise SavepointError.failed(path, f"epoch {copies.epoch + 1} is committed and could not be published")
        plan, what = self._plan, Epoch(self._plan, self._job_id, copies.epoch, copies.offset, self._sources)
        with copies.hosts(plan) as hosts:

            def parts(into: Path) -> Iterator[Part]:
                for (_, subtask), host in hosts.items():
                    yield write_part(host, plan, subtask, into)

            return take(path, what, parts, self._settings.on_savepoint_step)

    def _copies_to_save(self, path: Path) -> CommittedEpoch:
        """The newest epoch, or where they are not aligned the next one that is."""
        if self._settings.unaligned_ms is None:
            with self._committed:
                return self._copies()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._is_aligned.clear()
            self.request_aligned_epoch()
            while not self._is_aligned.wait(_POLL_S) and self._thread.is_alive():
                """The epoch that leaves nothing in flight is still to come."""
        if self._aligned is None or not self._is_aligned.is_set():
            raise SavepointError.failed(path, "rows are in flight, and the job has ended")
        return self._aligned

    def _copies(self) -> CommittedEpoch:
        """The newest epoch, as it will be when the job has gone on."""
        stores = {place: store.copy() for place, store in self._cluster.stores.items()}
        return CommittedEpoch(self._outbox.published, self._offset, stores)
