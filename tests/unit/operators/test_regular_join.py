from __future__ import annotations

import datetime as dt
import itertools
import random
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

import headwater as hw
from headwater.data.batch import MIN_TIMESTAMP, Batch
from headwater.data.schema import Schema
from headwater.operators.contract import StepTime, TwoInputs
from headwater.operators.join import contents, run, store
from headwater.operators.join import keys as keys_module
from headwater.plan.plan import plan_job
from headwater.task.host import LevelHost
from headwater.testing import Harness

INPUTS = {"left": "k string, v long, row_kind string", "right": "k string, w long, row_kind string"}
PLAIN = {"left": "k string, v long", "right": "k string, w long"}
HOWS = ("inner", "left", "right", "full")
OTHER = {"left": "right", "right": "left"}


def joined(how: str, *, ttl: Any = None, by_function: bool = False) -> Any:
    def build(left: hw.Stream, right: hw.Stream) -> hw.Stream:
        key: Any = (lambda row: row.k) if by_function else "k"
        dtype = "string" if by_function else None
        left, right = (s.as_changelog() if "row_kind" in s.schema.names else s for s in (left, right))
        return left.key_by(key, type=dtype).join_regular(right.key_by(key, type=dtype), how=how, ttl=ttl)

    return build


class Naive:
    """The same, row by row, over lists: what Flink's operator does, with rows of any age but what `ttl` takes."""

    def __init__(self, how: str, ttl: tuple[int | None, int | None] = (None, None)) -> None:
        self.outer = {"left": how in ("left", "full"), "right": how in ("right", "full")}
        self.ttls, self.now = dict(zip(("left", "right"), ttl, strict=True)), 0
        self.kept: dict[str, list[list[Any]]] = {"left": [], "right": []}
        """Rows: key, value, when they came, whether they are in the result padded."""

    def advance(self, now: int) -> None:
        self.now = max(now, self.now)
        for side, ttl in self.ttls.items():
            if ttl is not None:
                self.kept[side] = [row for row in self.kept[side] if row[2] + ttl > self.now]

    def push(self, side: str, key: str | None, value: int, kind: str) -> list[Any]:
        others = [row for row in self.kept[OTHER[side]] if row[0] == key and key is not None]
        outer, other_outer = self.outer[side], self.outer[OTHER[side]]
        told: list[Any] = []

        def tell(own: Any, other: Any, kind: str) -> None:
            v, w = (own, other) if side == "left" else (other, own)
            told.append((key, v, w, kind))

        if kind in ("+I", "+U"):
            if not others and outer:
                tell(value, None, "+I")
            for other in others:
                if other_outer and other[3]:
                    tell(None, other[1], "-D")
                    other[3] = False
                tell(value, other[1], "+I" if outer or other_outer else kind)
            if key is not None or outer:
                self.kept[side].append([key, value, self.now, outer and not others])
            return told
        found = next((row for row in self.kept[side] if row[:2] == [key, value]), None)
        if found is None:
            return []
        self.kept[side].remove(found)
        if found[3]:
            tell(value, None, "-D")
        is_last = not any(row[0] == key for row in self.kept[side])
        for other in others:
            tell(value, other[1], "-D" if outer else kind)
            if other_outer and is_last and not other[3]:
                tell(None, other[1], "+I")
                other[3] = True
        return told


keys = st.sampled_from(["a", "b", "c", None])
sides = st.sampled_from(["left", "right"])
kinds = st.sampled_from(["+I", "+I", "+I", "+U", "-U", "-D", "-D"])
rows = st.tuples(st.just("row"), sides, keys, st.integers(0, 2), kinds)
scripts = st.lists(st.one_of(rows, rows, st.tuples(st.just("clock"), st.integers(0, 40))), max_size=40)
hows = st.sampled_from(HOWS)
ttls = st.sampled_from([(None, None), (10, 10), (10, 20), (None, 10)])


def shown(row: Any, *, by_function: bool = False) -> Any:
    """Key, both values and kind; of a key that is a function's result, both columns are shown."""
    key = row.k if not by_function else next((k for k in (row.k, row.k_right) if k is not None), None)
    return key, row.v, row.w, getattr(row, "row_kind", "+I")


def apply(result: Counter[Any], told: list[Any]) -> None:
    """Do to a table what a changelog says; what is taken back must be there."""
    for *values, kind in told:
        result[tuple(values)] += 1 if kind[0] == "+" else -1
        assert result[tuple(values)] >= 0


@examples(250)
@given(script=scripts, how=hows, ttl=ttls, by_function=st.booleans(), restore=st.integers(0, 40))
def test_row_by_row_it_tells_what_flink_tells(
    script: list[Any], how: str, ttl: tuple[int | None, int | None], by_function: bool, restore: int
) -> None:
    build = joined(how, ttl=tuple(one and f"{one} ms" for one in ttl), by_function=by_function)
    harness, naive = Harness(build, INPUTS), Naive(how, ttl)
    result: Counter[Any] = Counter()
    for number, action in enumerate(script):
        if number == restore:
            harness = Harness.restore(build, INPUTS, harness.snapshot())
        if action[0] == "clock":
            naive.advance(action[1])
            harness.advance_to(action[1])
            assert harness.take() == []
        else:
            _, side, key, value, kind = action
            expected = naive.push(side, key, value, kind)
            harness.push((key, value, kind), at=number, to=side)
            told = harness.take()
            assert [shown(row, by_function=by_function) for row in told] == expected
            assert {row.timestamp for row in told} <= {number}
            apply(result, expected)
        kept = {side: len(rows) for side, rows in naive.kept.items() if rows}
        assert harness.state_sizes() == ({"join_regular": kept} if kept else {})


@examples(200)
@given(script=scripts, how=hows, ttl=ttls, size=st.integers(1, 12))
def test_the_result_does_not_depend_on_epochs_or_copies_of_state(
    script: list[Any], how: str, ttl: tuple[int | None, int | None], size: int
) -> None:
    build = joined(how, ttl=tuple(one and f"{one} ms" for one in ttl))
    harness, naive = Harness(build, INPUTS, parallelism=2), Naive(how, ttl)
    result: Counter[Any] = Counter()
    expected: Counter[Any] = Counter()
    for kind, group in itertools.groupby(script, lambda action: action[0]):
        acts = list(group)
        for start in range(0, len(acts), size):
            part = acts[start : start + size]
            for side in OTHER:
                given = [(key, value, k) for _, s, key, value, k in part if s == side] if kind == "row" else []
                for row in given:
                    apply(expected, naive.push(side, *row))
                if given:
                    harness.push_all(given, to=side)
            if kind == "clock":
                naive.advance(max(now for _, now in part))
                harness.advance_to(max(now for _, now in part))
            apply(result, [shown(row) for row in harness.take()])
            assert +result == +expected
            harness = Harness.restore(build, INPUTS, harness.snapshot(), parallelism=2)


def test_what_comes_and_goes_in_an_epoch_is_not_told() -> None:
    harness = Harness(joined("full"), INPUTS)
    harness.push(("a", 1, "+I"), to="left")
    harness.take()
    harness.push_all([("a", 5, "+I"), ("a", 6, "+I"), ("a", 5, "-D"), ("b", 7, "+I"), ("a", 6, "-U")], to="right")
    assert [shown(row) for row in harness.take()] == [("b", None, 7, "+I")]
    assert harness.state_sizes() == {"join_regular": {"left": 1, "right": 1}}


def test_a_row_that_takes_back_nothing_is_dropped_and_counted() -> None:
    env = hw.Environment("test", engine="local")
    left = env.from_rows([("a", 1)], PLAIN["left"], name="l")
    changes = [("a", 5, "-D"), ("a", 5, "+I"), ("a", 5, "-D"), ("a", 5, "-U"), ("a", 6, "+I")]
    right = env.from_rows(changes, INPUTS["right"], name="r")
    sink = hw.connectors.memory()
    left.key_by("k").join_regular(right.as_changelog().key_by("k")).sink(sink)
    job = env.run()
    assert [tuple(row) for row in sink.rows] == [("a", 1, 6, "+I")]
    assert job.status().steps["join_regular"]["late_dropped"] == 2


def test_of_equal_rows_the_oldest_goes() -> None:
    harness = Harness(joined("inner", ttl="10 ms"), INPUTS)
    harness.push(("a", 1, "+I"), to="left")
    harness.advance_to(5)
    harness.push(("a", 1, "+I"), to="left")
    harness.push(("a", 1, "-D"), to="left")
    harness.advance_to(12)
    assert harness.state_sizes() == {"join_regular": {"left": 1}}
    harness.push(("a", 9, "+I"), to="right")
    assert [shown(row) for row in harness.take()] == [("a", 1, 9, "+I")]


def test_a_row_whose_matches_have_all_expired_is_taken_back_without_its_padded_row() -> None:
    """It was never in the result. Flink deletes it."""
    harness = Harness(joined("left", ttl="10 ms"), INPUTS)
    harness.push(("a", 9, "+I"), to="right")
    harness.advance_to(5)
    harness.push(("a", 1, "+I"), to="left")
    assert [shown(row) for row in harness.take()] == [("a", 1, 9, "+I")]
    harness.advance_to(10)
    harness.push(("a", 1, "-D"), to="left")
    assert harness.take() == []
    harness.push(("a", 2, "+I"), to="left")
    assert [shown(row) for row in harness.take()] == [("a", 2, None, "+I")]


NAN, DAY, CENT = float("nan"), dt.date(2024, 1, 2), Decimal("1.50")
ANY_TYPE = (
    "k int, f float, d double, l array<string>, m map<string,array<double>>, s struct<a:int,b:array<int>>, "
    "n decimal(5,2), t date, y binary, u boolean"
)
DISTINCT: list[tuple[Any, ...]] = [
    (1, NAN, 0.0, ["a", None], {"x": [1.5, NAN]}, {"a": 1, "b": [1]}, CENT, DAY, b"x", True),
    (1, NAN, 0.0, ["a", None], {"x": [1.5]}, {"a": 1, "b": [1]}, CENT, DAY, b"x", True),
    (1, 1.0, NAN, [None, "a"], {}, {"a": None, "b": []}, None, None, b"", None),
    (1, 1.0, NAN, [None, "a"], None, None, None, None, None, None),
    (1, None, None, None, None, {"a": None, "b": None}, None, None, None, None),
    (1, None, None, [], None, {"a": None, "b": None}, None, None, None, None),
]


def test_rows_are_told_apart_and_found_again_whatever_their_columns() -> None:
    inputs = {"left": f"{ANY_TYPE}, row_kind string", "right": "k int, w int"}
    harness = Harness(lambda a, b: a.as_changelog().key_by("k").join_regular(b.key_by("k"), how="left"), inputs)

    def push(kind: str, *numbers: int) -> int:
        harness.push_all([(*DISTINCT[number], kind) for number in numbers], to="left")
        return harness.state_sizes()["join_regular"]["left"]

    assert [push("+I", number) for number in range(6)] == [1, 2, 3, 4, 5, 6]
    assert push("+I", 0, 1, 2, 3, 4, 5) == 12
    assert push("-D", 5, 0, 3) == 9
    assert push("-D", 4, 1) == 7
    assert push("-D", 2, 2, 2) == 5
    assert push("-D", 0, 1, 4, 5) == 1
    assert push("-D", 0, 1, 2, 4, 5) == 1


def test_rows_whose_hashes_are_equal_by_chance_are_not_mixed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def alike(values: Any) -> Any:
        return np.zeros(len(values), np.uint64)

    monkeypatch.setattr(keys_module, "hash_columns", lambda arrays: alike(arrays[0]))
    for module in (contents, run, store):
        monkeypatch.setattr(module, "hash_rows", alike)
    dice = random.Random(7)
    for how in HOWS:
        harness, naive = Harness(joined(how), INPUTS), Naive(how)
        for _ in range(150):
            side, key = dice.choice(("left", "right")), dice.choice(("a", "b", "c"))
            value, kind = dice.randrange(3), dice.choice(("+I", "+I", "-D"))
            harness.push((key, value, kind), to=side)
            assert [shown(row) for row in harness.take()] == naive.push(side, key, value, kind)


def test_a_join_of_joins_is_the_join_of_all() -> None:
    """Orders with their users, and those with the countries of the users, under changes of everything."""
    inputs = {
        "orders": "order long, user string, row_kind string",
        "users": "user string, country string, row_kind string",
        "countries": "country string, tax long, row_kind string",
    }

    def build(orders: hw.Stream, users: hw.Stream, countries: hw.Stream) -> hw.Stream:
        orders, users, countries = (stream.as_changelog() for stream in (orders, users, countries))
        first = orders.key_by("user").join_regular(users.key_by("user"), how="left", name="first")
        return first.key_by("country").join_regular(countries.key_by("country"), how="full", name="second")

    def direct(tables: dict[str, Counter[Any]]) -> Counter[Any]:
        found: Counter[Any] = Counter()
        taxed: set[Any] = set()
        for order, user in tables["orders"].elements():
            homes = [home for name, home in tables["users"].elements() if name == user] or [None]
            for home in homes:
                taxes = [tax for country, tax in tables["countries"].elements() if country == home]
                taxed |= {home} if taxes else set()
                for tax in taxes or [None]:
                    found[order, user, home, tax] += 1
        for country, tax in tables["countries"].elements():
            if country not in taxed:
                found[None, None, country, tax] += 1
        return found

    changes: dict[str, list[Any]] = {
        "orders": [(1, "ann"), (2, "ann"), (3, "bob"), (4, None)],
        "users": [("ann", "nl"), ("bob", "de"), ("ann", "be")],
        "countries": [("nl", 21), ("be", 21), ("fr", 20)],
    }
    steps = [(name, row, "+I") for name in ("countries", "orders", "users") for row in changes[name]]
    steps += [(name, row, "-D") for name in ("users", "countries", "orders") for row in changes[name][:2]]
    steps += [("users", ("ann", "nl"), "+I"), ("orders", (1, "ann"), "+I"), ("countries", ("nl", 9), "+I")]
    for size in (1, 2, 5):
        harness = Harness(build, inputs, parallelism=2)
        tables: dict[str, Counter[Any]] = {name: Counter() for name in inputs}
        result: Counter[Any] = Counter()
        for start in range(0, len(steps), size):
            for name, group in itertools.groupby(steps[start : start + size], lambda step: step[0]):
                acts = list(group)
                apply(tables[name], [(*row, kind) for _, row, kind in acts])
                harness.push_all([(*row, kind) for _, row, kind in acts], to=name)
            apply(result, [(r.order, r.user, r.country, r.tax, r.row_kind) for r in harness.take()])
            assert +result == direct(tables)


def test_columns_of_both_sides_are_shown_and_may_be_null_where_padded() -> None:
    env = hw.Environment("test", engine="local")
    left = env.from_rows([], "k string not null, v long not null", name="l").key_by("k")
    right = env.from_rows([], "k string not null, v long not null", name="r").key_by("k")
    assert {how: left.join_regular(right, how=how, name=how).schema.ddl() for how in HOWS} == {
        "inner": "k string not null, v bigint not null, v_right bigint not null",
        "left": "k string not null, v bigint not null, v_right bigint",
        "right": "k string, v bigint, v_right bigint not null",
        "full": "k string, v bigint, v_right bigint",
    }


def test_wrong_use_is_refused_when_the_graph_is_built() -> None:
    env = hw.Environment("test", engine="local")
    left, right = env.from_rows([], "k string, v long", name="l"), env.from_rows([], "k string, v long", name="r")
    numbered = env.from_rows([], "k string, row_kind int", name="n")
    a, b = left.key_by("k"), right.key_by("k")
    kinds = left.select("k", "v", "'+I' as row_kind").key_by("k")
    cases: list[tuple[str, Any]] = [
        ("needs both streams keyed", lambda: a.join_regular(right)),  # type: ignore[arg-type]
        ("keys of one type", lambda: a.join_regular(right.key_by("v"))),
        ("joins by how='inner' or 'left' or 'right' or 'full'; got 'outer'", lambda: a.join_regular(b, how="outer")),
        ("ttl of more than nothing", lambda: a.join_regular(b, ttl="0 s")),
        ("does not read a column 'row_kind' as what rows do.*call .as_changelog", lambda: a.join_regular(kinds)),
        ("reads the column 'row_kind', a string, .*got 'int'", numbered.as_changelog),
    ]
    for message, call in cases:
        with pytest.raises(hw.GraphError, match=message):
            call()


@pytest.mark.parametrize("kind", ["insert", None])
def test_a_row_of_no_kind_is_an_error(kind: str | None) -> None:
    harness = Harness(joined("inner"), INPUTS)
    with pytest.raises(hw.RowError, match=r"step 'as_changelog(-2)?', field 'row_kind': value .* does not fit \+I, -U"):
        harness.push(("a", 1, kind), to="left")


@pytest.mark.parametrize("how", ["right", "full"])
def test_keys_of_different_names_are_each_shown(how: str) -> None:
    env = hw.Environment("joined", engine="local")
    left = env.from_rows([("a", 1)], "k string, v long", name="left")
    right = env.from_rows([("a", 2), ("b", 3)], "id string, w long", name="right")
    found = left.join_regular(right, on={"k": "id"}, how=how).collect()
    net = Counter[Any]()
    for row in found:
        net[row[:4]] += 1 if row.row_kind in ("+I", "+U") else -1
    assert {row for row, count in net.items() if count} == {("a", 1, "a", 2), (None, None, "b", 3)}


# -- cost -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", HOWS)
def test_pairs_of_a_hot_key_come_out_in_parts(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "CHUNK_PAIRS", 100)
    schema = Schema.of("k bigint, v bigint")
    env = hw.Environment("hot", engine="local", parallelism=1)
    left, right = (env.from_rows([], schema, name=name).key_by("k") for name in ("left", "right"))
    left.join_regular(right, how=how).sink(hw.connectors.memory())
    (entry,) = LevelHost(plan_job(env.graph, 1, 128), 1, 0)._entries
    operator: Any = entry.operator
    emitted: list[int] = []

    def rows(count: int) -> Batch:
        table = pa.table({"k": np.zeros(count, np.int64), "v": np.arange(count)}).cast(schema.arrow)
        return Batch(table, np.zeros(count, np.int64))

    def emit(_: str | None, batch: Batch) -> None:
        emitted.append(len(batch))

    time = StepTime(MIN_TIMESTAMP, 0)
    operator.process_two(TwoInputs(rows(30), None), time, emit)
    emitted.clear()
    operator.process_two(TwoInputs(None, rows(50)), time, emit)
    assert sum(emitted) >= 30 * 50
    assert max(emitted) <= 100 + 30, "beside pairs, padded rows that they take back"
