"""Fitting: what becomes of every state of a savepoint in a program, before anything is started."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa

from headwater.plan.levels import JobPlan
from headwater.runtime.host import LevelHost
from headwater.runtime.saved.dealing import StateOf
from headwater.runtime.saved.errors import Impossible, SavepointError
from headwater.runtime.saved.evolution import Evolution
from headwater.runtime.saved.files import SavedStep, Savepoint, entries_of, state_schema
from headwater.runtime.saved.renaming import Renaming
from headwater.state.table import StateTable

POSITION = "@position"
"""Stands for where a source is."""
_BY_TABLE = {"states", "broadcast states", "rows", "left rows", "right rows", "accumulator", "key"}
"""Facts of steps that are judged by the columns of their tables, and may differ."""
_CHANNELS = "@channels"
_UNSEEN = (_CHANNELS, "@inflight")
"""States of the runtime that follow from the others or from how fast a machine was."""


class Fate(Enum):
    """What becomes of a state."""

    KEPT = "kept"
    MIGRATED = "migrated"
    DROPPED = "dropped"
    NEW = "new"
    IMPOSSIBLE = "impossible"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Fit:
    """What becomes of one state of one step."""

    step: str
    state: str
    fate: Fate
    how: str = ""

    def __str__(self) -> str:
        return f"{self.step}/{self.state}: {self.fate}" + (f" ({self.how})" if self.how else "")


@dataclass(frozen=True)
class Upgrade:
    """A savepoint, as a program would take it over."""

    fits: tuple[Fit, ...]

    def of(self, fate: Fate) -> list[Fit]:
        return [fit for fit in self.fits if fit.fate is fate]

    @property
    def is_possible(self) -> bool:
        """Whether the program can go on from the savepoint; it may have to give state up."""
        return not self.of(Fate.IMPOSSIBLE)

    @property
    def exit_code(self) -> int:
        """0 when it is possible, 1 when not."""
        return 0 if self.is_possible else 1

    def __str__(self) -> str:
        width = max((len(f"{fit.step}/{fit.state}") for fit in self.fits), default=0)
        lines = [f"{f'{fit.step}/{fit.state}':<{width}}  {fit.fate!s:<10}  {fit.how}".rstrip() for fit in self.fits]
        return "\n".join(lines)


class Program:
    """The states that a plan has a place for: their tables, empty, by step and name."""

    def __init__(self, plan: JobPlan) -> None:
        self.plan = plan
        self.hosts = {level: LevelHost(plan, level, 0) for level in range(1, plan.depth + 1)}
        self.tables: dict[StateOf, StateTable] = {}
        for host in self.hosts.values():
            self.tables.update(host.tables())
        self.kept = plan.kept_by_step()
        self.sources = [plan.graph.uid(node) for node in plan.sources()]


def fit(savepoint: Savepoint, plan: JobPlan, renaming: Renaming) -> Upgrade:
    """What becomes of every state, in the order of the savepoint and then of the program."""
    program = Program(plan)
    _check_names(savepoint, renaming)
    fits = [*_positions(savepoint, program, renaming), *_states(savepoint, program, renaming)]
    return Upgrade(tuple(fits))


def require(savepoint: Savepoint, upgrade: Upgrade, *, allow_dropped_state: bool) -> None:
    """Refuse an upgrade that is impossible, or that gives up what nobody allowed to give up."""
    if not upgrade.is_possible:
        raise SavepointError.does_not_fit(savepoint.path, [str(one) for one in upgrade.of(Fate.IMPOSSIBLE)])
    dropped = upgrade.of(Fate.DROPPED)
    if dropped and not allow_dropped_state:
        raise SavepointError.would_drop(savepoint.path, [f"{one.step}/{one.state}" for one in dropped])


def evolved(renaming: Renaming, old: StateOf, new: StateOf, table: pa.Table, to: Program) -> pa.Table:
    """A saved table as the program has it, without heading."""
    evolution = Evolution(renaming.fields(*old))
    return _evolve(evolution, renaming, new, entries_of(table), to)


def _positions(savepoint: Savepoint, program: Program, renaming: Renaming) -> Iterator[Fit]:
    before = {renaming.step(uid): uid for uid in savepoint.offset["positions"]}
    for new, old in before.items():
        if new in program.sources:
            yield Fit(new, POSITION, Fate.KEPT, "" if new == old else f"was {old}")
        else:
            yield Fit(old, POSITION, Fate.DROPPED, "the program has no such source")
    for uid in program.sources:
        if uid not in before:
            yield Fit(uid, POSITION, Fate.NEW, "the source starts where it is told to")


def _states(savepoint: Savepoint, program: Program, renaming: Renaming) -> Iterator[Fit]:
    had: set[StateOf] = set()
    for old_uid, step in savepoint.description.steps.items():
        uid = renaming.step(old_uid)
        problem = _problem(step, program.kept[uid]) if uid in program.kept else None
        for old_name in sorted(step.states):
            if old_name.startswith(_UNSEEN):
                continue
            new, old = (uid, renaming.state(old_uid, old_name)), (old_uid, old_name)
            if problem is not None:
                yield Fit(uid, new[1], Fate.IMPOSSIBLE, problem)
            elif new not in program.tables:
                yield Fit(*old, Fate.DROPPED, "" if uid in program.kept else "the program has no such step")
            else:
                yield _fit_of(savepoint, program, renaming, old, new)
            had.add(new)
    for uid, name in program.tables:
        if (uid, name) not in had and not name.startswith("@"):
            yield Fit(uid, name, Fate.NEW, "it is empty in the savepoint" if _has(savepoint, renaming, uid) else "")


def _has(savepoint: Savepoint, renaming: Renaming, uid: str) -> bool:
    return uid in {renaming.step(old) for old in savepoint.description.steps}


def _fit_of(savepoint: Savepoint, program: Program, renaming: Renaming, old: StateOf, new: StateOf) -> Fit:
    evolution = Evolution(renaming.fields(*old))
    first = savepoint.read_schema(savepoint.description.steps[old[0]].states[old[1]][0])
    try:
        _evolve(evolution, renaming, new, entries_of(first.empty_table()), program)
    except Impossible as error:
        return Fit(*new, Fate.IMPOSSIBLE, str(error))
    notes = ([] if old == new else [f"was {'/'.join(old)}"]) + evolution.notes
    return Fit(*new, Fate.MIGRATED if evolution.notes else Fate.KEPT, "; ".join(notes))


def _evolve(evolution: Evolution, renaming: Renaming, new: StateOf, table: pa.Table, to: Program) -> pa.Table:
    if new[1].startswith(_CHANNELS):
        names = pa.array([renaming.channel(name) for name in table["channel"].to_pylist()], pa.string())
        return table.set_column(table.column_names.index("channel"), "channel", names)
    schema = state_schema(to.tables[new].dump().schema)
    return evolution.table(table, schema, _key_columns(to.kept[new[0]]))


def _key_columns(kept: dict[str, Any]) -> frozenset[str]:
    """The columns that make the key of a step, where its rows have them."""
    names, _, _ = kept.get("key", "").rpartition(": ")
    return frozenset(names.split(", ")) - {""}


def _problem(step: SavedStep, now: dict[str, Any]) -> str | None:
    """Why a step cannot have the state of another; None when its tables decide."""
    for fact in sorted({*step.kept, *now} - _BY_TABLE):
        if step.kept.get(fact) != now.get(fact):
            return f"{fact} was {step.kept.get(fact)}, is {now.get(fact)}"
    for kind in ("states", "broadcast states"):
        for name, (old_kind, *_) in step.kept.get(kind, {}).items():
            new_kind = now.get(kind, {}).get(name, [old_kind])[0]
            if new_kind != old_kind:
                return f"state {name!r} was a {old_kind} state, is a {new_kind} state"
    return None


def _check_names(savepoint: Savepoint, renaming: Renaming) -> None:
    """Refuse a renaming of what is not there."""
    steps = savepoint.description.steps
    for old, _ in renaming.names:
        uid, _, rest = old.partition("/")
        if uid not in steps and uid not in savepoint.offset["positions"]:
            known = sorted({*steps, *savepoint.offset["positions"]})
            raise SavepointError.bad_rename(old, f"names no step of the savepoint, which has {', '.join(known)}")
        if rest and not any(rest == name or rest.startswith(f"{name}.") for name in steps[uid].states):
            raise SavepointError.bad_rename(
                old, f"names no state of it, which has {', '.join(sorted(steps[uid].states))}"
            )
