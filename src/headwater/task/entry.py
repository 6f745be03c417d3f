"""One entry of a level on one subtask: rows, event time and processing time of an epoch, in this order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

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
from headwater.state.spread import set_by
from headwater.state.table import StateTable, rows_of
from headwater.state.weight import weight_of
from headwater.task.closing import close_all
from headwater.task.counters import StepCounters
from headwater.task.inflight import InFlight
from headwater.task.merging import merge, merge_two
from headwater.task.outcome import Outcome
from headwater.task.outlet import Outlet
from headwater.task.payload import EpochFacts, Payload, with_kinds_apart

Stopwatch = Callable[[], float]
"""Seconds that have passed since some moment. Nothing but the budget of the next epoch depends on it."""


class Entry:
    """One entry of the level: its operator, what waits for it, the valve of its input channels, and its outlet."""

    def __init__(self, plan: JobPlan, node: Node, subtask: int, stopwatch: Stopwatch, backend: StateBackend) -> None:
        self.node = node
        self.uid = plan.graph.uid(node)
        self._backend = backend
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
            self.operator = operator_for(node, self.uid, rows, way=plan.of(node).way, backend=self._backend)
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


def backend_of(plan: JobPlan, node: Node, local_dir: Path | None) -> StateBackend:
    """Where a plan has the state of an entry; on disk that is under `local_dir`, or where temporary files go."""
    if ON_DISK in (plan.state_backend, plan.of(node).state):
        return DiskBackend(plan.graph.uid(node), local_dir, bound_of(plan.state_memory_bytes))
    return MEMORY


def _idleness(plan: JobPlan, node: Node) -> dict[str | None, int]:
    """After how long without rows channels are idle, by the step on the way here that sets their event time."""
    idle_ms: dict[str | None, int] = {
        plan.graph.uid(setter): setter.watermarks.idle_ms
        for setter in plan.graph
        if isinstance(setter, AssignWatermarksNode) and setter.watermarks.idle_ms is not None
    }
    heard = {by for _, by in plan.feeders(node)} if idle_ms else set()
    return {uid: after_ms for uid, after_ms in idle_ms.items() if uid in heard}
