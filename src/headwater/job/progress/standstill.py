"""Event time that stands still although rows come: told once, with the split it waits for and the ways out.

It is decided in the driver, by the clock of the epochs, from the reports of tasks alone.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from headwater.connectors.contract import NO_SPLIT
from headwater.data.batch import MIN_TIMESTAMP
from headwater.graph.nodes import SourceNode
from headwater.job.progress.durations_text import long_text
from headwater.job.splits import Holder, Splits, SplitStatus, holder_in
from headwater.moments import moment_text
from headwater.plan.plan import JobPlan

LOG = logging.getLogger("headwater.time")
PATIENCE_MS, PATIENCE_EPOCHS = 20_000, 5
"""So long, and for so many epochs with rows, event time may stand: longer than rows are apart by chance."""


class EventTimeWatch:
    """Sees the splits of a job after each epoch, and tells of event time that stands still."""

    def __init__(self, plan: JobPlan) -> None:
        self._job = plan.graph.name
        self._groups = [_Group(self._job, sources) for sources in _that_meet(plan)]

    def begin(self) -> None:
        """Forget what was seen: the job starts, or goes back to what is committed."""
        for group in self._groups:
            group.begin()

    def see(self, splits: Splits, now_ms: int) -> None:
        """Take the splits after an epoch."""
        for group in self._groups:
            told = group.see(splits, now_ms)
            if told is not None:
                LOG.warning("%s", told, extra={"job": self._job})


class _Group:
    """Sources that meet in some step, so that one can hold the others back."""

    def __init__(self, job: str, sources: Mapping[str, SourceNode]) -> None:
        self._job, self._sources = job, sources
        self.begin()

    def begin(self) -> None:
        self._reached_ms = MIN_TIMESTAMP
        self._since_ms: int | None = None
        self._epochs, self._was_told = 0, False
        self._rows: dict[tuple[str, str], int] = {}
        self._rows_before: dict[tuple[str, str], int] = {}

    def see(self, splits: Splits, now_ms: int) -> str | None:
        """What is to be told, when event time has stood for too long."""
        own = {uid: splits.get(uid) or _without_splits(node) for uid, node in self._sources.items()}
        rows = {(uid, split): one.rows_in for uid, found in own.items() for split, one in found.items()}
        holder, came = holder_in(own), rows != self._rows
        self._rows = rows
        if holder is None or self._since_ms is None or holder.status.watermark_ms > self._reached_ms:
            self._reached_ms = self._reached_ms if holder is None else holder.status.watermark_ms
            self._since_ms, self._epochs, self._was_told, self._rows_before = now_ms, 0, False, rows
            return None
        self._epochs += came or self._makes_others_wait(own, holder)
        stood_ms, place = now_ms - self._since_ms, (holder.uid, holder.split)
        count = rows[place] - self._rows_before.get(place, 0)
        patience_ms = PATIENCE_MS + (0 if count else self._sources[holder.uid].watermarks.idle_ms or 0)
        if self._was_told or self._epochs < PATIENCE_EPOCHS or stood_ms < patience_ms:
            return None
        self._was_told = True
        return self._told(holder, count, stood_ms)

    def _makes_others_wait(self, own: Splits, holder: Holder) -> bool:
        """Whether splits that have rows are not read, because they are aligned with one that has none."""
        strategy = self._sources[holder.uid].watermarks
        return strategy.group is not None and any(
            one.watermark_ms - holder.status.watermark_ms > self._sources[uid].watermarks.max_drift_ms
            for uid, found in own.items()
            for one in found.values()
            if one.counts and self._sources[uid].watermarks.group == strategy.group
        )

    def _told(self, holder: Holder, count: int, stood_ms: int) -> str:
        at_ms, took = holder.status.watermark_ms, long_text(stood_ms)
        stands = f"has stood at {moment_text(at_ms, millis=False)} for {took}"
        if at_ms == MIN_TIMESTAMP:  # what was before the job was started this time is not known here
            stands = f"has not moved since the job started {took} ago"
        where = f"source {holder.uid!r}"
        if holder.split != NO_SPLIT:
            where = f"split {holder.split!r} of {where}"
        strategy = self._sources[holder.uid].watermarks
        if not count:
            facts = f"it waits for {where}, which has had no rows"
            way_out = (
                "let nobody wait for a split without rows, with .with_idleness('30 s') on the watermarks of the source, "
                "or give it rows"
            )
        elif strategy.generator is None:
            facts = f"{where} has had {count:,} rows, none of them later than those before"
            way_out = f"see that the times in column {strategy.column!r} go up, or take event time from another column"
        else:
            facts = f"{where} has had {count:,} rows, and its watermark generator has said nothing later"
            way_out = "see that rows come that make it say more, or use hw.Watermarks.bounded(column, delay)"
        return f"job {self._job!r}: event time {stands} although rows come: {facts}; {way_out}"


def _without_splits(node: SourceNode) -> Mapping[str, SplitStatus]:
    """What stands for a source that has no splits: one that has none yet is waited for, unless it is idle some time."""
    is_waited_for = not node.source.bounded and node.watermarks.idle_ms is None
    return {NO_SPLIT: SplitStatus()} if is_waited_for else {}


def _that_meet(plan: JobPlan) -> list[dict[str, SourceNode]]:
    """The sources with event time, by the steps with state that wait for them: those of one step are together."""
    above: dict[int, frozenset[int]] = {}
    groups: list[frozenset[int]] = []
    for node in plan.graph:
        heard = [] if node.sets_time else [above[edge.source] for edge in node.inputs]
        above[node.id] = frozenset({node.id} if node.is_source else ()).union(*heard)
        if node.is_stateful:
            met = [group for group in groups if group & above[node.id]]
            groups = [group for group in groups if group not in met] + [above[node.id].union(*met)]
    timed = {node.id: node for node in plan.sources() if node.watermarks.column is not None}
    found = [{plan.graph.uid(timed[one]): timed[one] for one in sorted(group) if one in timed} for group in groups]
    return [group for group in found if group]
