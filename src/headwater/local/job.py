"""A job on the local engine: the same hosts as on Spark, in one process, without a JVM.

State lives in memory: a local job starts from the beginning each time. While its process lives, it can go on from its
last committed epoch after a failure, as a job on Spark does.
"""

from __future__ import annotations

import shutil
import threading
import uuid
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from headwater.connectors.contract import Positions
from headwater.epoch import offsets
from headwater.epoch.alignment import Marks
from headwater.epoch.backpressure import Unaligned
from headwater.epoch.offset import BySplit, Offset
from headwater.epoch.outbox import stage
from headwater.epoch.protocol import Claim, Computed
from headwater.epoch.reports import TaskReport, backlog_of, marks_of
from headwater.errors import JobError
from headwater.job.engine import Settings
from headwater.job.state_view import StateView, level_of_state, view_of
from headwater.job.supervised import SupervisedJob
from headwater.local.cluster import CommittedEpoch, LocalCluster
from headwater.plan.plan import JobPlan
from headwater.savepoints.errors import SavepointError
from headwater.savepoints.files import Savepoint
from headwater.savepoints.origin import Origin
from headwater.savepoints.taking import Epoch, Part, take, write_part
from headwater.scratch import Scratch
from headwater.task.outcome import Outcome
from headwater.task.outlet import Routed

_POLL_S = 0.01


class LocalJob(SupervisedJob):
    """A job in a thread, and what of it is committed: state in the stores of its cluster, the offset, the marks, the backlog.

    As an engine with a log does, it runs an epoch that failed again from the offset that was planned.
    """

    engine = "local"

    def __init__(self, plan: JobPlan, settings: Settings) -> None:
        super().__init__(plan, settings)
        scratch = Scratch("local")
        self._outbox, self._sources = scratch.path / "staged", scratch.path / "notes"
        self._outbox.mkdir()
        self._sources.mkdir()
        weakref.finalize(self, scratch.close)  # a job that has ended can be saved
        self._job_id = uuid.uuid4().hex
        self._cluster = LocalCluster(plan, origin=settings.origin, stopwatch=settings.stopwatch)
        self._committed = threading.Lock()
        """Held while an epoch is committed and published, so that who has it sees a published epoch."""
        self._targets: dict[str, Positions] | None = None
        self._offset: Offset | None = None
        self._planned: Offset | None = None
        self._marks: Marks = {}
        self._backlog = 0.0
        self._aligned: CommittedEpoch | None = None
        self._is_aligned = threading.Event()

    def start(self) -> None:
        self._protocol.begin(self._sources, self._settings.origin, is_new=True)
        self._protocol.recover(again=False)
        super().start()

    def claim(self, origin: Origin | None) -> Claim:
        return Claim(self._job_id, origin, resumed=False, outbox=self._outbox)

    def is_committed(self, epoch: int) -> bool:
        return self._offset is not None and epoch < self._offset.epoch

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
        self._protocol.recover(again=True)

    def release(self) -> None:
        shutil.rmtree(self._outbox, ignore_errors=True)

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
        """The whole protocol of an epoch, on this thread."""
        what = self._protocol.prepare(end.epoch - 1, lambda: self._compute(start, end))
        with self._committed:
            self._commit(end, what)
            self._protocol.publish_committed()
            if not self._backlog and self._wants_aligned.is_set():
                self._aligned = self._copies()
                self._is_aligned.set()
                self._reach_alignment()

    def _compute(self, start: Offset, end: Offset) -> Computed:
        """Every split and then every level, in turn."""
        facts = offsets.facts_of(end)
        payloads: list[Routed] = []
        reports = []
        for index, part in enumerate(offsets.ranges(self._plan, start, end)):
            host = self._cluster.split(part.node, part.split)
            for outcome in host.run(part.start, part.end, facts, ended=part.ended, idle=part.idle):
                payloads.extend(outcome.payloads)
            read = part.at(host.uid, part.end)
            reports.append(self._report(outcome, f"s{index:04d}", read, idle=part.idle))
        for place, outcome in self._cluster.run_levels(payloads):
            reports.append(self._report(outcome, place))
        return Computed(reports, end.positions, end.now_ms, end.end)

    def _report(
        self, outcome: Outcome, place: str, positions: BySplit | None = None, *, idle: bool = False
    ) -> TaskReport:
        staged = stage(self._plan, self._outbox, outcome.epoch, place, outcome.sink_batches)
        return TaskReport(tuple(staged), outcome.steps, positions or {}, idle=idle)

    def _commit(self, end: Offset, what: Computed) -> None:
        self._cluster.commit()
        self._offset, self._planned = end, None
        self._marks, self._backlog = marks_of(what.reports), backlog_of(what.reports)

    def state(self, uid: str, name: str, *, epoch: int | None = None) -> StateView:
        level = level_of_state(self._plan, uid, name)
        with self._committed:
            copies = self._copies()
        known = [copies.epoch] if copies.epoch >= self._protocol.first_epoch else []
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
        if self._goes_on_beside():
            self._is_aligned.clear()
            self.request_aligned_epoch()
            while not self._is_aligned.wait(_POLL_S) and not self._ended.is_set():
                """The epoch that leaves nothing in flight is still to come."""
        if self._aligned is None or not self._is_aligned.is_set():
            raise SavepointError.failed(path, "rows are in flight, and the job has ended")
        return self._aligned

    def _copies(self) -> CommittedEpoch:
        """The newest epoch, as it will be when the job has gone on."""
        stores = {place: store.copy() for place, store in self._cluster.stores.items()}
        return CommittedEpoch(self._protocol.published, self._offset, stores)
