"""Every subtask keeps the same broadcast state, in whatever order payloads reach it, and so does a replay."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

import headwater as hw
from headwater.data.batch import Batch, timestamp_array
from headwater.data.rows import encode_rows
from headwater.data.schema import Schema
from headwater.plan.plan import JobPlan, plan_job
from headwater.state import changelog
from headwater.task.host import LevelHost
from headwater.task.outcome import Outcome
from headwater.task.outlet import Outlet
from headwater.task.payload import EpochFacts

PARALLELISM = 3
SCHEMA = Schema.of("name string, n long")
RULES = hw.MapState("rules", "string", "array<bigint>")
LAST = hw.MapState("last", "boolean", "string")
SOURCES = ("data", "rules", "more rules")
Given = tuple[str, int, tuple[str, int]]
"""A source, and the event time and the values of a row from it."""


class Log(hw.KeyedBroadcastFunction):
    """Broadcast state in which the order of all rows shows."""

    seen = hw.ValueState("string")

    def process(self, event: Any, ctx: hw.BroadcastContext) -> Iterator[Any]:
        self.seen.set(repr(ctx.broadcast_state(RULES).items()))
        yield ctx.key, self.seen.get()

    def process_broadcast(self, event: Any, ctx: hw.BroadcastContext) -> Iterator[Any]:
        rules, last, found = ctx.broadcast_state(RULES), ctx.broadcast_state(LAST), list[Any]()
        if event.n == 0:
            rules.clear()
        elif event.n == 1:
            rules.remove(last.get(True, ""))
        else:
            rules.put(event.name, [*rules.get(event.name, ()), event.n][-3:])
        last.put(True, event.name)
        ctx.apply_to_keyed_state(self.seen, lambda key, seen: found.append((key, f"{seen.get()} {event.name}")))
        yield from found


def plan_of() -> JobPlan:
    env = hw.Environment("broadcast", engine="local", parallelism=PARALLELISM)
    data, rules, more = (env.from_rows([], SCHEMA, name=name) for name in SOURCES)
    step = data.key_by("name").connect(rules.union(more).broadcast(RULES, LAST)).process(Log(), "k string, what string")
    step.sink(hw.connectors.memory())
    return plan_job(env.graph, PARALLELISM, 128)


def payloads_of(
    plan: JobPlan, number: int, rows: list[Given], chance: random.Random, *unaligned_ms: int
) -> list[list[bytes]]:
    """The payloads of an epoch for each subtask, for each in an order of its own."""
    received: list[list[bytes]] = [[] for _ in range(PARALLELISM)]
    for source in plan.sources():
        outlet = Outlet.behind(plan, source)
        outlet.begin(EpochFacts(number, 0, *unaligned_ms), f"{source.name}/0")
        mine = [(at, row) for name, at, row in rows if name == source.name]
        for part in (mine[:2], mine[2:]):  # several payloads a channel
            table = encode_rows([row for _, row in part], SCHEMA.arrow, "rows")
            outlet.emit(None, Batch(table, timestamp_array([at for at, _ in part])))
        for subtask, data in outlet.finish(number):
            received[subtask].append(data)
    for payloads in received:
        chance.shuffle(payloads)
    return received


def call(host: LevelHost, store: changelog.MemoryRecordStore, payloads: list[bytes], token: str) -> Outcome:
    head = changelog.catch_up(host, store, "test")
    host.token = None
    outcome = host.run(payloads)
    changelog.append(host, store, head, token)
    return outcome


def broadcast_state(host: LevelHost) -> dict[str, list[dict[str, Any]]]:
    tables = host._entries[0].operator.tables()
    return {state.name: tables[state.name].dump().to_pylist() for state in (RULES, LAST)}


names = st.sampled_from(["a", "b", "c"])
rows = st.tuples(st.sampled_from(SOURCES), st.integers(0, 5), st.tuples(names, st.integers(0, 6)))


@examples(50)
@given(epochs=st.lists(st.lists(rows, max_size=8), min_size=1, max_size=5), seed=st.integers(0, 99))
def test_all_subtasks_keep_the_same_after_every_epoch(epochs: list[list[Given]], seed: int) -> None:
    chance, plan = random.Random(seed), plan_of()
    hosts = [LevelHost(plan, 1, subtask) for subtask in range(PARALLELISM)]
    stores = [changelog.MemoryRecordStore() for _ in hosts]
    for number, given_rows in enumerate(epochs):
        for subtask, received in enumerate(payloads_of(plan, number, given_rows, chance)):
            before = copy.deepcopy(stores[subtask])
            outcome = call(hosts[subtask], stores[subtask], received, f"t{number}")
            other = LevelHost(plan, 1, subtask)  # rebuilt, and called with payloads in another order
            again = call(other, before, chance.sample(received, len(received)), f"t{number}")
            assert before._records == stores[subtask]._records
            assert str(again.sink_batches) == str(outcome.sink_batches)
            assert broadcast_state(other) == broadcast_state(hosts[subtask])
        assert broadcast_state(hosts[0]) == broadcast_state(hosts[1]) == broadcast_state(hosts[2])


def test_broadcast_rows_of_several_channels_come_in_the_order_of_event_time() -> None:
    given_rows = [
        ("more rules", 1, ("a", 2)),
        ("rules", 2, ("a", 3)),
        ("more rules", 3, ("a", 4)),
        ("rules", 0, ("b", 5)),
    ]
    plan = plan_of()
    host = LevelHost(plan, 1, 2)
    host.run(payloads_of(plan, 0, given_rows, random.Random(1))[2])
    (rule, other) = broadcast_state(host)["rules"]
    assert (rule["entry"], rule["value"]) == ("a", [2, 3, 4])
    assert (other["entry"], broadcast_state(host)["last"][0]["value"]) == (
        "b",
        "a",
    )  # b does not overtake
