"""What recovery rests on, over random programs: a replay gives the same bytes, deltas add up, slices do not matter.

The program is data: every row carries operations on state and timers, and the function shows all it can see after each.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.parts.examples import examples

import headwater as hw
from headwater.data.batch import MIN_TIMESTAMP, Batch, timestamp_array
from headwater.data.rows import encode_rows
from headwater.data.schema import Schema
from headwater.operators.stateless.functions import rows_of
from headwater.plan.plan import JobPlan, plan_job
from headwater.state import changelog, slices
from headwater.state.records import unpack
from headwater.task.host import LevelHost
from headwater.task.outcome import Outcome
from headwater.task.outlet import Outlet
from headwater.task.payload import EpochFacts

thorough = settings(examples(80), phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink])
SCHEMA = Schema.of("k string, ops array<struct<name:string,a:int,b:int>>")
OUT = "k string, n long, what string"
SIDE = hw.OutputTag("seen", "k string, a int")
OPERATIONS = [
    *("value.set", "value.clear", "value.none", "nested.set", "nested.clear"),
    *("list.add", "list.add_all", "list.update", "list.empty", "list.clear"),
    *("map.put", "map.put", "map.remove", "map.clear", "map.put_all", "maps.put", "maps.remove", "maps.clear"),
    *("reduce.add", "reduce.clear", "aggregate.add", "aggregate.clear"),
    *("timer.event", "timer.event", "timer.delete_event", "timer.processing", "timer.delete_processing"),
    "output",
]


class Longest(hw.AggregateFunction[int, list[int], int]):
    """The accumulator is mutable on purpose."""

    def create(self) -> list[int]:
        return []

    def add(self, accumulator: list[int], value: int) -> list[int]:
        accumulator.append(value)
        return accumulator[-3:]

    def result(self, accumulator: list[int]) -> int:
        return sum(accumulator)


class Interpreter(hw.KeyedProcessFunction):
    value = hw.ValueState("bigint", default=-1)
    nested = hw.ValueState("array<struct<a:int,b:string>>")
    list = hw.ListState("bigint")
    map = hw.MapState("int", "string")
    maps = hw.MapState("string", "array<int>")
    reduced = hw.ReducingState("array<bigint>", reduce=lambda kept, new: kept + new)
    aggregated = hw.AggregatingState("array<bigint>", aggregate=Longest())

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        for op in event.ops:
            self._do(op.name, op.a, op.b, ctx)
            yield ctx.key, op.a, f"{op.name} {self._seen()}"

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        at = timer.timestamp
        yield ctx.key, at, f"timer {timer.domain} {self._seen()}"
        self.map.put(at % 4, f"t{at}")
        self.list.add(at)
        if at % 3 == 0:
            self.map.remove((at + 1) % 4)
            ctx.timers.delete_event_time(at + 2)
        if at % 5 == 0:
            self.value.clear()
            self.list.clear()
            ctx.timers.event_time(at + 3)
        if at % 7 == 0:
            self.map.clear()
            ctx.output(SIDE, (ctx.key, at % 100))

    def _do(self, name: str, a: int, b: int, ctx: hw.Context) -> None:
        act = {
            "value.set": lambda: self.value.set(a),
            "value.clear": self.value.clear,
            "value.none": lambda: self.value.set(None),
            "nested.set": lambda: self.nested.set([{"a": a, "b": str(b)}, (b, None)]),
            "nested.clear": self.nested.clear,
            "list.add": lambda: self.list.add(a),
            "list.add_all": lambda: self.list.add_all([a, b]),
            "list.update": lambda: self.list.update([b, a, b]),
            "list.empty": lambda: self.list.update([]),
            "list.clear": self.list.clear,
            "map.put": lambda: self.map.put(a % 2, str(b)),
            "map.remove": lambda: self.map.remove(a % 2),
            "map.clear": self.map.clear,
            "map.put_all": lambda: self.map.put_all({a % 2: "x", b % 2: "y"}),
            "maps.put": lambda: self.maps.put(str(a % 2), [a, b]),
            "maps.remove": lambda: self.maps.remove(str(a % 2)),
            "maps.clear": self.maps.clear,
            "reduce.add": lambda: self.reduced.add([a]),
            "reduce.clear": self.reduced.clear,
            "aggregate.add": lambda: self.aggregated.add(a),
            "aggregate.clear": self.aggregated.clear,
            "timer.event": lambda: ctx.timers.event_time(a),
            "timer.delete_event": lambda: ctx.timers.delete_event_time(a),
            "timer.processing": lambda: ctx.timers.processing_time(ctx.now + 1 + abs(b)),
            "timer.delete_processing": lambda: ctx.timers.delete_processing_time(ctx.now + 1 + abs(b)),
            "output": lambda: ctx.output(SIDE, (ctx.key, a)),
        }
        act[name]()

    def _seen(self) -> str:
        states = (self.value, self.nested, self.list, self.reduced, self.aggregated)
        return repr([state.get() for state in states] + [self.map.items(), self.maps.items()])


class Follower(hw.KeyedProcessFunction):
    """The second level: keyed by two columns, with a map whose order shows."""

    last = hw.MapState("int", "string")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.last.remove(len(event.what) % 5)
        self.last.put(len(event.what) % 5, event.what[:9])
        ctx.timers.event_time(event.n)
        yield event.k, event.n, repr(self.last.items())

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield ctx.key.k, ctx.key.n, f"{timer.timestamp} {self.last.items()}"
        self.last.clear()


class Epoch(NamedTuple):
    """What comes in an epoch: rows by channel, each with its event time, then where event time and the clock stand."""

    rows: list[tuple[str, int, Any]]
    watermark: int
    now: int
    idle: frozenset[str] = frozenset()


def plan_of(levels: int, parallelism: int) -> JobPlan:
    env = hw.Environment("replay", engine="local", parallelism=parallelism)
    stream: Any = env.from_rows([], SCHEMA).key_by("k").process(Interpreter(), OUT)
    stream.side_output(SIDE).sink(hw.connectors.memory(), name="side")
    if levels == 2:
        stream = stream.key_by("k", "n").process(Follower(), OUT)
    stream.sink(hw.connectors.memory(), name="main")
    return plan_job(env.graph, parallelism, 128)


CHANNELS = ("one", "two")
KINDS = [
    ["value", "nested"],
    ["list"],
    ["map"],
    ["maps", "map"],
    ["reduce", "aggregate"],
    ["timer"],
    ["timer", "map", "list"],
]
KINDS.append(sorted({op.split(".")[0] for op in OPERATIONS}))


def payloads_of(plan: JobPlan, number: int, epoch: Epoch, *unaligned_ms: int) -> list[tuple[int, bytes]]:
    found = []
    for channel in CHANNELS:
        outlet = Outlet.behind(plan, plan.sources()[0])
        outlet.begin(EpochFacts(number, epoch.now, *unaligned_ms), f"rows/{channel}")
        rows = [(at, row) for origin, at, row in epoch.rows if origin == channel]
        middle = len(rows) // 2
        for half in (rows[:middle], rows[middle:]):  # several payloads a channel
            if half:
                table = encode_rows([row for _, row in half], SCHEMA.arrow, "rows")
                outlet.emit(None, Batch(table, timestamp_array([at for at, _ in half])))
        found += outlet.finish(epoch.watermark, idle=channel in epoch.idle)
    return found


@st.composite
def epochs(draw: st.DrawFn, most: int = 5, *, idling: bool = False) -> list[Epoch]:
    """Few operations a program, so that the same state is written, removed and written again."""
    some = draw(st.sampled_from(KINDS))
    allowed = [op for op in OPERATIONS if op.split(".")[0] in some]
    operations = st.tuples(st.sampled_from(allowed), st.integers(0, 40), st.integers(0, 9))
    keys = st.sampled_from(draw(st.sampled_from([["a"], ["a", "b", None]])))
    rows = st.tuples(
        st.sampled_from(CHANNELS), st.integers(0, 30), st.tuples(keys, st.lists(operations, min_size=1, max_size=4))
    )
    watermark, now, found = MIN_TIMESTAMP, 0, []
    for _ in range(draw(st.integers(2, most))):
        arrived = draw(st.lists(rows, max_size=3))
        step = draw(st.sampled_from([0, 0, 3, 8, 20]))
        watermark = (
            step if watermark == MIN_TIMESTAMP and step else watermark + (step if watermark != MIN_TIMESTAMP else 0)
        )
        now += draw(st.sampled_from([0, 0, 2, 6]))
        idle = draw(st.frozensets(st.sampled_from(CHANNELS))) if idling else frozenset()
        found.append(Epoch(arrived, watermark, now, idle))
    return found


class Call(NamedTuple):
    """One call of a host in the original run, and what it left behind."""

    epoch: int
    inputs: list[bytes]
    before: changelog.MemoryRecordStore
    after: changelog.MemoryRecordStore
    outcome: Any


def snapshot(store: changelog.MemoryRecordStore) -> changelog.MemoryRecordStore:
    twin = changelog.MemoryRecordStore()
    twin._head, twin._records = store._head, dict(store._records)
    return twin


def shown(outcome: Outcome) -> Any:
    """All that leaves a host, as comparable values."""
    sinks = {
        name: [(batch.table.to_pylist(), batch.timestamps.tolist()) for batch in batches]
        for name, batches in outcome.sink_batches.items()
    }
    return outcome.payloads, sinks


def call(host: LevelHost, store: changelog.MemoryRecordStore, inputs: list[bytes], token: str, *, compact: bool) -> Any:
    """One epoch on one host, as the engines do it."""
    head = changelog.catch_up(host, store, "test")
    host.token = None
    outcome = host.run(inputs)
    with mock.patch.object(changelog, "is_compaction_due", return_value=compact):
        changelog.append(host, store, head, token)
    return shown(outcome)


def run(
    plan: JobPlan, inputs: list[Epoch], compact: list[bool]
) -> tuple[dict[tuple[int, int], list[Call]], dict[Any, LevelHost]]:
    """The original run: every call of every host, with copies that stay in place and never catch up."""
    places = [(level, subtask) for level in range(1, plan.depth + 1) for subtask in range(plan.parallelism)]
    hosts = {place: LevelHost(plan, *place) for place in places}
    stores = {place: changelog.MemoryRecordStore() for place in places}
    calls: dict[tuple[int, int], list[Call]] = {place: [] for place in places}
    for number, epoch in enumerate(inputs):
        routed = payloads_of(plan, number, epoch)
        for level in range(1, plan.depth + 1):
            emitted: list[tuple[int, bytes]] = []
            for subtask in range(plan.parallelism):
                place = (level, subtask)
                received = [data for target, data in routed if target == subtask]
                before = snapshot(stores[place])
                outcome = call(hosts[place], stores[place], received, f"t{number}", compact=compact[number])
                calls[place].append(Call(number, received, before, snapshot(stores[place]), outcome))
                emitted += outcome[0]
            routed = emitted
    return calls, hosts


@pytest.fixture(params=[65_536, 1], ids=["base at once", "base in parts"])
def part_entries(request: pytest.FixtureRequest) -> Iterator[int]:
    """How many entries a part of a base has: in most programs all of them, or one."""
    with mock.patch.object(slices, "_PART_ENTRIES", request.param):
        yield request.param


def replay(host: LevelHost, made: Call, shuffle: random.Random, *, compact: bool) -> None:
    """Run a call again on another copy, with its payloads in another order, and compare every byte."""
    inputs = list(made.inputs)
    shuffle.shuffle(inputs)
    store = snapshot(made.before)
    assert call(host, store, inputs, f"t{made.epoch}", compact=compact) == made.outcome
    assert store._head == made.after._head
    assert store._records == made.after._records


@pytest.mark.parametrize(("levels", "parallelism"), [(1, 1), (2, 2)])
@pytest.mark.usefixtures("part_entries")
@thorough
@given(data=st.data())
def test_a_replay_on_a_rebuilt_copy_gives_the_same_bytes(levels: int, parallelism: int, data: st.DataObject) -> None:
    inputs = data.draw(epochs(idling=True))
    compact = data.draw(st.lists(st.booleans(), min_size=len(inputs), max_size=len(inputs)))
    shuffle = random.Random(data.draw(st.integers(0, 99)))
    plan = plan_of(levels, parallelism)
    calls, _ = run(plan, inputs, compact)
    for place, made in calls.items():
        behind: LevelHost | None = None
        for at, one in enumerate(made):
            replay(LevelHost(plan, *place), one, shuffle, compact=compact[at])  # rebuilt from base and deltas
            if behind is None or at % 2:
                behind = behind or LevelHost(plan, *place)  # skips every other epoch, so it catches up by deltas
                replay(behind, one, shuffle, compact=compact[at])
        lost = LevelHost(plan, *place)
        lost.sequence, lost.token = 1, "of an attempt that never committed"
        replay(lost, made[-1], shuffle, compact=compact[-1])


@thorough
@given(data=st.data())
def test_a_failed_attempt_leaves_no_trace(data: st.DataObject) -> None:
    """The copy ran the epoch on other input, failed before the commit, and runs it again."""
    inputs = data.draw(epochs(4))
    other = data.draw(epochs(2))[-1]
    plan = plan_of(1, 1)
    calls, _ = run(plan, inputs, [False] * len(inputs))
    for one in calls[1, 0]:
        host = LevelHost(plan, 1, 0)
        changelog.catch_up(host, one.before, "test")
        host.token = None
        host.run([payload for _, payload in payloads_of(plan, one.epoch, other)])
        replay(host, one, random.Random(1), compact=False)


@pytest.mark.usefixtures("part_entries")
@thorough
@given(data=st.data())
def test_deltas_in_turn_are_the_dump(data: st.DataObject) -> None:
    inputs = data.draw(epochs(idling=True))
    compact = data.draw(st.lists(st.booleans(), min_size=len(inputs), max_size=len(inputs)))
    plan = plan_of(1, 1)
    calls, hosts = run(plan, inputs, compact)
    rebuilt = LevelHost(plan, 1, 0)
    changelog.catch_up(rebuilt, calls[1, 0][-1].after, "test")
    whole = hosts[1, 0].base()
    assert rebuilt.base() == whole
    from_base = LevelHost(plan, 1, 0)
    from_base.apply(whole)
    assert from_base.base() == whole
    assert unpack(from_base.delta())[0] == {}
    assert list(unpack(from_base.delta())[1]) == []


def sliced(rows_in: list[Any], sizes: list[int]) -> Iterator[list[Any]]:
    at = 0
    for size in sizes:
        yield rows_in[at : at + size]
        at += size
    yield rows_in[at:]


@pytest.mark.parametrize("parallelism", [1, 3])
@thorough
@given(data=st.data())
def test_results_and_state_do_not_depend_on_how_rows_are_sliced(parallelism: int, data: st.DataObject) -> None:
    """Between two moves of time, and from one channel, rows may be cut into epochs anywhere."""
    whole = [epoch._replace(rows=[("one", at, row) for _, at, row in epoch.rows]) for epoch in data.draw(epochs())]
    cut = []
    watermark, now = MIN_TIMESTAMP, 0
    for epoch in whole:
        sizes = data.draw(st.lists(st.integers(0, 2), max_size=3))
        cut += [Epoch(part, watermark, now) for part in sliced(epoch.rows, sizes)]
        watermark, now = epoch.watermark, epoch.now
        cut.append(Epoch([], watermark, now))
    plan = plan_of(1, parallelism)
    # the clock of the rows is the one that stood before, so that timers in processing time are set alike
    stood = [0, *(epoch.now for epoch in whole)]
    at_once = [
        part
        for before, epoch in zip(stood, whole, strict=False)
        for part in (Epoch(epoch.rows, epoch.watermark, before), Epoch([], epoch.watermark, epoch.now))
    ]
    results = []
    for inputs in (at_once, cut):
        calls, hosts = run(plan, inputs, [False] * len(inputs))
        outputs: dict[str, list[Any]] = {}
        for place, made in sorted(calls.items()):
            for one in made:
                for name, batches in one.outcome[1].items():
                    for found, times in batches:
                        for row, time in zip(found, times, strict=True):
                            outputs.setdefault(f"{name} {place} {row['k']}", []).append((row, time))
        results.append((outputs, {place: host.base() for place, host in hosts.items()}))
    assert results[0] == results[1]


def test_the_program_of_these_tests_can_do_everything() -> None:
    """Every operation once, so that a spelling mistake cannot hide behind a property that never draws it."""
    plan = plan_of(2, 1)
    everything = [(name, 5, 2) for name in sorted(set(OPERATIONS))]
    first = Epoch([("one", 1, ("a", everything)), ("two", 2, ("b", everything[::-1]))], 3, 0)
    calls, hosts = run(plan, [first, Epoch([], 50, 50)], [False, False])
    main = calls[2, 0][0].outcome[1]["main"]
    assert sum(len(found) for found, _ in main) == len(everything) * 2
    assert copy.copy(calls[1, 0][0].outcome[1]["side"])
    table = next(s for s in unpack(hosts[1, 0].base())[1] if s[1] == "list")[2]
    assert len(list(rows_of(table, Schema(table.schema).row))) > 0
    assert np.all(np.array([len(made) for made in calls.values()]) == 2)
