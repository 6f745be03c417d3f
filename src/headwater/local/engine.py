"""The local engine: the same hosts as on Spark, in one process, without a JVM. For tests, notebooks and examples.

State lives in memory: a local job starts from the beginning each time. While its process lives, it can go on from its
last committed epoch after a failure, as a job on Spark does.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
import uuid
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from headwater.connectors.contract import Positions
from headwater.epoch import offsets
from headwater.epoch.alignment import Marks
from headwater.epoch.backpressure import Unaligned
from headwater.epoch.outbox import Outbox, stage
from headwater.epoch.reports import backlog_of, staged_files, task_report, tell_sources
from headwater.epoch.steps import EpochStep
from headwater.errors import JobError
from headwater.job.engine import Settings
from headwater.job.state_view import StateView, level_of_state, view_of
from headwater.job.status import update_status
from headwater.job.supervised import SupervisedJob
from headwater.plan.levels import JobPlan
from headwater.savepoints.errors import SavepointError
from headwater.savepoints.files import Savepoint
from headwater.savepoints.origin import Origin, begin
from headwater.savepoints.remembered import begin_sources
from headwater.savepoints.taking import Epoch, Part, take, write_part
from headwater.state import changelog
from headwater.task import garbage_collection
from headwater.task.closing import close_all
from headwater.task.host import LevelHost, Outcome, Stopwatch
from headwater.task.outlet import Routed
from headwater.task.split import SplitHost

_POLL_S = 0.01

Stores = dict[tuple[int, int], changelog.MemoryRecordStore]
"""The changelog of each place, by level and subtask."""


class LocalCluster:
    """Every subtask of every level, called in turn, over in-memory changelogs."""

    def __init__(
        self,
        plan: JobPlan,
        stores: Stores | None = None,
        *,
        origin: Origin | None = None,
        stopwatch: Stopwatch = time.perf_counter,
    ) -> None:
        """With the stores of a cluster that is given up, one that goes on from what is committed there."""
        self.plan, self._origin = plan, origin
        places = [(level, subtask) for level in range(1, plan.depth + 1) for subtask in range(plan.parallelism)]
        self.hosts = {place: LevelHost(plan, *place, stopwatch) for place in places}
        self.stores = stores or {place: changelog.MemoryRecordStore() for place in places}
        self._pending: list[changelog.PendingRecords] = []
        self._splits: dict[tuple[int, str], SplitHost] = {}

    def split(self, node: int, split: str) -> SplitHost:
        """The host of a source's split."""
        if (node, split) not in self._splits:
            self._splits[node, split] = SplitHost(self.plan, self.plan.source(node), split)
        return self._splits[node, split]

    def close(self) -> None:
        """Give every place up, also when one of them fails to close."""
        close_all([*self._splits.values(), *self.hosts.values()])

    def run_levels(self, payloads: list[Routed]) -> list[tuple[str, Outcome]]:
        """One epoch through every level; the outcomes with the place they come from. State counts when it is committed."""
        with garbage_collection.paused():
            return self._run_levels(payloads)

    def commit(self) -> None:
        """Make what the last epoch did to state the committed version, in all places together."""
        for records in self._pending:
            records.commit()
        self._pending = []

    def _run_levels(self, payloads: list[Routed]) -> list[tuple[str, Outcome]]:
        self._pending = []
        outcomes = []
        for level in range(1, self.plan.depth + 1):
            inputs: dict[int, list[bytes]] = {subtask: [] for subtask in range(self.plan.parallelism)}
            for subtask, data in payloads:
                inputs[subtask].append(data)
            payloads = []
            for subtask, received in inputs.items():
                host, records = self.hosts[level, subtask], changelog.PendingRecords(self.stores[level, subtask])
                head = changelog.catch_up(host, records, f"level {level}, subtask {subtask}")
                if head is None:
                    begin(host, self.plan, subtask, self._origin)
                host.token = None
                outcome = host.run(received)
                changelog.append(host, records, head, f"local-{0 if head is None else head.sequence}")
                self._pending.append(records)
                payloads.extend(outcome.payloads)
                outcomes.append((f"l{level}-{subtask:04d}", outcome))
        assert not payloads, "the deepest level has nobody to send to"
        return outcomes


class LocalEngine:
    """Starts jobs in threads of this process."""

    def start(self, plan: JobPlan, settings: Settings) -> LocalJob:
        job = LocalJob(plan, settings)
        try:
            job.start()
        except BaseException:
            job.release()
            raise
        return job


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
        self._offset: offsets.Offset | None = None
        self._planned: offsets.Offset | None = None
        self._marks: Marks = {}
        self._backlog = 0.0
        self._aligned: _Copies | None = None
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
        self._outbox.recover(lambda epoch: self._offset is not None and epoch < self._offset["epoch"])
        with self._lock:
            self._status.epoch = self._status.published = self._outbox.published

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
            if after["positions"] == before["positions"] and not after["end"] and not self._backlog:
                self._stopping.wait(settings.checkpoint_interval_ms / 1000)
        return "stopped"

    def _next_offset(self, start: offsets.Offset) -> offsets.Offset:
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

    def _run_epoch(self, start: offsets.Offset, end: offsets.Offset) -> None:
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
            marks.setdefault(host.uid, {})[part.split] = outcome.steps[host.uid]["watermark_ms"]
        outcomes += self._cluster.run_levels(payloads)
        reports = []
        for place, outcome in outcomes:
            staged = stage(plan, self._folder, facts.epoch, place, outcome.sink_batches)
            reports.append(task_report(outcome, staged, positions={}))
        on_step(EpochStep.STAGED, facts.epoch)
        manifest_facts = {"end": end["end"], "positions": end["positions"], "now_ms": facts.now_ms}
        self._outbox.write_manifest(facts.epoch, staged_files(reports), manifest_facts)
        on_step(EpochStep.MANIFEST, facts.epoch)
        if self._settings.publishes_early:
            self._hand_over(facts.epoch)
        with self._committed:
            self._cluster.commit()
            self._offset, self._planned, self._marks, self._backlog = end, None, marks, backlog_of(reports)
            with self._lock:
                update_status(self._status, facts.epoch, reports)
                self._status.positions = end["positions"]
            on_step(EpochStep.COMMITTED, facts.epoch)
            if not self._settings.publishes_early:
                self._hand_over(facts.epoch)
            tell_sources(plan, self._outbox.close(facts.epoch)["positions"])
            if not self._backlog and self._wants_aligned.is_set():
                self._aligned = self._copies()
                self._is_aligned.set()
                self._reach_alignment()

    def _hand_over(self, epoch: int) -> None:
        self._outbox.hand_over(epoch)
        with self._lock:
            self._status.published = epoch

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
        if copies.offset["epoch"] != copies.epoch + 1:
            raise SavepointError.failed(path, f"epoch {copies.epoch + 1} is committed and could not be published")
        plan, what = self._plan, Epoch(self._plan, self._job_id, copies.epoch, copies.offset, self._sources)
        with copies.hosts(plan) as hosts:

            def parts(into: Path) -> Iterator[Part]:
                for (_, subtask), host in hosts.items():
                    yield write_part(host, plan, subtask, into)

            return take(path, what, parts, self._settings.on_savepoint_step)

    def _copies_to_save(self, path: Path) -> _Copies:
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

    def _copies(self) -> _Copies:
        """The newest epoch, as it will be when the job has gone on."""
        stores = {place: store.copy() for place, store in self._cluster.stores.items()}
        return _Copies(self._outbox.published, self._offset or {}, stores)


@dataclass(frozen=True)
class _Copies:
    """A published epoch: its number, its offset, and the records of all places."""

    epoch: int
    offset: offsets.Offset
    stores: Stores

    @contextmanager
    def hosts(self, plan: JobPlan) -> Iterator[dict[tuple[int, int], LevelHost]]:
        """All places as they were, to be looked at."""
        found = {}
        with ExitStack() as opened:
            for place, store in self.stores.items():
                found[place] = opened.enter_context(closing(LevelHost(plan, *place)))
                changelog.catch_up(found[place], store, f"level {place[0]}, subtask {place[1]}")
            yield found
