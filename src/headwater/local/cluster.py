"""All places of a plan in one process: the same hosts as on Spark, over changelogs in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from headwater.epoch.offset import Offset
from headwater.plan.plan import JobPlan
from headwater.savepoints.origin import Origin, begin
from headwater.state import changelog
from headwater.task import garbage_collection
from headwater.task.closing import close_all
from headwater.task.entry import Stopwatch
from headwater.task.host import LevelHost
from headwater.task.outcome import Outcome
from headwater.task.outlet import Routed
from headwater.task.split import SplitHost

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
                outcomes.append((f"l{level}-{subtask:04d}", host.weighed(outcome)))
        assert not payloads, "the deepest level has nobody to send to"
        return outcomes


@dataclass(frozen=True)
class CommittedEpoch:
    """An epoch that is committed and published: its number, its offset, and a copy of the records of all places."""

    epoch: int
    offset: Offset | None
    """None before the first one."""
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
