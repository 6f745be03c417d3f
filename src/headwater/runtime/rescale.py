"""Rescaling: the state of a job that ran on some number of subtasks, for another number of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from headwater.errors import ChangelogError
from headwater.plan.levels import JobPlan
from headwater.runtime.host import LevelHost
from headwater.state import changelog
from headwater.state.spread import Subtasks

Place = tuple[int, int]
"""A level and a subtask."""


def rescale(records: Mapping[Place, bytes], plan: JobPlan) -> dict[Place, bytes]:
    """The base records of a plan's subtasks, made of those of all subtasks of the same job at any parallelism.

    Every table says itself how it is dealt out, every operator what becomes of the facts besides. Nothing is lost; lists
    that go to all are there once for each.
    """
    entries = frozenset(plan.graph.uid(plan.graph.node(node)) for node in plan.level_of_entry)
    to = Subtasks(plan.parallelism, plan.groups, entries)
    found: dict[Place, bytes] = {}
    for level in range(1, plan.depth + 1):
        before = [records[place] for place in sorted(records) if place[0] == level]
        for subtask, record in enumerate(_dealt(LevelHost(plan, level, 0), before, to)):
            found[level, subtask] = record
    return found


def _dealt(host: LevelHost, records: Sequence[bytes], to: Subtasks) -> Iterator[bytes]:
    """One record for each new subtask; the host is asked how, and left as it is."""
    metas = []
    before: dict[tuple[str, str], list[pa.Table]] = {}
    for record in records:
        meta, sections = changelog.unpack(record)
        metas.append(meta)
        for uid, name, table in sections:
            before.setdefault((uid, name), []).append(table)
    tables, operators = host.tables(), host.operators()
    if not metas or set(before) - set(tables) or any(set(meta) != set(operators) for meta in metas):
        raise ChangelogError.bad_blob("it is the state of another program")
    after = {place: table.spread.deal(before[place], to) for place, table in tables.items() if place in before}
    for subtask in range(to.count):
        facts = {
            uid: operator.merged_meta([meta[uid] for meta in metas], subtask, to.count)
            for uid, operator in operators.items()
        }
        yield changelog.pack(facts, [(*place, parts[subtask]) for place, parts in after.items() if len(parts[subtask])])
