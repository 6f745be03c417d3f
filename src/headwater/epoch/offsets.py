"""Planning epochs: the offset after the next one, and what to read between two offsets.

The second is a pure function, which is what makes a replay the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headwater.connectors.contract import FOR_EVER_MS, NO_SPLIT, Positions
from headwater.data.batch import MIN_TIMESTAMP
from headwater.epoch.alignment import Marks, Stand, held_back, merged
from headwater.epoch.backpressure import Unaligned, next_pace
from headwater.epoch.clock import Clock
from headwater.epoch.offset import BySplit, Offset
from headwater.graph.nodes import SourceNode
from headwater.plan.plan import JobPlan
from headwater.task.payload import EpochFacts

if TYPE_CHECKING:
    from headwater.savepoints.origin import Origin


@dataclass(frozen=True)
class SplitRange:
    """What a task reads of one split in an epoch."""

    node: int
    split: str
    start: int
    end: int
    ended: bool
    """Whether the split has come to its end with this range, so that its watermark goes to the maximum."""
    idle: bool
    """Whether the split has been without rows for so long that nobody is to wait for it."""

    def at(self, uid: str, position: int) -> BySplit:
        """A position of it, as it is reported; what stands for a source without splits has none."""
        return {} if self.split == NO_SPLIT else {uid: {self.split: position}}


def first_offset(plan: JobPlan, clock: Clock, origin: Origin | None = None) -> Offset:
    """The offset before the first epoch, which is epoch 0 or the one after that of the origin."""
    now_ms = clock(-1)
    positions = {plan.graph.uid(node): node.source.earliest() for node in plan.sources()}
    active_ms = {
        uid: dict.fromkeys(positions[uid] or [NO_SPLIT], now_ms)
        for node in plan.sources()
        if node.watermarks.idle_ms is not None and (uid := plan.graph.uid(node))
    }
    first = Offset(0, end=False, positions=positions, started_ms=now_ms, now_ms=now_ms, active_ms=active_ms)
    return first if origin is None else origin.offset(first)


def next_offset(
    plan: JobPlan,
    start: Offset,
    clock: Clock,
    max_rows: int,
    targets: dict[str, Positions] | None,
    *,
    marks: Marks | None = None,
    unaligned: Unaligned | None = None,
    drains: bool = False,
    goes_on: bool = False,
) -> Offset:
    """The offset of the next epoch. At the end of input the offset stays as it is.

    `targets` bound a run that ends, and the input ends there, unless the job `goes_on` with another run; `marks` are the
    watermarks that the splits made in the epoch before. Unaligned epochs end in an aligned one, which reads nothing and
    is planned when nothing waits, as far as that is known. When the job `drains`, its input ends where it is.
    """
    if start.end:
        return start
    now_ms = max(clock(start.epoch), start.now_ms)
    known = replace(start, epoch=start.epoch + 1, now_ms=now_ms, pace=None, unaligned_ms=None)
    if drains:
        return replace(known, end=True)
    reached_ms = merged(plan, start.marks, marks or {})
    inputs = [_input(plan, node, start, now_ms, targets, goes_on=goes_on) for node in plan.sources()]
    held = held_back(stand for one in inputs for stand in one.stands(reached_ms.get(one.uid, {}), now_ms))
    pace = None
    if unaligned is not None:
        pace = next_pace(start.pace, unaligned.backlog, max_rows, plan.parallelism)
        max_rows = 0 if pace.paused or unaligned.wants_aligned else pace.rows
    positions = {}
    done = True
    for one in inputs:
        ceiling = {s: one.begin.get(s, 0) if (one.uid, s) in held else at for s, at in one.ceiling.items()}
        most = one.node.source.max_positions_per_epoch
        positions[one.uid] = _within(one.begin, ceiling, max_rows if most is None or not max_rows else most)
        done = done and one.ends and one.is_read_up_at(positions[one.uid])
    unaligned_ms = None
    if unaligned is not None:
        done = done and unaligned.backlog == 0 and not any(one.is_read_to(positions[one.uid]) for one in inputs)
        if not done and not unaligned.wants_aligned:
            unaligned_ms = unaligned.target_ms
    return replace(
        known,
        end=done and not goes_on,
        positions=positions,
        active_ms={one.uid: one.active_ms for one in inputs if one.node.watermarks.idle_ms is not None},
        marks=reached_ms,
        pace=pace,
        unaligned_ms=unaligned_ms,
    )


@dataclass(frozen=True)
class _Input:
    """A source when an epoch is planned."""

    node: SourceNode
    uid: str
    begin: Positions
    ceiling: Positions
    """How far each split could be read now."""
    goal: Positions
    ends: bool
    """Whether there is nothing more to come once the goal is reached."""
    active_ms: dict[str, int]
    """When each split last had rows to read; for a new split, now. Without splits, since when there are none."""

    def is_read_up_at(self, positions: Positions) -> bool:
        """Whether nothing is left up to the goal; a split that is gone has nothing."""
        return all(at >= self.goal[split] for split, at in positions.items())

    def is_read_to(self, positions: Positions) -> bool:
        """Whether an epoch that goes so far has rows of it."""
        return any(at > self.begin.get(split, 0) for split, at in positions.items())

    def stands(self, reached_ms: dict[str, int], now_ms: int) -> Iterator[Stand]:
        """Where the splits stand in the source's group, if it is in one."""
        strategy = self.node.watermarks
        if strategy.group is None:
            return
        for split, ceiling in self.ceiling.items():
            at = self.begin.get(split, 0)
            is_read = self.ends and at >= self.goal[split]
            is_idle = _is_idle(self.node, self.active_ms, split, now_ms)
            counts = at < ceiling or not (is_read or is_idle)
            mark_ms = reached_ms.get(split, MIN_TIMESTAMP)
            yield Stand(self.uid, split, strategy.group, mark_ms, strategy.max_drift_ms, counts)


def _input(
    plan: JobPlan,
    node: SourceNode,
    start: Offset,
    now_ms: int,
    targets: dict[str, Positions] | None,
    *,
    goes_on: bool,
) -> _Input:
    uid = plan.graph.uid(node)
    begin = dict(start.positions[uid])
    latest = node.source.latest(begin, start.since_start_ms(now_ms))
    now_or_end = _end_of(node) if node.source.bounded else latest
    goal = now_or_end if targets is None else targets[uid]
    ceiling = {split: min(latest[split], goal[split]) for split in latest if split in goal}
    known = start.active_ms.get(uid, {})
    seen = latest if goes_on else ceiling  # rows that are left to the next run are rows all the same
    active_ms = {s: now_ms if seen[s] > begin.get(s, 0) else known.get(s, now_ms) for s in ceiling}
    active_ms = active_ms or {NO_SPLIT: known.get(NO_SPLIT, now_ms)}
    return _Input(node, uid, begin, ceiling, goal, targets is not None or node.source.bounded, active_ms)


def _is_idle(node: SourceNode, active_ms: Mapping[str, int], split: str, now_ms: int) -> bool:
    idle_ms = node.watermarks.idle_ms
    return idle_ms is not None and split in active_ms and now_ms - active_ms[split] >= idle_ms


def end_positions(plan: JobPlan) -> dict[str, Positions]:
    """Where the input ends for a run that reads what is there."""
    return {plan.graph.uid(node): _end_of(node) for node in plan.sources()}


def positions_now(plan: JobPlan, start: Offset, clock: Clock) -> dict[str, Positions]:
    """How far a run that starts at an offset could read at this moment, for one that goes on later."""
    elapsed_ms = start.since_start_ms(max(clock(start.epoch), start.now_ms))
    by_uid = {plan.graph.uid(node): node.source for node in plan.sources()}
    return {uid: source.latest(dict(start.positions[uid]), elapsed_ms) for uid, source in by_uid.items()}


def is_caught_up(start: Offset, targets: dict[str, Positions], unaligned: Unaligned | None) -> bool:
    """Whether a run that goes on later has read to its targets and left nothing in flight, if it has planned an epoch."""
    read = (
        (targets[uid].get(split, at), at) for uid, splits in start.positions.items() for split, at in splits.items()
    )
    return (unaligned is None or unaligned.backlog == 0) and all(at >= target for target, at in read)


def ranges(plan: JobPlan, start: Offset, end: Offset) -> list[SplitRange]:
    """What to read for the epoch between two offsets: every split, also when it has nothing new.

    A split that is gone has ended, so that nobody waits for it. A source that has no splits has not: others wait for it as
    for a split without rows, until it has some.
    """
    found = []
    for node in plan.sources():
        uid = plan.graph.uid(node)
        begin, reached = start.positions[uid], end.positions[uid]
        full = _end_of(node) if node.source.bounded else {}
        for split in sorted(reached):
            at, to = begin.get(split, 0), reached[split]
            ended = end.end or full.get(split) == to
            idle = not ended and _is_idle(node, end.active_ms.get(uid, {}), split, end.now_ms)
            found.append(SplitRange(node.id, split, at, to, ended, idle))
        if not reached or (not begin and not node.source.bounded):
            ended = end.end or node.source.bounded or bool(reached)
            idle = not ended and _is_idle(node, end.active_ms.get(uid, {}), NO_SPLIT, end.now_ms)
            found.append(SplitRange(node.id, NO_SPLIT, 0, 0, ended, idle))
        gone = sorted(set(begin) - set(reached))
        found += [SplitRange(node.id, split, begin[split], begin[split], ended=True, idle=False) for split in gone]
    return found


def facts_of(end: Offset) -> EpochFacts:
    """The facts of the epoch that leads to an offset. Epochs count from 0, as Spark's batches do."""
    return EpochFacts(end.epoch - 1, end.now_ms, end.unaligned_ms)


def _end_of(node: SourceNode) -> Positions:
    """Where a source ends: a bounded one where it says, whatever its rate; another one where it stands now."""
    return node.source.latest(node.source.earliest(), FOR_EVER_MS if node.source.bounded else 0)


def _within(begin: Mapping[str, int], ceiling: Positions, max_rows: int) -> Positions:
    """As far as the ceiling, but not more than `max_rows` in all, shared evenly by the splits that have rows."""
    waiting = [s for s in ceiling if ceiling[s] > begin.get(s, 0)]
    share = max(1, max_rows // len(waiting)) if waiting and max_rows else 0
    return {s: max(begin.get(s, 0), min(ceiling[s], begin.get(s, 0) + share)) for s in ceiling}
