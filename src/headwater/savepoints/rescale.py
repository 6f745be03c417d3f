"""Rescaling: the state of a job that ran on some number of subtasks, for another number of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from headwater.errors import ChangelogError
from headwater.plan.plan import JobPlan
from headwater.savepoints.dealing import StateOf, deal
from headwater.state.records import unpack
from headwater.task.host import LevelHost

Place = tuple[int, int]
"""A level and a subtask."""


def rescale(records: Mapping[Place, bytes], plan: JobPlan) -> dict[Place, bytes]:
    """The base records of a plan's subtasks, made of those of all subtasks of the same job at any parallelism."""
    found: dict[Place, bytes] = {}
    for level in range(1, plan.depth + 1):
        host = LevelHost.blank(plan, level)
        tables, metas = _opened(host, [records[place] for place in sorted(records) if place[0] == level])
        for subtask in range(plan.parallelism):
            found[level, subtask] = deal(host, plan, subtask, tables, metas)
    return found


def _opened(
    host: LevelHost, records: Sequence[bytes]
) -> tuple[dict[StateOf, list[pa.Table]], dict[str, list[dict[str, Any]]]]:
    """The tables and the facts of all subtasks; refuses those of another program."""
    tables: dict[StateOf, list[pa.Table]] = {}
    metas: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        meta, sections = unpack(record)
        if set(meta) != set(host.operators()):
            raise ChangelogError.bad_blob("it is the state of another program")
        for uid, facts in meta.items():
            metas.setdefault(uid, []).append(facts)
        for uid, name, table in sections:
            tables.setdefault((uid, name), []).append(table)
    if not records or set(tables) - set(host.tables()):
        raise ChangelogError.bad_blob("it is the state of another program")
    return tables, metas
