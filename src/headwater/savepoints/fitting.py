"""Fitting: what becomes of every state of a savepoint in a program, before anything is started."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa

from headwater.expiry import WRITTEN
from headwater.graph.nodes.core import FORGETS, TTLS
from headwater.operators.join.last_used import LAST_USED
from headwater.plan.plan import JobPlan
from headwater.savepoints.dealing import StateOf
from headwater.savepoints.errors import Impossible, SavepointError
from headwater.savepoints.evolution import Evolution
from headwater.savepoints.files import DECLARED, SavedFile, SavedStep, Savepoint, entries_of, state_schema
from headwater.savepoints.renaming import Renaming
from headwater.state.table import StateTable
from headwater.task.host import LevelHost
from headwater.task.inflight import InFlight

POSITION = "@position"
"""Stands for where a source is."""
CHANNELS = "@channels"
"""The tables of event time, which every step has, begin so."""
_TIMES = {"@time", *(time.name for time in WRITTEN.values())}
"""The columns with the times of entries: of rows when they came, of other state when it was written."""
_BY_TABLE = {TTLS, "states", "broadcast states", "rows", "left rows", "right rows", "accumulator", "key", "right key"}
"""Facts of steps that are judged by the columns of their tables, and may differ."""


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
    """What becomes of one state of one step, and how or why."""

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
    remarks: tuple[str, ...] = ()
    """What else to know about going on from it."""

    def of(self, fate: Fate) -> list[Fit]:
        """The states that share a fate."""
        return [fit for fit in self.fits if fit.fate is fate]

    @property
    def is_possible(self) -> bool:
        """Whether the program can go on from the savepoint; it may have to give state up."""
        return not self.of(Fate.IMPOSSIBLE)

    @property
    def exit_code(self) -> int:
        """0 when the program can go on as it is, 1 when it cannot, 3 when it needs `allow_dropped_state=True`."""
        if not self.is_possible:
            return 1
        return 3 if self.of(Fate.DROPPED) else 0

    def __str__(self) -> str:
        width = max((len(f"{fit.step}/{fit.state}") for fit in self.fits), default=0)
        lines = [f"{f'{fit.step}/{fit.state}':<{width}}  {fit.fate!s:<10}  {fit.how}".rstrip() for fit in self.fits]
        said = {
            0: "the program can go on from the savepoint",
            1: "the program cannot go on from the savepoint",
            3: "the program can go on from the savepoint with allow_dropped_state=True",
        }
        return "\n".join([*lines, *self.remarks, said[self.exit_code]])


class Program:
    """The states that a plan has a place for: their tables, empty, by step and name."""

    def __init__(self, plan: JobPlan) -> None:
        self.plan = plan
        self.tables: dict[StateOf, StateTable] = {}
        self.metas: dict[str, dict[str, Any]] = {}
        """By step, the facts besides its tables, at first."""
        for level in range(1, plan.depth + 1):
            host = LevelHost.blank(plan, level)
            self.tables.update({place: t for place, t in host.tables().items() if not isinstance(t, InFlight)})
            self.metas.update({uid: operator.meta() for uid, operator in host.operators().items()})
        self.kept = plan.kept_by_step()
        self.sources = [plan.graph.uid(node) for node in plan.sources()]

    def states(self, uid: str) -> list[str]:
        """The names of a step's states."""
        return [name for step, name in self.tables if step == uid]


def fit(savepoint: Savepoint, program: Program, renaming: Renaming) -> Upgrade:
    """What becomes of every state, in the order of the savepoint and then of the program."""
    _check_names(savepoint, program, renaming)
    fits = [*_positions(savepoint, program, renaming), *_states(savepoint, program, renaming)]
    ended = "the input had ended: event time is at its end, and every row to come with a time is late"
    return Upgrade(
        tuple(fits), (*_likely_renamings(savepoint, program, renaming), *([ended] if savepoint.offset.end else []))
    )


def _likely_renamings(savepoint: Savepoint, program: Program, renaming: Renaming) -> list[str]:
    """Of steps that are gone, which new one keeps just the same, if it is one: they may only have other names."""
    steps = savepoint.description.steps
    gone = {uid: step.kept for uid, step in steps.items() if renaming.step(uid) not in program.kept}
    new = {uid: kept for uid, kept in program.kept.items() if uid not in map(renaming.step, steps)}
    found: dict[str, str] = {}
    for uid, kept in gone.items():
        alike = [other for other, now in new.items() if now == kept]
        if len(alike) == 1 and sum(other == kept for other in gone.values()) == 1:
            found[uid] = alike[0]
    return [f"renamed={found} keeps what steps with other names would take over"] if found else []


def require(savepoint: Savepoint, upgrade: Upgrade, *, allow_dropped_state: bool) -> None:
    """Refuse an upgrade that is impossible, or that gives up what nobody allowed to give up."""
    if not upgrade.is_possible:
        raise SavepointError.does_not_fit(savepoint.path, [str(one) for one in upgrade.of(Fate.IMPOSSIBLE)])
    dropped = upgrade.of(Fate.DROPPED)
    if dropped and not allow_dropped_state:
        raise SavepointError.would_drop(savepoint.path, [f"{one.step}/{one.state}" for one in dropped])


def difference(step: SavedStep, kept: dict[str, Any], states: Collection[str]) -> str | None:
    """Why a step, which keeps other things, cannot go on with what was kept; None when columns decide.

    A step that kept something else and has no entries goes on as a new one.
    """
    for fact in ["operation", *sorted({*step.kept, *kept} - _BY_TABLE)]:
        if step.kept.get(fact) != kept.get(fact) and not (fact == FORGETS and _else_the_same(step.kept, kept)):
            return f"{fact} was {step.kept.get(fact)}, is {kept.get(fact)}"
    before, after = _own(step.states, step.kept), _own(states, kept)
    if before != after:
        return f"it was kept as {', '.join(before) or 'nothing'}, is kept as {', '.join(after) or 'nothing'}"
    return None


def _else_the_same(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether what is kept is the same but for its times."""
    return all(before.get(fact) == after.get(fact) for fact in {*before, *after} - {FORGETS, TTLS})


def evolve(
    fields: dict[str, str], file: SavedFile, table: pa.Table, into: StateTable, renaming: Renaming
) -> tuple[pa.Table, list[str]]:
    """The entries of a file as a table of the program has them, and what was done to them.

    `fields` are the new names of columns and fields; `renaming` is for channels, which have the names of steps.
    """
    entries = entries_of(table)
    if entries.column_names[0] == "channel":
        names = pa.array([renaming.channel(name) for name in entries["channel"].to_pylist()], pa.string())
        return entries.set_column(0, "channel", names), []
    schema = into.dump().schema
    key = tuple(fields.get(name, name) for name in file.key)
    if key != into.spread.key:
        raise Impossible(f"the key was {', '.join(file.key) or 'none'}, is {', '.join(into.spread.key) or 'none'}")
    evolution = Evolution(fields)
    fixed = {"key"} if schema.names[0] == "op" else key
    return evolution.table(entries, state_schema(schema), fixed), evolution.notes


def _own(states: Collection[str], kept: dict[str, Any]) -> list[str]:
    """The states in which a step of the library keeps what it works on; those that users declare come and go."""
    declared = {name for kind in DECLARED for name in kept.get(kind, ())}
    return sorted(name for name in states if not name.startswith("@") and name not in declared)


def _positions(savepoint: Savepoint, program: Program, renaming: Renaming) -> Iterator[Fit]:
    before = {renaming.step(uid): uid for uid in savepoint.offset.positions}
    for new, old in before.items():
        if new in program.sources:
            yield Fit(new, POSITION, Fate.KEPT, "" if new == old else f"was {old}")
        else:
            yield Fit(old, POSITION, Fate.DROPPED, "the program has no such source")
    for uid in program.sources:
        if uid not in before:
            yield Fit(uid, POSITION, Fate.NEW, "the source starts where it is told to")


def _states(savepoint: Savepoint, program: Program, renaming: Renaming) -> Iterator[Fit]:
    empty: set[StateOf] = set()
    had: set[StateOf] = set()
    for old_uid, step in savepoint.description.steps.items():
        uid = renaming.step(old_uid)
        problem = difference(step, program.kept[uid], program.states(uid)) if uid in program.kept else None
        for old_name in sorted(step.states):
            new = (uid, renaming.state(old_uid, old_name))
            if old_name.startswith(CHANNELS):
                continue
            if not step.rows(old_name):
                empty.add(new)
                continue
            had.add(new)
            if uid not in program.kept:
                yield Fit(old_uid, old_name, Fate.DROPPED, "the program has no such step")
            elif problem is not None:
                yield Fit(*new, Fate.IMPOSSIBLE, problem)
            elif new not in program.tables and old_name == LAST_USED:
                continue
            elif new not in program.tables:
                yield Fit(old_uid, old_name, Fate.DROPPED, "the step has no such state")
            else:
                yield _fit_of(savepoint, program, renaming, (old_uid, old_name), new)
    for uid, name in program.tables:
        if (uid, name) not in had and not name.startswith("@"):
            yield Fit(uid, name, Fate.NEW, "it was empty" if (uid, name) in empty else "")


def _fit_of(savepoint: Savepoint, program: Program, renaming: Renaming, old: StateOf, new: StateOf) -> Fit:
    step, kept = savepoint.description.steps[old[0]], program.kept[new[0]]
    was, now = _kind(step.kept, old[1]), _kind(kept, new[1])
    if was != now:
        return Fit(*new, Fate.IMPOSSIBLE, f"it was a {was} state, is a {now} state")
    file = next(file for file in step.states[old[1]] if file.rows)
    fields = renaming.fields(*old, step.states)
    try:
        nothing = savepoint.read_schema(file).empty_table()
        _, notes = evolve(fields, file, nothing, program.tables[new], renaming)
    except Impossible as error:
        return Fit(*new, Fate.IMPOSSIBLE, str(error))
    if "key" in file.key and step.kept.get("key") != kept.get("key"):
        notes.append(f"the key was {step.kept.get('key')}, is {kept.get('key')}")
    otherwise = step.kept.get(FORGETS) != kept.get(FORGETS)
    times = [note for note in notes if _is_of_times(note, forgets_otherwise=otherwise)]
    notes = [note for note in notes if note not in times]
    moved = [] if old == new else [f"was {'/'.join(old)}"]
    lasted, lasts = (one.get(TTLS, {}).get(name) for one, name in ((step.kept, old[1]), (kept, new[1])))
    if lasted != lasts:
        is_timed = not _TIMES.isdisjoint(nothing.schema.names) and (new[0], LAST_USED) not in program.tables
        since = f", was {lasted}" if lasted else "" if is_timed else ", counted from the start"
        notes.append(f"expires {lasts or 'no more'}{since}")
    return Fit(*new, Fate.MIGRATED if notes else Fate.KEPT, "; ".join([*moved, *notes]))


def _is_of_times(note: str, *, forgets_otherwise: bool) -> bool:
    """Whether a note is of the times of state with a ttl, which are a column or, of accumulators, the last field."""
    path = note.partition(" ")[0]
    is_field = forgets_otherwise and re.fullmatch(r"value\.f\d+", path) is not None
    return is_field or path in _TIMES


def _kind(kept: dict[str, Any], name: str) -> str | None:
    """The kind of a declared state."""
    for declared in DECLARED:
        if name in kept.get(declared, {}):
            return str(kept[declared][name][0])
    return None


def _check_names(savepoint: Savepoint, program: Program, renaming: Renaming) -> None:
    """Refuse a renaming of what is not there, to what is not there, or of two things to one name."""
    steps, sources = savepoint.description.steps, savepoint.offset.positions
    known = sorted({*steps, *sources})
    for old, new in renaming.names:
        uid, _, rest = old.partition("/")
        if uid not in known:
            raise SavepointError.bad_rename(old, f"names no step of the savepoint, which has {', '.join(known)}")
        now = {*program.kept, *program.sources}
        if not rest and (new not in now or sum(renaming.step(uid) == new for uid in known) > 1):
            has = f"the program has {', '.join(sorted(now))}"
            raise SavepointError.bad_rename(old, f"needs a step of the program that nothing else becomes; {has}")
        states = steps[uid].states if uid in steps else {}
        if rest and not any(rest == name or rest.startswith(f"{name}.") for name in states):
            raise SavepointError.bad_rename(old, f"names no state of it, which has {', '.join(sorted(states))}")
        taken = sum(renaming.state(uid, name) == new for name in states)
        if rest in states and (new not in program.states(renaming.step(uid)) or taken > 1):
            has = f"the program has {', '.join(program.states(renaming.step(uid)))}"
            raise SavepointError.bad_rename(old, f"needs a state of the step that nothing else becomes; {has}")
