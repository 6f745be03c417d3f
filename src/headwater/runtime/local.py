"""The local engine: the same hosts as on Spark, in one process, without a JVM. For tests, notebooks and examples.

State lives in memory: a local job starts from the beginning each time.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
import threading
from pathlib import Path

from headwater.plan.levels import JobPlan
from headwater.runtime import collector, offsets, progress
from headwater.runtime.alignment import Marks
from headwater.runtime.closing import close_all
from headwater.runtime.engine import JobStatus, Settings
from headwater.runtime.host import LevelHost, Outcome
from headwater.runtime.outbox import Outbox, stage
from headwater.runtime.outlet import Routed
from headwater.runtime.split import SplitHost
from headwater.runtime.steps import EpochStep
from headwater.state import changelog


class LocalCluster:
    """Every subtask of every level, called in turn, over in-memory changelogs."""

    def __init__(self, plan: JobPlan) -> None:
        self.plan = plan
        places = [(level, subtask) for level in range(1, plan.depth + 1) for subtask in range(plan.parallelism)]
        self.hosts = {place: LevelHost(plan, *place) for place in places}
        self.stores = {place: changelog.MemoryRecordStore() for place in places}
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
        """One epoch through every level; the outcomes with the place they come from."""
        with collector.paused():
            return self._run_levels(payloads)

    def _run_levels(self, payloads: list[Routed]) -> list[tuple[str, Outcome]]:
        outcomes = []
        for level in range(1, self.plan.depth + 1):
            inputs: dict[int, list[bytes]] = {subtask: [] for subtask in range(self.plan.parallelism)}
            for subtask, data in payloads:
                inputs[subtask].append(data)
            payloads = []
            for subtask, received in inputs.items():
                host, store = self.hosts[level, subtask], self.stores[level, subtask]
                head = changelog.catch_up(host, store, f"level {level}, subtask {subtask}")
                host.token = None
                outcome = host.run(received)
                changelog.append(host, store, head, f"local-{0 if head is None else head.sequence}")
                payloads.extend(outcome.payloads)
                outcomes.append((f"l{level}-{subtask:04d}", outcome))
        assert not payloads, "the deepest level has nobody to send to"
        return outcomes


class LocalEngine:
    """Starts jobs in threads of this process."""

    def start(self, plan: JobPlan, settings: Settings) -> LocalJob:
        job = LocalJob(plan, settings)
        job.start()
        return job


class LocalJob:
    """A job in a thread."""

    def __init__(self, plan: JobPlan, settings: Settings) -> None:
        self.name = plan.graph.name
        self._plan, self._settings = plan, settings
        self._status = JobStatus("running")
        self._error: Exception | None = None
        self._stopping = threading.Event()
        for source in plan.sources():
            source.source.check(source.schema)
        self._folder = Path(tempfile.mkdtemp(prefix="headwater-local-"))
        for node in plan.sinks():
            node.sink.open(plan.graph.uid(node), f"local-{plan.graph.name}", node.schema, resumed=False)
        self._outbox = Outbox(self._folder, plan.sinks_by_uid(), settings.on_step)
        self._cluster = LocalCluster(plan)
        self._thread = threading.Thread(target=self._run, name=f"headwater-{self.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait(self, timeout: float | None = None) -> bool:
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        return not self._thread.is_alive()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def status(self) -> JobStatus:
        return copy.deepcopy(self._status)

    def _run(self) -> None:
        try:
            self._run_epochs()
        except Exception as error:
            self._fail(error)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
            try:
                self._cluster.close()
            except Exception as error:
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Keep the first error for whoever waits."""
        if self._error is None:
            self._error = error
            self._status.state, self._status.error = "failed", str(error)

    def _run_epochs(self) -> None:
        plan, settings = self._plan, self._settings
        targets = offsets.end_positions(plan) if settings.bounded else None
        offset = offsets.first_offset(plan, settings.clock)
        marks: Marks = {}
        while not self._stopping.is_set():
            after = offsets.next_offset(plan, offset, settings.clock, settings.max_rows_per_epoch, targets, marks=marks)
            if after is offset:
                self._status.state = "finished"
                return
            moved = after["positions"] != offset["positions"]
            marks = self._run_epoch(offset, after)
            offset = after
            if not moved and not offset["end"]:
                self._stopping.wait(settings.checkpoint_interval_ms / 1000)
        self._status.state = "stopped"

    def _run_epoch(self, start: offsets.Offset, end: offsets.Offset) -> Marks:
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
        on_step(EpochStep.COMMITTED, facts.epoch)
        self._outbox.publish(facts.epoch)
        progress.update_status(self._status, facts.epoch, reports)
        self._status.positions = end["positions"]
        self._status.published = facts.epoch
        return marks
