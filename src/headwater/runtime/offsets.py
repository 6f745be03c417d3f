"""The offset of a job: where every split of every source stands, the epoch's number, its time, and whether input ended.

It is a plain dictionary, so that an engine can keep it in its own log. Planning an epoch from two offsets is a pure
function, which is what makes a replay the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headwater.connectors.contract import Positions
from headwater.graph.nodes import SourceNode
from headwater.plan.levels import JobPlan
from headwater.runtime.payload import EpochFacts

Offset = dict[str, Any]


@dataclass(frozen=True)
class SplitRange:
    """What a task reads of one split in an epoch."""

    node: int
    split: str
    start: int
    end: int
    ended: bool
    """Whether the split has come to its end with this range, so that its watermark goes to the maximum."""


Clock = Callable[[int], int]
"""Gives the time of an epoch, in ms, when the epoch is planned; asked with -1 before the first epoch."""


def wall_clock(epoch: int) -> int:  # noqa: ARG001
    """The machine's time."""
    return time.time_ns() // 1_000_000


def first_offset(plan: JobPlan, clock: Clock) -> Offset:
    """The offset before the first epoch, which is epoch 0."""
    now_ms = clock(-1)
    positions = {plan.graph.uid(node): node.source.earliest() for node in plan.sources()}
    return {"epoch": 0, "started_ms": now_ms, "now_ms": now_ms, "end": False, "positions": positions}


def next_offset(
    plan: JobPlan, start: Offset, clock: Clock, max_rows: int, targets: dict[str, Positions] | None
) -> Offset:
    """The offset of the next epoch; `targets` bound a run that ends. At the end of input the offset stays as it is."""
    if start["end"]:
        return start
    now_ms = max(clock(start["epoch"]), start["now_ms"])
    positions = {}
    done = True
    for node in plan.sources():
        uid = plan.graph.uid(node)
        begin: Positions = start["positions"][uid]
        latest = node.source.latest(begin, now_ms - start["started_ms"])
        goal = latest if targets is None else targets[uid]
        ceiling = {split: min(latest[split], goal[split]) for split in latest if split in goal}
        reached = _within(begin, ceiling, max_rows)
        positions[uid] = reached
        done = done and (targets is not None or node.source.bounded) and reached == goal
    return {**start, "epoch": start["epoch"] + 1, "now_ms": now_ms, "end": done, "positions": positions}


def end_positions(plan: JobPlan) -> dict[str, Positions]:
    """Where the input ends for a run that reads what is there."""
    return {plan.graph.uid(node): _end_of(node) for node in plan.sources()}


def ranges(plan: JobPlan, start: Offset, end: Offset) -> list[SplitRange]:
    """What to read for the epoch between two offsets: every split, also when it has nothing new."""
    found = []
    for node in plan.sources():
        uid = plan.graph.uid(node)
        begin, reached = start["positions"][uid], end["positions"][uid]
        full = _end_of(node) if node.source.bounded else {}
        for split in sorted(reached):
            at, to = begin.get(split, 0), reached[split]
            ended = bool(end["end"]) or full.get(split) == to
            found.append(SplitRange(node.id, split, at, to, ended))
    return found


def facts_of(end: Offset) -> EpochFacts:
    """The facts of the epoch that leads to an offset. Epochs count from 0, as Spark's batches do."""
    return EpochFacts(end["epoch"] - 1, end["now_ms"])


def _end_of(node: SourceNode) -> Positions:
    """Where a source ends: a bounded one where it says, whatever its rate; another one where it stands now."""
    return node.source.latest(node.source.earliest(), 1 << 40 if node.source.bounded else 0)


def _within(begin: Positions, ceiling: Positions, max_rows: int) -> Positions:
    """As far as the ceiling, but not more than `max_rows` in all, shared evenly by the splits that have rows."""
    waiting = [s for s in ceiling if ceiling[s] > begin.get(s, 0)]
    share = max(1, max_rows // len(waiting)) if waiting else 0
    return {s: max(begin.get(s, 0), min(ceiling[s], begin.get(s, 0) + share)) for s in ceiling}
