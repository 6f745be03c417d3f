"""LevelHost: all entries of one level on one subtask. Payloads and epoch facts in, payloads and state changes out.

It does no I/O, knows nothing of Spark, and gives the same bytes for the same input, whatever the order of its payloads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.clock.quiet import Quiet
from headwater.clock.sides import SidedValve
from headwater.clock.watermark import Valve
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, concat
from headwater.data.row_kinds import ROW_KIND
from headwater.graph.holdings import bytes_of
from headwater.graph.nodes import AssignWatermarksNode, Node
from headwater.operators.contract import Emit, Operator, StepTime, TakesCombined, TakesTwo
from headwater.operators.registry import operator_for
from headwater.operators.stateless.pass_on import PassOperator
from headwater.plan.choices import ON_DISK
from headwater.plan.plan import JobPlan
from headwater.state.backend import StateBackend
from headwater.state.disk.backend import DiskBackend
from headwater.state.disk.bound import bound_of
from headwater.state.memory_backend import MEMORY
from headwater.state.records import Section, dumped_in, pack, unpack
from headwater.state.slices import Slice, SlicedTable, parts_for
from headwater.state.spread import set_by
from headwater.state.table import StateTable, rows_of
from headwater.state.weight import weight_of
from headwater.task.closing import close_all
from headwater.task.counters import StepCounters
from headwater.task.inflight import InFlight
from headwater.task.merging import merge, merge_two
from headwater.task.outlet import Outlet, Routed
from headwater.task.payload import EpochFacts, Payload, decode_payload, level_of, with_kinds_apart


@dataclass
class Outcome:
    """What a call of a host or a source split gives besides state changes."""

    payloads: list[Routed] = field(default_factory=list)
    epoch: int = 0
    sink_batches: dict[str, list[Batch]] = field(default_factory=dict)
    unread: dict[str, list[Batch]] = field(default_factory=dict)
    """Rows for side outputs that nobody reads, where the plan keeps them."""
    steps: dict[str, StepCounters] = field(default_factory=dict)
    """By uid."""


Stopwatch = Callable[[], float]
"""Seconds that have passed since some moment. Nothing but the budget of the next epoch depends on it."""


class LevelHost:
    """A working copy of a level's state and the operators over it."""

    def __init__(
        self,
        plan: JobPlan,
        level: int,
        subtask: int,
        stopwatch: Stopwatch = time.perf_counter,
        local_dir: Path | None = None,
    ) -> None:
        """State on disk goes under `local_dir`, or where temporary files go."""
        self._level, self._subtask = level, subtask
        self._entries = [_Entry(plan, node, subtask, stopwatch, local_dir) for node in plan.entries(level)]
        self.sequence = 0
        self.token: str | None = None
        self._last_meta: dict[str, Any] | None = None

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


class _Entry:
    """One entry of the level: its operator, what waits for it, the valve of its input channels, and its outlet."""

    def __init__(self, plan: JobPlan, node: Node, subtask: int, stopwatch: Stopwatch, local_dir: Path | None) -> None:
        self.node = node
        self.uid = plan.graph.uid(node)
        chosen = plan.of(node)
        self._backend: StateBackend = MEMORY
        if ON_DISK in (plan.state_backend, chosen.state):
            self._backend = DiskBackend(self.uid, local_dir, bound_of(plan.state_memory_bytes))
        self._channel = f"{self.uid}/{subtask}"
        self._valve = SidedValve() if node.waits_by_side else Valve()
        self._idle_ms = _idleness(plan, node)
        self._quiet = Quiet() if self._idle_ms else None
        self._in_flight, self._stopwatch = InFlight(self.uid, self._backend.shelf), stopwatch
        rows = plan.graph.input_schemas(node)
        is_changed = not all(plan.graph.carried(edge).is_append_only for edge in node.inputs)
        self._may_lack_kinds = is_changed and not any(ROW_KIND in schema.names for schema in rows)
        self.operator: Operator
        if node.is_stateful:
            self.operator = operator_for(node, self.uid, rows, way=chosen.way, backend=self._backend)
            self._outlet = Outlet.behind(plan, node)
        else:
            self.operator = PassOperator()
            self._outlet = Outlet.into(plan, node)
        self._weights = {
            name: weight_of(schema, sum(bytes_of(field.type) for field in schema))
            for name, schema in ((name, table.dump().schema) for name, table in self.operator.tables().items())
        }

    def tables(self) -> dict[str, StateTable]:
        quiet = {} if self._quiet is None else self._quiet.tables()
        return {**self.operator.tables(), **self._valve.tables(), **quiet, **self._in_flight.tables()}

    def sizes(self) -> dict[str, int]:
        return {name: len(table) for name, table in self.operator.tables().items()}

    def weigh(self, name: str, written: pa.Table) -> None:
        """So much was written of a state, here or by the copy that this one is made from."""
        if name in self._weights:
            self._weights[name].see(written, rows_of(self.operator.tables()[name]))

    def weigh_anew(self, name: str, dumped: pa.Table) -> None:
        """All of a state was written."""
        if name in self._weights:
            self._weights[name].forget()
            self.weigh(name, dumped)

    def state_bytes(self) -> dict[str, int]:
        """What each state takes, about."""
        return {name: self._weights[name].of(rows_of(table)) for name, table in self.operator.tables().items()}

    def event_time(self) -> tuple[int, bool]:
        return self._valve.watermark(), self._valve.is_idle()

    def reset(self) -> None:
        self.operator.reset()
        for weight in self._weights.values():
            weight.forget()
        self._valve.clear_all()
        if self._quiet is not None:
            self._quiet.clear_all()
        self._in_flight.clear_all()

    def close(self) -> None:
        close_all([self._outlet, self._backend])

    def run(self, payloads: list[Payload], facts: EpochFacts, outcome: Outcome) -> None:
        """One epoch of this entry, in numbered order: rows, event time, processing time, then the watermark goes on."""
        started = time.perf_counter()
        _ = (
            self.operator.counters(),
            self.operator.late_rows(),
            self.operator.measured(),
        )  # of an attempt that came to nothing
        standing = self._valve.watermark()
        rows_out = 0
        outlet = self._outlet

        def emit(tag: str | None, batch: Batch) -> None:
            nonlocal rows_out
            rows_out += len(batch)
            outlet.emit(tag, batch)

        outlet.begin(facts, self._channel)
        before = StepTime(standing, facts.now_ms)
        rows_in = 0
        for handled in self._handle(payloads, facts):
            rows_in += self._process(handled, before, emit)
            for payload in handled:
                if payload.watermark_ms is not None:
                    idle = self._is_idle(payload)
                    self._valve.update(payload.channel, payload.watermark_ms, idle=idle, side=payload.side)
        for channel, side in self._in_flight.channels():
            self._valve.update(channel, MIN_TIMESTAMP, side=side)  # event time waits for it, also when it is new
        after = StepTime(self._valve.settle(), facts.now_ms)
        if after.watermark_ms > standing:
            self.operator.advance_watermark(after, emit)
        self.operator.advance_clock(after, emit)
        outcome.payloads.extend(outlet.finish(after.watermark_ms, idle=self._valve.is_idle()))
        for kept, emitted in ((outcome.sink_batches, outlet.sink_batches), (outcome.unread, outlet.unread)):
            for name, batches in emitted.items():
                kept.setdefault(name, []).extend(batches)
        counters = StepCounters(
            rows_in,
            rows_out,
            after.watermark_ms,
            self.sizes(),
            self.operator.counters(),
            outputs=outlet.outputs(),
            busy_us=round((time.perf_counter() - started) * 1_000_000),
            metrics=self.operator.measured(),
            late_rows=[replace(row, epoch=facts.epoch) for row in self.operator.late_rows()],
        )
        if facts.unaligned_ms is not None:
            counters = replace(counters, in_flight=self._in_flight.rows, budget=self._in_flight.budget)
        self._tell(counters, outcome)

    def _tell(self, counters: StepCounters, outcome: Outcome) -> None:
        """Tell of the step, and of the steps behind it. One that is without state is the first of these itself."""
        fused = self._outlet.fused()
        own = fused.pop(self.uid, None)
        if own is not None:
            counters = replace(counters, rows_out=own.rows_out, outputs=own.outputs, metrics=own.metrics)
        for uid, one in {self.uid: counters, **fused}.items():
            known = outcome.steps.get(uid)  # of a step behind several entries
            outcome.steps[uid] = one if known is None else known.plus(one)

    def _is_idle(self, payload: Payload) -> bool:
        """Whether a channel that says how far it is need not be waited for: as it says, or as its quiet tells."""
        idle_ms = self._idle_ms.get(set_by(payload.channel)) if self._idle_ms else None
        if idle_ms is None or payload.watermark_ms == MAX_TIMESTAMP:
            return payload.idle
        assert self._quiet is not None
        return self._quiet.is_idle(payload.channel, payload.facts.now_ms, idle_ms, is_quiet=payload.idle)

    def _handle(self, arrived: list[Payload], facts: EpochFacts) -> Iterator[list[Payload]]:
        """What to handle in this epoch, in order, list by list; in an unaligned one, takes the time until all are."""
        unaligned = facts.unaligned_ms is not None
        if not self._in_flight.is_in_use(unaligned=unaligned):
            yield arrived
            return
        admitted = self._in_flight.admit(arrived, unaligned=unaligned, ordered=self.operator.needs_order)
        started = self._stopwatch()
        yield from admitted
        if facts.unaligned_ms is not None:
            rows = sum(len(p.batch) for handled in admitted for p in handled if p.batch is not None)
            self._in_flight.measured(rows, self._stopwatch() - started, facts.unaligned_ms)

    def _process(self, payloads: list[Payload], time: StepTime, emit: Emit) -> int:
        """Give the operator its rows; tells how many there were."""
        operator = self.operator
        if self._may_lack_kinds:
            payloads = [with_kinds_apart(payload, self.uid) for payload in payloads]
        if isinstance(operator, TakesTwo):
            inputs = merge_two(payloads, ordered=operator.needs_order)
            if len(inputs):
                operator.process_two(inputs, time, emit)
            return len(inputs)
        rows_in = 0
        batch = merge([p for p in payloads if not p.combined], ordered=operator.needs_order)
        if batch is not None:
            operator.process(batch, time, emit)
            rows_in += len(batch)
        combined = [p.batch for p in payloads if p.combined and p.batch is not None]
        if combined:
            assert isinstance(operator, TakesCombined)
            rows_in += operator.process_combined(concat(combined), time, emit)
        return rows_in


def _idleness(plan: JobPlan, node: Node) -> dict[str | None, int]:
    """After how long without rows channels are idle, by the step on the way here that sets their event time."""
    idle_ms: dict[str | None, int] = {
        plan.graph.uid(setter): setter.watermarks.idle_ms
        for setter in plan.graph
        if isinstance(setter, AssignWatermarksNode) and setter.watermarks.idle_ms is not None
    }
    heard = {by for _, by in plan.feeders(node)} if idle_ms else set()
    return {uid: after_ms for uid, after_ms in idle_ms.items() if uid in heard}
