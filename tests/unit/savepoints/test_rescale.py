"""State dealt out to another number of subtasks: random programs go on as if nothing had happened, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.oracle import window_cases, window_program
from tests.parts.examples import examples
from tests.unit.task.test_replay import OUT, SCHEMA, SIDE, Epoch, Follower, Interpreter, epochs

import headwater as hw
from headwater.plan.plan import JobPlan, plan_job
from headwater.savepoints.rescale import Place, rescale
from headwater.state.keys import key_groups, subtasks_of
from headwater.state.records import unpack
from headwater.testing import Harness

Build = Callable[..., hw.Stream]
Action = tuple[Any, ...]
"""A method of the harness and its arguments."""
counts = st.integers(1, 4)
quick = examples(40)


def play(
    build: Build, schema: Any, actions: list[Action], scales: list[int], *tags: hw.OutputTag
) -> list[Counter[Any]]:
    """What each action gives, at a parallelism for each; the state moves when it changes."""
    harness = Harness(build, schema, parallelism=scales[0])
    found = []
    for action, before, after in zip(actions, [scales[0], *scales], scales, strict=False):
        if before != after:
            harness = Harness.restore(build, schema, harness.snapshot(), parallelism=after)
        method, *arguments = action
        if method == "push_to":
            harness.push(*arguments[1:], to=arguments[0])
        else:
            getattr(harness, method)(*arguments)
        rows = [(None, row.timestamp, repr(row)) for row in harness.take()]
        rows += [(tag.name, row.timestamp, repr(row)) for tag in tags for row in harness.take(tag)]
        found.append(Counter(rows))
    return found


def same(build: Build, schema: Any, actions: list[Action], scales: list[int], *tags: hw.OutputTag) -> None:
    assert play(build, schema, actions, scales, *tags) == play(build, schema, actions, [1] * len(scales), *tags)


def actions_of(epoch: Epoch) -> Iterator[Action]:
    for _, at, row in epoch.rows:
        yield "push", row, at
    yield "watermark", epoch.watermark
    yield "advance_to", epoch.now


@quick
@given(epochs(), st.data())
def test_keyed_functions_go_on_as_before(program: list[Epoch], data: st.DataObject) -> None:
    actions = [action for epoch in program for action in actions_of(epoch)]
    scales = data.draw(st.lists(counts, min_size=len(actions), max_size=len(actions)))

    def build(stream: hw.Stream) -> hw.Stream:
        return stream.key_by("k").process(Interpreter(), OUT).key_by("k", "n").process(Follower(), OUT)

    same(build, SCHEMA, actions, scales, SIDE)


@pytest.mark.parametrize("seed", range(60))
def test_windows_go_on_as_before(seed: int) -> None:
    random = Random(f"rescale/{seed}")
    case = window_cases.windows(random)
    methods = {"watermark": "watermark", "clock": "advance_to", "end": "end"}
    actions: list[Action] = [
        ("push", tuple(given[:2]), given[2]) if action == "row" else (methods[action], *given)
        for action, *given in case["actions"]
    ]
    scales = [random.randint(1, 4) for _ in actions]
    for way in window_program.ways(case):
        same(
            partial(window_program.build, case=case, way=way),
            "k string, v bigint",
            actions,
            scales,
            window_program.LATE,
        )


KEYS: dict[str, Callable[[hw.Stream], Any]] = {
    "a column": lambda stream: stream.key_by("a"),
    "two columns": lambda stream: stream.key_by("a", "b"),
    "a function": lambda stream: stream.key_by(lambda row: row.b % 3, type="bigint"),
    "start and end": lambda stream: stream.select("a as key", "b as start", "b as end", "b").key_by(
        "key", "start", "end"
    ),
}
AGGREGATES: dict[str, Callable[[Any], hw.Stream]] = {
    "running": lambda keyed: keyed.agg(total=hw.sum("b"), n=hw.count(), all=hw.collect_list("b")),
    "sliced": lambda keyed: keyed.window(hw.tumbling("5 ms")).agg(total=hw.sum("b"), all=hw.collect_list("b")),
    "sliding": lambda keyed: keyed.window(hw.sliding("6 ms", "2 ms")).allow_lateness("3 ms").agg(total=hw.sum("b")),
    "sessions": lambda keyed: keyed.window(hw.session("3 ms")).agg(total=hw.sum("b"), all=hw.collect_list("b")),
}
ROWS = st.tuples(st.sampled_from(["x", "y", "", None]), st.integers(0, 9))


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("key", KEYS)
@examples(12)
@given(given=st.lists(st.tuples(ROWS, st.integers(0, 20), counts), min_size=2, max_size=12))
def test_aggregates_go_on_as_before(key: str, aggregate: str, given: list[tuple[Any, int, int]]) -> None:
    actions: list[Action] = []
    mark = 0
    for row, at, _ in given:
        mark = max(mark, at - 4)
        actions += [("push", row, at), ("watermark", mark)]
    scales = [scale for _, _, scale in given for _ in range(2)]
    same(lambda stream: AGGREGATES[aggregate](KEYS[key](stream)), "a string, b bigint", actions, scales)


@pytest.mark.parametrize("windows", [hw.tumbling("5 ms"), hw.session("3 ms")], ids=["sliced", "sessions"])
def test_windows_without_key_stay_where_their_rows_go(windows: Any) -> None:
    actions: list[Action] = [*(("push", ("x", at), at) for at in (1, 2, 8)), ("end",)]
    same(lambda stream: stream.window_all(windows).agg(n=hw.count()), "a string, b bigint", actions, [2, 4, 3, 2])


TAGS = [hw.OutputTag(name, "a string, b bigint") for name in ("late_left", "late_right", "alone_left", "alone_right")]


def paired(left: hw.Stream, right: hw.Stream, between: tuple[str, str]) -> hw.Stream:
    late_left, late_right, alone_left, alone_right = TAGS
    return left.key_by("a").interval_join(
        right.key_by("a"),
        between,
        late_left=late_left,
        late_right=late_right,
        unmatched_left=alone_left,
        unmatched_right=alone_right,
    )


JOINS: dict[str, Build] = {
    "before and after": partial(paired, between=("-3 ms", "2 ms")),
    "before": partial(paired, between=("-3 ms", "0 ms")),
    "at once": partial(paired, between=("0 ms", "0 ms")),
    "regular": lambda left, right: left.key_by("a").join_regular(right.key_by("a"), how="full"),
    "temporal": lambda left, right: left.key_by("a").temporal_join(right.key_by("a"), how="left", late=TAGS[0]),
}


@pytest.mark.parametrize("join", JOINS)
@example(given=[(True, ("x", 1), 5, 2), (True, ("x", 2), 4, 2), (False, ("x", 3), 4, 3)])
@quick
@given(given=st.lists(st.tuples(st.booleans(), ROWS, st.integers(0, 6), counts), min_size=2, max_size=20))
def test_joins_go_on_as_before(join: str, given: list[tuple[bool, Any, int, int]]) -> None:
    """Rows come close to the watermark: those right at it are kept until the next one."""
    actions: list[Action] = []
    mark = 0
    for is_left, row, at, _ in given:
        mark = max(mark, at - 1)
        actions += [("push_to", "left" if is_left else "right", row, at), ("watermark", mark)]
    scales = [scale for _, _, _, scale in given for _ in range(2)]
    inputs = {"left": "a string, b bigint", "right": "a string, b bigint"}
    same(JOINS[join], inputs, actions, scales, *TAGS)


class Limits(hw.KeyedBroadcastFunction):
    """Sums per key, over rows of at most the limit that was broadcast last."""

    total = hw.ValueState("bigint", default=0)

    def process_broadcast(self, row: Any, ctx: hw.BroadcastContext) -> None:
        ctx.broadcast_state("limits").put(row.a, row.b)

    def process(self, row: Any, ctx: hw.BroadcastContext) -> Iterator[Any]:
        limits = ctx.broadcast_state("limits").items()
        if all(row.b <= limit for _, limit in limits):
            self.total.set(self.total.get() + row.b)
        yield ctx.key, self.total.get(), str(limits)


def limited(left: hw.Stream, right: hw.Stream) -> hw.Stream:
    limits = right.broadcast(hw.MapState("limits", "string", "bigint"))
    return left.key_by("a").connect(limits).process(Limits(), "a string, total bigint, limits string")


@quick
@given(
    st.lists(
        st.tuples(st.booleans(), st.tuples(st.sampled_from("xyz"), st.integers(0, 9)), counts), min_size=2, max_size=20
    )
)
def test_broadcast_state_goes_to_every_subtask(given: list[tuple[bool, Any, int]]) -> None:
    actions: list[Action] = [("push_to", "left" if is_left else "right", row, None) for is_left, row, _ in given]
    inputs = {"left": "a string, b bigint", "right": "a string, b bigint"}
    same(limited, inputs, actions, [scale for _, _, scale in given])


def test_broadcast_state_is_there_once_for_each() -> None:
    inputs = {"left": "a string, b bigint", "right": "a string, b bigint"}
    harness = Harness(limited, inputs, parallelism=3)
    for limit in (("x", 1), ("y", 2)):
        harness.push(limit, to="right")
    other = Harness.restore(limited, inputs, harness.snapshot(), parallelism=4)
    for store in other._cluster.stores.values():
        record = store.read(1)
        assert record is not None
        (rules,) = [table for _, name, table in unpack(record)[1] if name == "limits"]
        assert rules["entry"].to_pylist() == ["x", "y"]


# -- there and back -----------------------------------------------------------------------------------------------------


class Everything(hw.KeyedProcessFunction):
    one = hw.ValueState("bigint")
    many = hw.ListState("bigint")
    named = hw.MapState("string", "bigint")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.one.set(event.n)
        self.many.add(event.n)
        self.named.put(str(event.n % 3), event.n)
        ctx.timers.event_time(100 + event.n % 2)
        ctx.timers.processing_time(200)
        yield event


class Places(hw.ProcessFunction):
    seen = hw.OperatorListState("bigint")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.seen.add(event.n)
        yield event


def everything(stream: hw.Stream) -> hw.Stream:
    keyed = stream.key_by("k").process(Everything(), "k bigint, n bigint")
    windowed = keyed.process(Places(), "k bigint, n bigint").key_by("k").window(hw.session("5 ms"))
    return windowed.agg(total=hw.sum("n")).key_by("k").agg(sessions=hw.count())


def plan_of(parallelism: int) -> JobPlan:
    env = hw.Environment("rescale", engine="local", parallelism=parallelism)
    everything(env.from_rows([], "k bigint, n bigint", name="harness")).sink(hw.connectors.memory())
    return plan_job(env.graph, parallelism, 128)


@cache
def records_at(parallelism: int) -> dict[Place, bytes]:
    harness = Harness(everything, "k bigint, n bigint", parallelism=parallelism)
    for n in range(50):
        harness.push((n % 13, n), at=n)
        harness.watermark(n - 20)
    return {place: host.base() for place, host in harness._cluster.hosts.items()}


Content = dict[tuple[int, str, str], Counter[str]]


def content_of(records: dict[Place, bytes]) -> dict[int, Content]:
    """By subtask, then level, step and state: the rows, without the numbers that are made anew."""
    found: dict[int, Content] = {}
    for (level, subtask), record in records.items():
        for uid, name, table in unpack(record)[1]:
            rows = table.drop_columns([c for c in ("registration", "index") if c in table.column_names]).to_pylist()
            found.setdefault(subtask, {})[level, uid, name] = Counter(map(repr, rows))
    return found


def together(content: dict[int, Content]) -> Content:
    """What all subtasks have."""
    found: Content = {}
    for part in content.values():
        for place, rows in part.items():
            if place[2] != "@channels":
                found[place] = found.get(place, Counter()) + rows
    return found


@pytest.mark.parametrize("there", range(1, 5))
@pytest.mark.parametrize("here", range(1, 5))
def test_there_and_back_loses_nothing(here: int, there: int) -> None:
    records = records_at(here)
    moved = rescale(records, plan_of(there))
    back = rescale(moved, plan_of(here))
    assert sorted(moved) == [(level, subtask) for level in range(1, 5) for subtask in range(there)]
    assert together(content_of(records)) == together(content_of(moved)) == together(content_of(back))
    for subtask, content in content_of(back).items():
        for place, rows in content.items():
            if place[1] != "places":  # elements of operator state have no place that is theirs
                assert rows == content_of(records)[subtask][place], place


def test_the_same_records_are_made_of_the_same_records() -> None:
    records = records_at(3)
    assert rescale(records, plan_of(4)) == rescale(dict(reversed(records.items())), plan_of(4))


def test_every_key_is_where_its_rows_will_go() -> None:
    for (level, subtask), record in rescale(records_at(2), plan_of(3)).items():
        for uid, name, table in unpack(record)[1]:
            if uid == "everything" and name != "@channels":
                owners = subtasks_of(key_groups(table["key"], 128), 128, 3)
                assert set(owners.tolist()) == {subtask}, (level, name)


def test_timers_have_numbers_of_their_own_and_new_ones_other_numbers() -> None:
    harness = Harness(everything, "k bigint, n bigint", parallelism=4)
    for n in range(20):
        harness.push((n, n), at=n)
    one = Harness.restore(everything, "k bigint, n bigint", harness.snapshot(), parallelism=1)
    for n in range(20, 40):
        one.push((n, n), at=n)
    (table,) = [
        table
        for uid, name, table in unpack(one._cluster.hosts[1, 0].base())[1]
        if (uid, name) == ("everything", "@timers.event")
    ]
    numbers = table["registration"].to_pylist()
    assert len(set(numbers)) == len(numbers) == 40


def test_state_of_another_program_is_refused() -> None:
    env = hw.Environment("other", engine="local")
    env.from_rows([], "k bigint, n bigint").key_by("k").agg(n=hw.count()).sink(hw.connectors.memory())
    with pytest.raises(hw.ChangelogError, match="state of another program"):
        rescale(records_at(2), plan_job(env.graph, 1, 128))


# -- operator state -----------------------------------------------------------------------------------------------------


class Owned(hw.ProcessFunction):
    """Every number belongs to a subtask; a union list is cut down to its own after a move."""

    mine = hw.UnionListState("bigint")
    any = hw.OperatorListState("bigint")

    def open(self) -> None:
        self.found = [self.mine.get(), self.any.get()]

    def restored(self, subtask: int, parallelism: int) -> None:
        self.all = sorted(self.mine.get())
        self.mine.update([n for n in self.all if n % parallelism == subtask])

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        if event.n >= 0:
            self.mine.add(event.n)
            self.any.add(event.n)
        yield self.mine.get(), self.any.get(), *self.found


def owned(stream: hw.Stream) -> hw.Stream:
    out = "mine array<bigint>, any array<bigint>, found_mine array<bigint>, found_any array<bigint>"
    return stream.partition_custom(lambda n, parallelism: abs(n) % parallelism, "n").process(Owned(), out)


def shown(harness: Harness, parallelism: int) -> list[Any]:
    for subtask in range(parallelism):
        harness.push((-parallelism - subtask,))
    return harness.take()


def test_lists_are_dealt_out_evenly_and_union_lists_given_to_all() -> None:
    harness = Harness(owned, "n bigint", parallelism=2)
    for n in range(7):
        harness.push((n,))
    assert [tuple(row)[:2] for row in shown(harness, 2)[-2:]] == [([0, 2, 4, 6], [0, 2, 4, 6]), ([1, 3, 5], [1, 3, 5])]
    three = Harness.restore(owned, "n bigint", harness.snapshot(), parallelism=3)
    assert [tuple(row) for row in shown(three, 3)] == [
        ([0, 3, 6], [0, 6, 5], [0, 3, 6], [0, 6, 5]),
        ([1, 4], [2, 1], [1, 4], [2, 1]),
        ([2, 5], [4, 3], [2, 5], [4, 3]),
    ]
    one = Harness.restore(owned, "n bigint", three.snapshot(), parallelism=1)
    assert [tuple(row)[:2] for row in shown(one, 1)] == [(list(range(7)), [0, 6, 5, 2, 1, 4, 3])]


def test_a_function_is_told_once_that_its_state_has_moved() -> None:
    told: list[tuple[int, int]] = []

    class Told(hw.ProcessFunction):
        seen = hw.OperatorListState("bigint")

        def restored(self, subtask: int, parallelism: int) -> None:
            told.append((subtask, parallelism))

        def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
            self.seen.add(event.n)
            yield event

    def build(stream: hw.Stream) -> hw.Stream:
        return stream.process(Told(), "n bigint")

    harness = Harness(build, "n bigint")
    harness.push((1,))
    same_again = Harness.restore(build, "n bigint", harness.snapshot())
    same_again.push((2,))
    assert told == []
    moved = Harness.restore(build, "n bigint", same_again.snapshot(), parallelism=3)
    assert told == []
    moved.watermark(5)  # an epoch without rows is enough
    assert told == [(0, 3), (1, 3), (2, 3)]
    moved.push((3,))
    Harness.restore(build, "n bigint", moved.snapshot(), parallelism=3).push((4,))
    assert len(told) == 3


def test_an_error_while_taking_over_names_the_step() -> None:
    class Fails(hw.ProcessFunction):
        seen = hw.OperatorListState("bigint")

        def restored(self, subtask: int, parallelism: int) -> None:
            raise ValueError("not mine")

        def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
            self.seen.add(event.n)
            yield event

    def build(stream: hw.Stream) -> hw.Stream:
        return stream.process(Fails(), "n bigint")

    harness = Harness(build, "n bigint")
    harness.push((1,))
    moved = Harness.restore(build, "n bigint", harness.snapshot(), parallelism=2)
    with pytest.raises(hw.UserCodeError, match="step 'fails' failed: ValueError: not mine"):
        moved.push((2,))
