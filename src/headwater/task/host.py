"""LevelHost: all entries of one level on one subtask. Payloads and epoch facts in, payloads and state changes out.

It does no I/O, knows nothing of Spark, and gives the same bytes for the same input, whatever the order of its payloads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from headwater.operators.contract import Operator
from headwater.plan.plan import JobPlan
from headwater.state.backend import StateBackend
from headwater.state.memory_backend import MEMORY
from headwater.state.records import Section, dumped_in, pack, unpack
from headwater.state.slices import Slice, SlicedTable, parts_for
from headwater.state.table import StateTable, rows_of
from headwater.task.closing import close_all
from headwater.task.entry import Entry, Stopwatch, backend_of
from headwater.task.outcome import Outcome
from headwater.task.payload import Payload, decode_payload, level_of


class LevelHost:
    """A working copy of a level's state and the operators over it."""

    def __init__(
        self,
        plan: JobPlan,
        level: int,
        subtask: int,
        stopwatch: Stopwatch = time.perf_counter,
        local_dir: Path | None = None,
        *,
        backend: StateBackend | None = None,
    ) -> None:
        """State on disk goes under `local_dir`, or where temporary files go; with a `backend` all state goes there."""
        self._level, self._subtask = level, subtask
        self._entries = [
            Entry(plan, node, subtask, stopwatch, backend or backend_of(plan, node, local_dir))
            for node in plan.entries(level)
        ]
        self.sequence = 0
        self.token: str | None = None
        self._last_meta: dict[str, Any] | None = None

    @classmethod
    def blank(cls, plan: JobPlan, level: int) -> LevelHost:
        """One that nothing comes into, to know its operators and tables by. It holds nothing that must be closed."""
        return cls(plan, level, 0, backend=MEMORY)

    def run(self, payloads: Iterable[bytes]) -> Outcome:
        """Handle one epoch: every entry in graph order gets its rows, then event time, then processing time."""
        outcome = Outcome()
        inputs: dict[int, list[Payload]] = {}
        facts = None
        for data in payloads:
            if level_of(data) != self._level:
                outcome.payloads.append((self._subtask, data))
                continue
            payload = decode_payload(data)
            facts = payload.facts
            inputs.setdefault(payload.port, []).append(payload)
        outcome.epoch = 0 if facts is None else facts.epoch
        outcome.payloads.sort(key=lambda routed: routed[1])
        for entry in self._entries:
            arrived = sorted(inputs.get(entry.node.id, ()), key=lambda p: (p.channel, p.sequence))
            if facts is not None:
                entry.run(arrived, facts, outcome)
        return outcome

    def operators(self) -> dict[str, Operator]:
        """The operators by uid, in the order of the graph."""
        return {entry.uid: entry.operator for entry in self._entries}

    def tables(self) -> dict[tuple[str, str], StateTable]:
        """All state, by uid and name."""
        return {(entry.uid, name): table for entry in self._entries for name, table in entry.tables().items()}

    def sizes(self) -> dict[str, dict[str, int]]:
        """How many entries each state of each step holds."""
        return {entry.uid: entry.sizes() for entry in self._entries}

    def weighed(self, outcome: Outcome) -> Outcome:
        """What `run` gave, with how much state there is now that what changed was written."""
        for entry in self._entries:
            if entry.uid in outcome.steps:
                counters = outcome.steps[entry.uid]
                outcome.steps[entry.uid] = replace(counters, state=entry.sizes(), state_bytes=entry.state_bytes())
        return outcome

    def event_times(self) -> dict[str, tuple[int, bool]]:
        """Where event time stands at each step, and whether the step is idle."""
        return {entry.uid: entry.event_time() for entry in self._entries}

    def reset(self) -> None:
        for entry in self._entries:
            entry.reset()
        self._last_meta = None

    def close(self) -> None:
        """Give the place up: steps close what they hold open, and state on disk is removed."""
        close_all(self._entries)

    def apply(self, record: bytes, taken: Slice | None = None) -> None:
        meta, sections = unpack(record)
        tables, entries = self.tables(), {entry.uid: entry for entry in self._entries}
        for uid, name, section in sections:
            table = tables[uid, name]
            rows = section if taken is None or taken.first else section.slice(0, 0)
            if taken is not None and taken.cuts(table):
                rows = taken.before().rows_of(table, section)
            if len(rows):
                table.apply(rows)
                entries[uid].weigh(name, rows)
        if taken is not None and taken.first < taken.stop:
            for uid, name, section in dumped_in(record):
                table = tables[uid, name]
                if taken.cuts(table):
                    table.load(section)
                else:
                    table.apply(section)
                entries[uid].weigh(name, section)
        for entry in self._entries:
            if entry.uid in meta:
                entry.operator.set_meta(meta[entry.uid])
        self._last_meta = {**(self._last_meta or {}), **meta}

    def delta(self, parts: Callable[[float], Slice] | None = None) -> bytes:
        meta = {entry.uid: entry.operator.meta() for entry in self._entries}
        known = self._last_meta or {}
        changed = {uid: facts for uid, facts in meta.items() if parts is not None or known.get(uid) != facts}
        sections = []
        for entry in self._entries:
            for name, table in entry.tables().items():
                changes = table.changes()
                if changes is not None:
                    entry.weigh(name, changes)
                    sections.append((entry.uid, name, changes))
        self._last_meta = meta
        dumped = None if parts is None else self._dumps_of(parts(self._changed_share(sections)))
        return pack(changed, sections, dumped)

    def _changed_share(self, sections: Iterable[Section]) -> float:
        """What share of all rows changed, of tables that bases cut into parts."""
        cut = self._cut_tables()
        changed = sum(len(changes) for uid, name, changes in sections if (uid, name) in cut)
        return changed / max(sum(map(rows_of, cut.values())), 1)

    def _cut_tables(self) -> dict[tuple[str, str], SlicedTable]:
        return {place: table for place, table in self.tables().items() if isinstance(table, SlicedTable)}

    def forget_changes(self) -> None:
        for table in self.tables().values():
            table.forget_changes()

    def base_parts(self) -> int:
        return parts_for(sum(map(rows_of, self._cut_tables().values())))

    def _dumps_of(self, part: Slice) -> Iterator[Section]:
        """A part of a base. Tables that are not cut go with the first one."""
        for (uid, name), table in self.tables().items():
            if part.cuts(table):
                dumped = table.dump_slice(part)
            elif part.first:
                continue
            else:
                dumped = table.dump()
            if len(dumped):
                yield uid, name, dumped

    def base(self, part: Slice | None = None) -> bytes:
        meta = {entry.uid: entry.operator.meta() for entry in self._entries}
        self._last_meta = meta
        return pack(meta, self._dumps()) if part is None else pack(meta, (), self._weighed_dumps_of(part))

    def _weighed_dumps_of(self, part: Slice) -> Iterator[Section]:
        """A part of a base whose rows no delta has told of."""
        entries = {entry.uid: entry for entry in self._entries}
        for uid, name, dumped in self._dumps_of(part):
            entries[uid].weigh(name, dumped)
            yield uid, name, dumped

    def _dumps(self) -> Iterator[Section]:
        """All state, a table at a time: only its compressed form has to fit memory as a whole."""
        for entry in self._entries:
            for name, table in entry.tables().items():
                table.forget_changes()
                if len(table):
                    dumped = table.dump()
                    entry.weigh_anew(name, dumped)
                    yield entry.uid, name, dumped
