"""The outlet of a source or entry: the fused stateless steps behind it, and the ports and sinks at their ends."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from headwater.data.batch import MAX_TIMESTAMP, Batch, concat
from headwater.data.schema import Schema
from headwater.graph.edges import LEFT, Edge, Exchange
from headwater.graph.nodes import Node
from headwater.measures import Measured
from headwater.operators.contract import Combiner, HoldsOpen, Measuring, SetsTime, StatelessOperator, TakesTime
from headwater.operators.registry import combiner_for, stateless_operator
from headwater.plan.plan import JobPlan
from headwater.state.spread import timed
from headwater.task.closing import close_all
from headwater.task.counters import StepCounters
from headwater.task.payload import MAX_PAYLOAD_BYTES, EpochFacts, Payload, encode_payload
from headwater.task.routing import route, with_key

Routed = tuple[int, bytes]
"""A subtask and a payload for it."""


class Outlet:
    """Takes what a source split or an entry emits in an epoch; gives payloads for deeper levels and tables for sinks."""

    def __init__(self, plan: JobPlan, branches: list[_Branch]) -> None:
        """The first branch is that of whoever emits into the outlet; the others are in the order of the graph."""
        self._plan, self._root, self._branches = plan, branches[0], branches
        self.ports = _ports(branches)
        self._setters = {branch.time.uid: branch.time for branch in branches if branch.time is not None}
        self._steps = [branch.operator for branch in branches if branch.operator is not None]
        self._joined = [branch for branch in branches if branch.ways > 1]
        self._said: dict[str | None, tuple[int, bool]] = {}
        """The watermark at the end of the epoch, and whether nobody waits for it, by the step that sets event time."""
        self.sink_batches: dict[str, list[Batch]] = {}
        self.unread: dict[str, list[Batch]] = {}

    @classmethod
    def behind(cls, plan: JobPlan, node: Node) -> Outlet:
        """The outlet of a step that emits by itself."""
        return cls(plan, _branches(plan, _Branch(plan.graph.uid(node)), node))

    @classmethod
    def into(cls, plan: JobPlan, node: Node) -> Outlet:
        """The outlet whose first step is a stateless step or a sink."""
        return cls(plan, _branches(plan, _Branch(), node, is_into=True))

    def begin(self, facts: EpochFacts, channel: str, position: int | None = None) -> None:
        """Start an epoch for one channel; `position` counts the rows that the channel has given before, if it is known.

        Rows that are dealt out in turn go on from there. Without it they start at a place that depends on channel and epoch
        and repeats with no period, since an epoch's results may well come with one.
        """
        self._facts, self._channel = facts, channel
        self._sequence = 0
        self._first_turn = _mixed(channel, facts.epoch) if position is None else _mixed(channel, 0) + position
        self._turns: dict[tuple[int, int], int] = {}
        self._ready: list[Routed] = []
        self.sink_batches, self.unread = {}, {}
        for branch in self._branches:
            branch.rows_in, branch.rows_out = 0, {}
        for operator in self._steps:
            if isinstance(operator, TakesTime):
                operator.begin(facts.now_ms)
            if isinstance(operator, Measuring):
                operator.measured()  # of an attempt that came to nothing

    def emit(self, tag: str | None, batch: Batch) -> None:
        """Run rows through the fused steps to their ends.

        A step that rows come to by several ways runs when all have come, once: so it is not run for every path to it.
        """
        if not len(batch):
            return
        self._run(self._given(self._root, tag, batch))
        for branch in self._joined:
            if branch.waiting:
                batches, branch.waiting = branch.waiting, []
                self._run(self._through(branch, _in_one_piece(batches)))

    def outputs(self) -> dict[str, int]:
        """What was emitted into it for side outputs, in this epoch, by tag."""
        return _tagged(self._root)

    def fused(self) -> dict[str, StepCounters]:
        """What the fused steps were given and gave in this epoch, which is finished, by uid; and the event time there."""
        found: dict[str, StepCounters] = {}
        for branch in self._branches[1:]:
            watermark_ms, _ = self._said[None if branch.time is None else branch.time.uid]
            measured = _measured(branch.operator)
            rows_out, outputs = sum(branch.rows_out.values()), _tagged(branch)
            one = StepCounters(branch.rows_in, rows_out, watermark_ms, outputs=outputs, metrics=measured)
            known = found.get(branch.uid)  # of a step that rows come to by several ways
            found[branch.uid] = one if known is None else known.plus(one)
        return found

    def close(self) -> None:
        """Let every fused step close what it holds open, also when one of them fails to."""
        close_all(operator for operator in self._steps if isinstance(operator, HoldsOpen))

    def take(self) -> list[Routed]:
        """The payloads that are ready."""
        ready, self._ready = self._ready, []
        return ready

    def finish(self, watermark_ms: int, *, idle: bool = False) -> list[Routed]:
        """The last payloads of the epoch: for every port, the watermark, and whether this channel is idle, to every subtask.

        Behind a step that sets event time they are what that step says of its rows, until event time ends.
        """
        said = self._said = {None: (watermark_ms, idle)}
        is_end = watermark_ms == MAX_TIMESTAMP
        for uid, setter in self._setters.items():
            heard_ms, is_idle = said[setter.heard]
            own = setter.operator.watermark(heard_ms, is_idle=is_idle)
            said[uid] = (MAX_TIMESTAMP, False) if is_end else own
        for port in self.ports:
            at_ms, is_idle = said[port.timed_by]
            for subtask in range(self._plan.parallelism):
                self._send(port, subtask, watermark_ms=at_ms, idle=is_idle)
        return self.take()

    def _run(self, given: Iterator[tuple[_Branch, Batch]]) -> None:
        """Depth first: what a step gives goes on to the end before the step is asked for more."""
        running = [given]
        while running:
            step = next(running[-1], None)
            if step is None:
                running.pop()
            elif step[0].ways > 1:
                step[0].waiting.append(step[1])
            else:
                running.append(self._through(*step))

    def _through(self, branch: _Branch, batch: Batch) -> Iterator[tuple[_Branch, Batch]]:
        """Run a step; gives the steps that its results go to, with these."""
        assert branch.operator is not None
        branch.rows_in += len(batch)
        for tag, result in branch.operator.apply(batch):
            if len(result):
                yield from self._given(branch, tag, result)

    def _given(self, branch: _Branch, tag: str | None, batch: Batch) -> Iterator[tuple[_Branch, Batch]]:
        branch.rows_out[tag] = branch.rows_out.get(tag, 0) + len(batch)
        for sink in branch.sinks.get(tag, ()):
            self.sink_batches.setdefault(sink, []).append(batch)
        for port in branch.ports.get(tag, ()):
            self._exchange(port, batch)
        if tag is not None and self._plan.keeps_unread and not branch.reads(tag):
            self.unread.setdefault(tag, []).append(batch)
        for behind in branch.steps.get(tag, ()):
            yield behind, batch

    def _exchange(self, port: Port, batch: Batch) -> None:
        exchange = port.exchange
        if exchange.key is not None:
            batch = with_key(batch, exchange.key, port.schema, port.step)
        turn = self._turns.get((port.node, port.side), self._first_turn)
        combined = None if port.combiner is None else port.combiner.combine(batch)
        parts = route(
            batch if combined is None else combined,
            exchange,
            self._plan.groups,
            self._plan.parallelism,
            turn=turn,
            step=port.step,
        )
        for subtask, part in parts:
            for piece in _pieces(part):
                self._send(port, subtask, piece, combined=combined is not None)
        self._turns[port.node, port.side] = turn + len(batch)

    def _send(
        self,
        port: Port,
        subtask: int,
        batch: Batch | None = None,
        *,
        watermark_ms: int | None = None,
        idle: bool = False,
        combined: bool = False,
    ) -> None:
        name = self._channel if port.timed_by is None else timed(self._channel, port.timed_by)
        channel = (port.level, port.node, name, self._sequence, self._facts)
        payload = Payload(*channel, watermark_ms, batch, idle, combined, port.side)
        self._sequence += 1
        self._ready.append((subtask, encode_payload(payload)))


@dataclass(frozen=True)
class Port:
    """An input of an entry, as seen by what emits into it."""

    node: int
    level: int
    exchange: Exchange
    schema: Schema
    step: str
    combiner: Combiner | None = None
    side: int = LEFT
    timed_by: str | None = None
    """The uid of the fused step on the way that sets event time, if one does."""


@dataclass(frozen=True)
class _Setter:
    """A step that sets event time."""

    uid: str
    operator: SetsTime
    heard: str | None
    """The one before it, if there is one."""


@dataclass
class _Branch:
    """A fused step and what hangs behind it, by side output; and how many rows it was given and gave in this epoch."""

    uid: str = ""
    """The step's; of whoever emits into the outlet, nothing or its own."""
    operator: StatelessOperator | None = None
    time: _Setter | None = None
    """What sets the event time of its rows, if a fused step does."""
    ways: int = 0
    """By how many edges rows come to it."""

    sinks: dict[str | None, list[str]] = field(default_factory=dict)
    ports: dict[str | None, list[Port]] = field(default_factory=dict)
    steps: dict[str | None, list[_Branch]] = field(default_factory=dict)
    waiting: list[Batch] = field(default_factory=list)
    """Rows that wait for those that come by other ways."""
    rows_in: int = 0
    rows_out: dict[str | None, int] = field(default_factory=dict)

    def reads(self, tag: str) -> bool:
        """Whether anything takes the rows of a side output."""
        return tag in self.sinks or tag in self.ports or tag in self.steps


def _ports(branches: list[_Branch]) -> list[Port]:
    """Every input of an entry, once for each step that sets the event time of its rows, if any."""
    ports = (port for branch in branches for ports in branch.ports.values() for port in ports)
    found = {(port.node, port.side, port.timed_by or ""): port for port in ports}
    return [found[place] for place in sorted(found)]


def _branches(plan: JobPlan, root: _Branch, node: Node, *, is_into: bool = False) -> list[_Branch]:
    """The root and the steps that rows come to in place behind a node, or from it on, in the order of the graph.

    There is one branch for each step, however many paths lead to it, and where steps on these set event time, one for each.
    """
    graph = plan.graph
    of_node: dict[int, dict[str | None, _Branch]] = {}
    """The branches of each step by what sets the event time of their rows."""

    def attach(branch: _Branch, tag: str | None, consumer: Node, schema: Schema) -> None:
        uid = graph.uid(consumer)
        if consumer.is_sink:
            branch.sinks.setdefault(tag, []).append(uid)
            return
        known = of_node.setdefault(consumer.id, {})
        time_uid = None if branch.time is None or consumer.sets_time else branch.time.uid
        behind = known.get(time_uid)
        if behind is None:
            operator, time = stateless_operator(consumer, uid, schema), branch.time
            if consumer.sets_time:
                assert isinstance(operator, SetsTime)
                time = _Setter(uid, operator, None if time is None else time.uid)
            behind = known[time_uid] = _Branch(uid, operator, time)
        behind.ways += 1
        branch.steps.setdefault(tag, []).append(behind)

    if is_into:
        attach(root, None, node, graph.input_schema(node))
    else:
        of_node[node.id] = {None: root}
    found = [root]
    for above in graph:
        for branch in of_node.get(above.id, {}).values():
            found += [branch] if branch is not root else []
            for consumer, edge in graph.consumers(above):
                schema = graph.edge_schema(edge)
                if edge.exchange.moves:
                    branch.ports.setdefault(edge.tag, []).append(_port(plan, consumer, edge, schema, branch.time))
                else:
                    attach(branch, edge.tag, consumer, schema)
    return found


def _port(plan: JobPlan, consumer: Node, edge: Edge, schema: Schema, time: _Setter | None) -> Port:
    chosen, uid = plan.of(consumer), plan.graph.uid(consumer)
    assert chosen.level is not None
    combiner = combiner_for(consumer, uid) if chosen.is_combined else None
    timed_by = None if time is None else time.uid
    return Port(consumer.id, chosen.level, edge.exchange, schema, uid, combiner, edge.side, timed_by)


def _in_one_piece(batches: list[Batch]) -> Batch:
    """Rows that came by several ways, their columns unchunked: else the chunks would double with every further union."""
    together = concat(batches)
    return together if len(batches) == 1 else replace(together, table=together.table.combine_chunks())


def _tagged(branch: _Branch) -> dict[str, int]:
    """The rows of a step that went to side outputs."""
    return {tag: rows for tag, rows in branch.rows_out.items() if tag is not None}


def _measured(operator: StatelessOperator | None) -> dict[str, Measured]:
    """What the function of a step has measured."""
    if isinstance(operator, Measuring):
        return operator.measured()
    return {}


def _mixed(channel: str, epoch: int) -> int:
    """A number that looks random, and is the same on replay."""
    return int.from_bytes(hashlib.blake2b(f"{channel} {epoch}".encode(), digest_size=4).digest(), "little")


def _pieces(batch: Batch) -> Iterator[Batch]:
    """A batch cut so that each piece stays near the size that Spark and its sockets carry well."""
    size = batch.table.nbytes + 8 * len(batch)
    if size <= MAX_PAYLOAD_BYTES:
        yield batch
        return
    rows = max(1, len(batch) * MAX_PAYLOAD_BYTES // size)
    for start in range(0, len(batch), rows):
        yield batch.slice(start, rows)
