"""Dealing out: the state of all subtasks of a job, however many they were, as the record of one subtask of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from headwater.plan.plan import JobPlan
from headwater.state.records import pack
from headwater.state.spread import Subtasks, timed
from headwater.task.host import LevelHost

StateOf = tuple[str, str]
"""A step's uid and the name of its state."""


def subtasks(plan: JobPlan, uid: str) -> Subtasks:
    """The subtasks of a plan as a step of it sees them."""
    entries = {plan.graph.uid(plan.graph.node(node)): plan.graph.node(node) for node in plan.level_of_entry}
    feeders = frozenset(place if by is None else timed(place, by) for place, by in plan.feeders(entries[uid]))
    return Subtasks(plan.parallelism, plan.groups, frozenset(entries), feeders)


def deal(
    host: LevelHost,
    plan: JobPlan,
    subtask: int,
    tables: Mapping[StateOf, Sequence[pa.Table]],
    metas: Mapping[str, Sequence[dict[str, Any]]],
) -> bytes:
    """The base record of a subtask. Every table says itself how it is dealt out, every operator what becomes of the facts.

    The host is of the level and is left as it is. `tables` and `metas` come from all subtasks, in their order; nothing in
    them is lost, and lists that go to all are there once for each.
    """
    sections = []
    for place, table in host.tables().items():
        before = tables.get(place)
        if before:
            part = table.spread.deal(before, subtasks(plan, place[0]))[subtask]
            if len(part):
                sections.append((*place, part))
    facts = {
        uid: operator.merged_meta(metas[uid], subtask, plan.parallelism)
        for uid, operator in host.operators().items()
        if metas.get(uid)
    }
    return pack(facts, sections)
