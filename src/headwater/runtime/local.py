"""The local engine: the same hosts as on Spark, in one process, without a JVM. For tests, notebooks and examples.

State lives in memory: a local job starts from the beginning each time. While its process lives, it can go on from its
last committed epoch after a failure, as a job on Spark does.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from headwater.connectors.contract import Positions
from headwater.errors import JobError
from headwater.plan.levels import JobPlan
from headwater.runtime import collector, offsets, progress
from headwater.runtime.alignment import Marks
from headwater.runtime.closing import close_all
from headwater.runtime.engine import Settings
from headwater.runtime.host import LevelHost, Outcome
from headwater.runtime.outbox import Outbox, stage
from headwater.runtime.outlet import Routed
from headwater.runtime.saved.errors import SavepointError
from headwater.runtime.saved.files import Savepoint
from headwater.runtime.saved.origin import Origin, begin
from headwater.runtime.saved.taking import Epoch, Part, take, write_part
from headwater.runtime.split import SplitHost
from headwater.runtime.state_view import StateView, level_of_state, view_of
from headwater.runtime.steps import EpochStep
from headwater.runtime.supervised import SupervisedJob
from headwater.state import changelog

Stores = dict[tuple[int, int], changelog.MemoryRecordStore]
"""The changelog of each place, by level and subtask."""


class LocalCluster:
    """Every subtask of every level, called in turn, over in-memory changelogs."""

    def __init__(self, plan: JobPlan, stores: Stores | None = None, origin: Origin | None = None) -> None:
        """With the stores of a cluster that is given up, one that goes on from what is committed there."""
        self.plan, self._origin = plan, origin
        places = [(level, subtask) for level in range(1, plan.depth + 1) for subtask in range(plan.parallelism)]
        self.hosts = {place: LevelHost(plan, *place) for place in places}
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
        with collector.paused():
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
                    begin(host, self.plan, (level, subtask), self._origin)
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
    """A job in a thread, and what of it is committed: state in the stores of its cluster, the offset, the marks."""

    def __init__(self, plan: JobPlan, settings: Settings) -> None:
        super().__init__(plan.graph.name, settings)
        self._plan = plan
        self._folder = Path(tempfile.mkdtemp(prefix="headwater-local-"))
        self._job_id = uuid.uuid4().hex
        origin = settings.origin
        self._first_epoch = 0 if origin is None else origin.epoch + 1
        self._outbox = Outbox(self._folder, plan.sinks_by_uid(), settings.on_step, self._first_epoch)
        self._cluster = LocalCluster(plan, origin=origin)
        self._committed = threading.Lock()
        """Held while an epoch is committed and published, so that who has it sees a published epoch."""
        self._targets: dict[str, Positions] | None = None
        self._offset: offsets.Offset | None = None
        self._marks: Marks = {}

    def start(self) -> None:
        for source in self._plan.sources():
            source.source.check(source.schema)
        origin = self._settings.origin
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

    def _recover(self) -> None:
        """Go back to what is committed: new places over its state, and its epochs published."""
        self._cluster = LocalCluster(self._plan, self._cluster.stores, self._settings.origin)
        self._open_sinks(resumed=True)
        self._outbox.recover(lambda epoch: self._offset is not None and epoch < self._offset["epoch"])
        with self._lock:
            self._status.epoch = self._status.published = self._outbox.published

    def release(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run_epochs(self) -> str:
        plan, settings = self._plan, self._settings
        if settings.bounded and self._targets is None:
            self._targets = offsets.end_positions(plan)
        if self._offset is None:
            self._offset = offsets.first_offset(plan, settings.clock, settings.origin)
        while not self._stopping.is_set():
            before, most = self._offset, settings.max_rows_per_epoch
            drains = self._draining.is_set()
            after = offsets.next_offset(
                plan, before, settings.clock, most, self._targets, marks=self._marks, drains=drains
            )
            if after is before:
                return "finished"
            self._run_epoch(before, after)
            if after["positions"] == before["positions"] and not after["end"]:
                self._stopping.wait(settings.checkpoint_interval_ms / 1000)
        return "stopped"

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
            reports.append(progress.report(outcome, staged, positions={}))
        on_step(EpochStep.STAGED, facts.epoch)
        manifest_facts = {"end": end["end"], "positions": end["positions"]}
        self._outbox.write_manifest(facts.epoch, progress.staged_files(reports), manifest_facts)
        on_step(EpochStep.MANIFEST, facts.epoch)
        with self._committed:
            self._cluster.commit()
            self._offset, self._marks = end, marks
            with self._lock:
                progress.update_status(self._status, facts.epoch, reports)
                self._status.positions = end["positions"]
            on_step(EpochStep.COMMITTED, facts.epoch)
            self._outbox.publish(facts.epoch)
        with self._lock:
            self._status.published = facts.epoch

    def state(self, uid: str, name: str, *, epoch: int | None = None) -> StateView:
        level = level_of_state(self._plan, uid, name)
        newest, _, hosts = self._newest()
        has_one = newest >= self._first_epoch
        if not has_one or epoch not in (None, newest):
            raise JobError.not_retained(self.name, epoch, [newest] if has_one else [])
        return view_of([host for (at, _), host in hosts.items() if at == level], uid, name, newest)

    def _save(self, path: Path) -> Savepoint:
        self._wait_until_published(path, self._first_epoch)
        epoch, offset, hosts = self._newest()
        if offset["epoch"] != epoch + 1:
            raise SavepointError.failed(path, f"epoch {epoch + 1} is committed and could not be published")
        what = Epoch(self._plan, self._job_id, epoch, offset)
        parts = partial(self._write_parts, hosts)
        return take(path, what, parts, self._settings.on_savepoint_step)

    def _write_parts(self, hosts: dict[tuple[int, int], LevelHost], folder: Path) -> Iterator[Part]:
        for (_, subtask), host in hosts.items():
            yield write_part(host, self._plan, subtask, folder)

    def _newest(self) -> tuple[int, offsets.Offset, dict[tuple[int, int], LevelHost]]:
        """The newest published epoch: its number, its offset, and copies of all places."""
        with self._committed:
            epoch, offset = self._outbox.published, self._offset
            stores = {place: store.copy() for place, store in self._cluster.stores.items()}
        hosts = {place: LevelHost(self._plan, *place) for place in stores}
        for place, host in hosts.items():
            changelog.catch_up(host, stores[place], f"level {place[0]}, subtask {place[1]}")
        return epoch, offset or {}, hosts
