"""What waits at a step in unaligned epochs: the cut, the order, the watermarks behind it, and what is stored of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples
from tests.unit.task import test_broadcast as broadcasting
from tests.unit.task.test_replay import Epoch, epochs, payloads_of, plan_of, shown, snapshot

import headwater as hw
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, timestamp_array
from headwater.data.rows import encode_rows
from headwater.plan.plan import JobPlan, plan_job
from headwater.savepoints.rescale import rescale
from headwater.state import changelog
from headwater.state.backend import StateBackend
from headwater.state.disk.backend import DiskBackend
from headwater.state.disk.bound import Bound
from headwater.state.memory_backend import MEMORY
from headwater.state.records import unpack
from headwater.task import inflight
from headwater.task.host import LevelHost
from headwater.task.inflight import InFlight, next_budget
from headwater.task.merging import merge, merge_two, shares
from headwater.task.outcome import Outcome
from headwater.task.outlet import Outlet
from headwater.task.payload import EpochFacts, Payload, decode_payload

SECOND = 1_000
quick = examples(40)


@pytest.mark.parametrize(
    ("budget", "rows", "seconds", "expected"),
    [
        (1_000, 1_000, 1.0, 1_000),
        (1_000, 1_000, 0.5, 2_000),
        (1_000, 1_000, 0.001, 4_000),  # it grows in steps
        (1_000, 1_000, 200.0, 5),  # and falls at once
        (1_000, 10, 0.5, 20),  # by its speed, also when there were not enough rows to use it up
        (1_000, 1, 50.0, 1),
        (1_000, 0, 9.0, 1_000),  # without rows nothing is known
        (1_000, 5, 0.0, 4_000),
        (inflight.LARGEST_BUDGET, 5, 0.0, inflight.LARGEST_BUDGET),
    ],
)
def test_the_next_budget_is_what_takes_the_target(budget: int, rows: int, seconds: float, expected: int) -> None:
    assert next_budget(budget, rows, seconds, SECOND) == expected


# -- the cut ------------------------------------------------------------------------------------------------------------

times = st.lists(st.integers(-3, 5), min_size=1, max_size=4)
sent = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0, 1]), times), max_size=7)


def payloads(parts: list[tuple[str, int, list[int]]]) -> list[Payload]:
    """Payloads as a host sorts them; each row has a name of its own."""
    ordered = sorted(enumerate(parts), key=lambda part: (part[1][0], part[0]))
    return [
        Payload(
            1,
            0,
            channel,
            sequence,
            EpochFacts(0, 0),
            None,
            Batch(
                pa.table({"row": [f"{channel}{sequence}.{i}" for i in range(len(times))]}), np.array(times, np.int64)
            ),
            side=side,
        )
        for sequence, (channel, side, times) in ordered
    ]


def names(batch: Batch | None) -> list[str]:
    return [] if batch is None else batch.table["row"].to_pylist()


def cut(all_of: list[Payload], count: int, *, ordered: bool) -> tuple[list[Payload], list[Payload]]:
    parts = list(inflight._divided(all_of, count, set(), ordered=ordered))
    return [now for now, _ in parts if now is not None], [later for _, later in parts if later is not None]


@quick
@given(parts=sent, count=st.integers(0, 20), ordered=st.booleans())
def test_the_first_rows_and_then_the_rest_are_all_rows_in_the_same_order(
    parts: Any, count: int, *, ordered: bool
) -> None:
    one_sided = payloads([(channel, 0, times) for channel, _, times in parts])
    first, rest = cut(one_sided, count, ordered=ordered)
    whole = names(merge(one_sided, ordered=ordered))
    assert len(names(merge(first))) == min(count, len(whole))
    assert names(merge(first, ordered=ordered)) + names(merge(rest, ordered=ordered)) == whole


@quick
@given(parts=sent, count=st.integers(0, 20))
def test_the_turns_of_two_sides_go_on_after_the_cut(parts: Any, count: int) -> None:
    both = payloads(parts)

    def turns(some: list[Payload]) -> list[str]:
        inputs = merge_two(some, ordered=True)
        rows = [iter(names(inputs.left)), iter(names(inputs.right))]
        return [next(rows[side]) for side in ([] if inputs.turns is None else inputs.turns.tolist())]

    first, rest = cut(both, count, ordered=True)
    assert turns(first) + turns(rest) == turns(both)
    assert len(turns(first)) == min(count, len(turns(both)))


def test_only_as_many_rows_of_a_channel_are_looked_at_as_can_be_among_the_first() -> None:
    long = payloads([("a", 0, [9, 1, 1, 1]), ("a", 0, [1] * 4), ("b", 0, [2, 3])])
    assert shares(long, 3, ordered=True) == [1, 0, 2]
    assert shares(long, 5, ordered=False) == [4, 1, 0]


# -- a host with a budget -----------------------------------------------------------------------------------------------


class Show(hw.KeyedProcessFunction):
    """Shows the order of rows, and the event time that they and the timers see."""

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        ctx.timers.event_time(event.n)
        yield event.n, ctx.watermark

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield -timer.timestamp, ctx.watermark


SHOW = hw.Schema.of("k string, n long")


def show_plan() -> JobPlan:
    env = hw.Environment("show", engine="local", parallelism=1)
    env.from_rows([], SHOW).key_by("k").process(Show(), "n long, watermark long", name="show").sink(
        hw.connectors.memory(), name="out"
    )
    return plan_job(env.graph, 1, 128)


class Takes:
    """A stopwatch by which all that a step does in an epoch takes so many seconds, a number without rounding."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._now = seconds, 0.0

    def __call__(self) -> float:
        self._now += self._seconds
        return self._now


def sent_to(
    plan: JobPlan, number: int, channels: dict[str, list[int]], marks: dict[str, int], unaligned_ms: int | None = SECOND
) -> list[bytes]:
    """An epoch's payloads: rows with their own times, then the watermark of each channel."""
    found = []
    for channel, mark in marks.items():
        outlet = Outlet.behind(plan, plan.sources()[0])
        outlet.begin(EpochFacts(number, 0, unaligned_ms), f"rows/{channel}")
        ns = channels.get(channel, [])
        outlet.emit(None, Batch(encode_rows([(channel, n) for n in ns], SHOW.arrow, "rows"), timestamp_array(ns)))
        found += [data for _, data in outlet.finish(mark)]
    return found


def results(outcome: Outcome) -> list[tuple[int, int]]:
    batches = outcome.sink_batches.get("out", [])
    return [tuple(row.values()) for batch in batches for row in batch.table.to_pylist()]


def in_flight(outcome: Outcome) -> tuple[int, int]:
    return outcome.steps["show"].in_flight, outcome.steps["show"].watermark_ms


@pytest.fixture
def two_rows_first() -> Iterator[None]:
    with mock.patch.object(inflight, "FIRST_BUDGET", 2):
        yield


@pytest.mark.usefixtures("two_rows_first")
def test_a_watermark_waits_for_the_rows_before_it_and_for_nothing_else() -> None:
    plan = show_plan()
    host = LevelHost(plan, 1, 0, Takes(2.0))  # one row a second
    first = host.run(sent_to(plan, 0, {"a": [1, 2, 3], "b": [9]}, {"a": 3, "b": 9}))
    assert results(first) == [(1, MIN_TIMESTAMP), (2, MIN_TIMESTAMP)]
    assert in_flight(first) == (2, MIN_TIMESTAMP), "both channels wait"
    second = host.run(sent_to(plan, 1, {}, {"a": 5, "b": 11}))
    assert results(second) == [(3, MIN_TIMESTAMP)]
    assert in_flight(second) == (1, MIN_TIMESTAMP), "a is at 5; b, of which nothing was heard, is waited for"
    third = host.run(sent_to(plan, 2, {"a": [20]}, {"a": 20, "b": 12}))
    assert results(third) == [(9, MIN_TIMESTAMP), (-1, 5), (-2, 5), (-3, 5)]
    assert in_flight(third) == (1, 5), "b is at 12, of a the row from 20 waits"
    fourth = host.run(sent_to(plan, 3, {}, {"a": 21, "b": 13}))
    assert results(fourth) == [(20, 5), (-9, 13)]
    assert in_flight(fourth) == (0, 13)


@pytest.mark.usefixtures("two_rows_first")
def test_a_channel_that_does_not_wait_is_heard_at_once() -> None:
    plan = show_plan()
    host = LevelHost(plan, 1, 0, Takes(2.0))
    host.run(sent_to(plan, 0, {}, {"a": 1, "b": 1}))
    outcome = host.run(sent_to(plan, 1, {"a": [2, 3, 4]}, {"a": 4, "b": 30}))
    assert in_flight(outcome) == (1, 1), "a stands where it stood"
    heard = host.tables()["show", "@channels"].dump().to_pylist()
    assert {row["channel"]: row["watermark"] for row in heard} == {"rows/a": 1, "rows/b": 30}


@pytest.mark.usefixtures("two_rows_first")
def test_an_aligned_epoch_handles_all_that_waits_and_all_that_comes() -> None:
    plan = show_plan()
    host = LevelHost(plan, 1, 0, Takes(2.0))
    host.run(sent_to(plan, 0, {"a": [1, 2, 3, 4, 5]}, {"a": 5}))
    host.run(sent_to(plan, 1, {"a": [6]}, {"a": 6}))
    outcome = host.run(sent_to(plan, 2, {"a": [7]}, {"a": MAX_TIMESTAMP}, None))
    assert [n for n, _ in results(outcome)] == [4, 5, 6, 7, -1, -2, -3, -4, -5, -6, -7]
    assert outcome.steps["show"].watermark_ms == MAX_TIMESTAMP
    assert host._entries[0]._in_flight.rows == 0


def sections(record: bytes) -> list[dict[str, Any]]:
    return [row for _, name, table in unpack(record)[1] if name == "@inflight" for row in table.to_pylist()]


@pytest.mark.usefixtures("two_rows_first")
def test_what_waits_is_written_once() -> None:
    plan = show_plan()
    host = LevelHost(plan, 1, 0, Takes(2.0))
    deltas = []
    for number in range(4):
        host.run(sent_to(plan, number, {"a": list(range(1, 8))} if number == 0 else {}, {"a": 7}))
        deltas.append(sections(host.delta()))
    first, *others = deltas
    assert [(row["number"], row["rows"], row["data"] is None) for row in first] == [
        (-1, 1, True),
        (0, 0, False),
        (1, 0, False),
    ]
    kept = decode_payload(first[1]["data"])
    assert kept.batch is not None
    assert kept.batch.table["n"].to_pylist() == [3, 4, 5, 6, 7]
    for handled, (again, mark) in enumerate(others, start=1):
        assert (again["number"], again["rows"], again["data"]) == (0, handled, None)
        assert mark["data"] is not None, "the watermark of the epoch itself"


def test_an_aligned_job_stores_nothing_of_it() -> None:
    plan = show_plan()
    host = LevelHost(plan, 1, 0)
    host.run(sent_to(plan, 0, {"a": [1, 2, 3]}, {"a": 3}, None))
    assert sections(host.base()) == []
    assert sections(host.delta()) == []


# -- replay -------------------------------------------------------------------------------------------------------------


def call(host: LevelHost, store: changelog.MemoryRecordStore, inputs: list[bytes], token: str) -> Any:
    head = changelog.catch_up(host, store, "test")
    host.token = None
    outcome = host.run(inputs)
    changelog.append(host, store, head, token)
    return shown(outcome)


def without_budgets(store: changelog.MemoryRecordStore) -> Any:
    """All that is stored but what was measured."""
    found = []
    for sequence in sorted(store._records):
        meta, tables = unpack(store._records[sequence][1])
        kept = []
        for uid, name, table in tables:
            rows = [row for row in table.to_pylist() if name != "@inflight" or row["number"] != -1]
            kept.append((uid, name, rows))
        found.append((meta, [section for section in kept if section[2]]))
    return found


@pytest.mark.parametrize(("levels", "parallelism"), [(1, 1), (2, 2)])
@examples(25)
@given(data=st.data())
def test_a_replay_cuts_at_the_same_row_however_fast_it_is(levels: int, parallelism: int, data: st.DataObject) -> None:
    inputs = data.draw(epochs(idling=True))
    plan, shuffle = plan_of(levels, parallelism), random.Random(data.draw(st.integers(0, 99)))
    places = [(level, subtask) for level in range(1, levels + 1) for subtask in range(parallelism)]
    seconds = {place: data.draw(st.sampled_from([0.125, 0.5, 1.0, 3.0])) for place in places}
    stores = {place: changelog.MemoryRecordStore() for place in places}
    with mock.patch.object(inflight, "FIRST_BUDGET", data.draw(st.integers(1, 3))):
        hosts = {place: LevelHost(plan, *place, Takes(seconds[place])) for place in places}
        for number, epoch in enumerate([*inputs, Epoch([], 100, 100)]):
            routed = payloads_of(plan, number, epoch, *([SECOND] if number < len(inputs) else []))
            for level in range(1, levels + 1):
                emitted = []
                for subtask in range(parallelism):
                    place = (level, subtask)
                    received = [payload for target, payload in routed if target == subtask]
                    again, other = snapshot(stores[place]), snapshot(stores[place])
                    outcome = call(hosts[place], stores[place], received, f"t{number}")
                    shuffle.shuffle(received)
                    alike, slower = (LevelHost(plan, *place, Takes(s)) for s in (seconds[place], 7.0))
                    assert call(alike, again, received, f"t{number}") == outcome
                    assert again._records == stores[place]._records
                    assert call(slower, other, received, f"t{number}") == outcome
                    assert without_budgets(other) == without_budgets(again)
                    emitted += outcome[0]
                routed = emitted
        for host in hosts.values():
            assert all(entry._in_flight.rows == 0 for entry in host._entries)
            rebuilt = LevelHost(plan, host._level, host._subtask)
            rebuilt.apply(host.base())
            assert rebuilt.base() == host.base()


@quick
@given(
    rows=st.lists(st.lists(broadcasting.rows, max_size=8), min_size=1, max_size=4),
    speeds=st.lists(st.sampled_from([0.25, 1.0, 4.0]), min_size=3, max_size=3),
    seed=st.integers(0, 99),
)
def test_subtasks_of_different_speed_come_to_the_same_broadcast_state(
    rows: list[Any], speeds: list[float], seed: int
) -> None:
    chance, plan = random.Random(seed), broadcasting.plan_of()
    with mock.patch.object(inflight, "FIRST_BUDGET", 1):
        hosts = [LevelHost(plan, 1, subtask, Takes(speed)) for subtask, speed in enumerate(speeds)]
        for number, epoch in enumerate([*rows, []]):
            unaligned = [SECOND] if number < len(rows) else []
            for host, received in zip(
                hosts, broadcasting.payloads_of(plan, number, epoch, chance, *unaligned), strict=True
            ):
                host.run(received)
    aligned = LevelHost(plan, 1, 0)
    for number, epoch in enumerate(rows):
        aligned.run(broadcasting.payloads_of(plan, number, epoch, chance)[0])
    for host in hosts:
        assert broadcasting.broadcast_state(host) == broadcasting.broadcast_state(aligned)


# -- another number of subtasks -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("two_rows_first")
def test_rows_in_flight_do_not_move_to_other_subtasks_but_budgets_do() -> None:
    plan = show_plan()
    hosts = [LevelHost(plan, 1, 0, Takes(seconds)) for seconds in (2.0, 0.5)]
    for host in hosts:
        host.run(sent_to(plan, 0, {"a": [1, 2, 3]}, {"a": 3}))
    records = {(1, subtask): host.base() for subtask, host in enumerate(hosts)}
    with pytest.raises(hw.JobError, match=r"step 'show' has rows in flight.*; take a savepoint"):
        rescale(records, plan)
    for host in hosts:
        host.run(sent_to(plan, 1, {}, {"a": 3}, None))
    moved = rescale({(1, subtask): host.base() for subtask, host in enumerate(hosts)}, plan)
    assert [row["rows"] for row in sections(moved[1, 0])] == [1], "the slowest one's"


@pytest.mark.parametrize("backend", [MEMORY, DiskBackend("s", None, Bound(0))], ids=["memory", "disk"])
def test_a_table_that_is_applied_piece_by_piece_is_the_one_that_was_dumped(backend: StateBackend) -> None:
    waiting, follower = InFlight("s", backend.shelf), InFlight("s")
    waiting._budget = 3
    for number in range(3):
        waiting.admit(payloads([("a", 0, [1, 2]), ("b", 1, [number])]), unaligned=True, ordered=True)
        waiting.measured(3, 1.5 + number, SECOND)
        changes = waiting.changes()
        assert changes is not None
        follower.apply(changes)
        assert follower.dump() == waiting.dump()
        assert (follower.rows, follower.budget, len(follower)) == (waiting.rows, waiting.budget, len(waiting))
    assert waiting.changes() is None
