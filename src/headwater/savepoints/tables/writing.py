"""A savepoint made of tables: state for a program that has never run, or a savepoint with some of its state replaced."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.epoch.offset import BySplit, Offset
from headwater.graph.describe import describe
from headwater.savepoints.dealing import StateOf
from headwater.savepoints.errors import Impossible, SavepointError
from headwater.savepoints.facts import facts_of
from headwater.savepoints.files import Description, SavedFile, SavedStep, Savepoint, complete, write_table, writing
from headwater.savepoints.fitting import CHANNELS, Program, difference, evolve
from headwater.savepoints.remembered import copy_remembered
from headwater.savepoints.renaming import Renaming
from headwater.savepoints.tables.given import as_state
from headwater.savepoints.tables.reading import SavedJob
from headwater.state.spread import Subtasks
from headwater.streams.environment import Environment

Tables = Mapping[tuple[str, str], Any]
"""By step and state: an Arrow table, a list of dicts, or whatever gives an Arrow table with `toArrow` or `to_arrow`."""


def write(
    path: str | os.PathLike[str],
    env: Environment,
    tables: Tables,
    *,
    base: str | os.PathLike[str] | None = None,
    positions: Mapping[str, Mapping[str, int]] | None = None,
) -> SavedJob:
    """Write a savepoint for a program into a new folder: `env.run(from_=path)` goes on from it.

    Columns are those that `read` shows. Types must be those of the state or narrower ones, as when state evolves. With
    `base`, an existing savepoint, all that is not given is taken over from it. `positions` say where sources go on, by
    uid and split; a source of which nothing is known starts where it is told to.
    """
    program = Program(env.plan())
    before = None if base is None else Savepoint.open(Path(base))
    states = {place: _state(program, place, given) for place, given in tables.items()}
    offset = _offset(program, before, positions or {})
    with writing(Path(path)) as folder:
        writer = _Writer(program, before, folder)
        steps = {} if before is None else dict(before.description.steps)
        touched = list(dict.fromkeys(uid for uid, _ in states))
        kept = {uid: writer.copy(step) for uid, step in steps.items() if uid not in touched}
        made = {uid: writer.step(uid, {name: t for (at, name), t in states.items() if at == uid}) for uid in touched}
        known = None if before is None else before.description
        description = Description(
            program.plan.graph.name,
            uuid.uuid4().hex if known is None else known.job_id,
            0 if known is None else known.epoch,
            program.plan.parallelism if known is None else known.parallelism,
            writer.groups,
            offset,
            describe(program.plan.graph),
            {**kept, **made},
            {} if before is None or known is None else copy_remembered(before, folder),
        )
        return SavedJob(complete(folder, description))


def _state(program: Program, place: StateOf, given: Any) -> pa.Table:
    step, state = place
    if place not in program.tables or state.startswith(CHANNELS):
        known = [f"{uid}/{name}" for uid, name in program.tables if not name.startswith(CHANNELS)]
        raise SavepointError.no_state(f"job {program.plan.graph.name!r}", step, state, known)
    return as_state(given, program.tables[place], step, state)


def _offset(program: Program, before: Savepoint | None, positions: BySplit) -> Offset:
    found = Offset(1, end=False, positions={}) if before is None else before.offset
    for uid, splits in positions.items():
        if uid not in program.sources:
            raise SavepointError.bad_position(uid, "there is no such source", program.sources)
        for split, at in splits.items():
            if type(split) is not str or type(at) is not int or at < 0:
                raise SavepointError.bad_position(uid, f"{split!r}: {at!r} is no position", program.sources)
    given = {uid: dict(splits) for uid, splits in positions.items()}
    return replace(found, positions={**found.positions, **given})


class _Writer:
    """Writes the steps of a savepoint."""

    def __init__(self, program: Program, before: Savepoint | None, folder: Path) -> None:
        self._program, self._before, self._folder = program, before, folder
        self.groups = program.plan.groups if before is None else before.description.key_groups

    def copy(self, step: SavedStep) -> SavedStep:
        """A step as it was."""
        assert self._before is not None
        for files in step.states.values():
            for file in files:
                self._before.copy(file, self._folder)
        return step

    def step(self, uid: str, given: dict[str, pa.Table]) -> SavedStep:
        """A step of the program, with what was given, and what was kept of it before."""
        kept, metas = self._program.kept[uid], [self._program.metas[uid]]
        states = {name: self._dealt(uid, name, table) for name, table in given.items()}
        old = None if self._before is None else self._before.description.steps.get(uid)
        if old is not None:
            problem = difference(old, kept, self._program.states(uid))
            rest = [name for name in old.states if name not in given]
            if problem is None:
                metas = facts_of(old)
                states |= {name: self._taken_over(uid, name, old.states[name]) for name in rest}
                kept = {**kept, "states": {**old.kept.get("states", {}), **kept.get("states", {})}}
            elif any(old.rows(name) for name in rest if not name.startswith(CHANNELS)):
                assert self._before is not None
                raise SavepointError.does_not_fit(self._before.path, [f"{uid}: {problem}"])
        for name in self._program.states(uid):
            if name not in states and not name.startswith(CHANNELS):
                states[name] = self._dealt(uid, name, self._program.tables[uid, name].dump())
        return SavedStep(kept, metas, states)

    def _dealt(self, uid: str, name: str, table: pa.Table) -> list[SavedFile]:
        """Files for each subtask, or one where entries do not go by keys."""
        spread = self._program.tables[uid, name].spread
        to = Subtasks(self._program.plan.parallelism, self.groups, frozenset(), frozenset())
        parts = spread.deal([table], to) if spread.key else [table]
        return [
            write_table(self._folder, (uid, name, subtask), part, spread, self.groups)
            for subtask, part in enumerate(parts)
            if len(part) or subtask == 0
        ]

    def _taken_over(self, uid: str, name: str, files: list[SavedFile]) -> list[SavedFile]:
        """The files of a state that was not given, in the program's columns if it has the state."""
        assert self._before is not None
        into = self._program.tables.get((uid, name))
        if into is None or name.startswith(CHANNELS):
            return [self._before.copy(file, self._folder) for file in files]
        found = []
        for file in files:
            try:
                table, _ = evolve({}, file, self._before.read(file), into, Renaming())
            except Impossible as error:
                raise SavepointError.does_not_fit(self._before.path, [f"{uid}/{name}: {error}"]) from None
            place = (uid, name, file.subtask)
            found.append(write_table(self._folder, place, table, into.spread, self.groups))
        return found
