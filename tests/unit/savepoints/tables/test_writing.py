"""Savepoints made of tables: programs start with state they never computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.parts.halves import run_epochs

import headwater as hw

SCHEMA = "k string, n bigint"
OUT = "k string, what string"


class Everything(hw.KeyedProcessFunction):
    """Tells all that is known of a key."""

    total = hw.ValueState("bigint", default=0)
    seen = hw.ListState("int")
    by_day = hw.MapState("date", "struct<n: bigint, tag: string>")
    most = hw.ReducingState("bigint", reduce=max)

    def process(self, event: Any, ctx: hw.Context) -> Any:
        self.total.set(self.total.get() + event.n)
        self.seen.add(event.n)
        self.most.add(event.n)
        yield ctx.key, f"{self.total.get()} {self.seen.get()} {self.most.get()} {len(self.by_day.keys())}"

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Any:
        yield ctx.key, f"{timer.domain} timer {timer.timestamp}"


AB = [("a", 1), ("b", 1)]


def job(sink: Any, rows: list[Any] = AB, parallelism: int = 2) -> hw.Environment:
    env = hw.Environment("bootstrapped", engine="local", parallelism=parallelism)
    env.from_rows(rows, SCHEMA).key_by("k").process(Everything(), OUT).with_uid("step").sink(sink)
    return env


def run_from(tmp_path: Path, tables: dict[Any, Any], parallelism: int = 2, **start: Any) -> list[Any]:
    sink = hw.connectors.memory()
    hw.savepoint.write(tmp_path / "sp", job(sink), tables)
    job(sink, parallelism=parallelism).run(from_=tmp_path / "sp", **start)
    return sorted(map(tuple, sink.rows))


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_batch_of_rows_becomes_state(tmp_path: Path, parallelism: int) -> None:
    totals = [{"key": key, "value": n * 100} for n, key in enumerate("abcdefgh")]
    seen = [{"key": "a", "value": 7}, {"key": "b", "value": 8}, {"key": "a", "value": 9}]
    timers = [{"key": "c", "timestamp": 50}, {"key": "a", "timestamp": 40}]
    tables = {
        ("step", "total"): totals,
        ("step", "seen"): seen,
        ("step", "@timers.event"): timers,
        ("step", "most"): [{"key": "b", "value": 99}],
    }
    assert run_from(tmp_path, tables, parallelism) == [
        ("a", "1 [7, 9, 1] 1 0"),
        ("a", "event timer 40"),
        ("b", "101 [8, 1] 99 0"),
        ("c", "event timer 50"),
    ]


def test_arrow_pandas_and_whatever_gives_arrow_are_taken(tmp_path: Path) -> None:
    class Frame:
        def __init__(self, table: pa.Table) -> None:
            self.table = table

        def toArrow(self) -> pa.Table:  # noqa: N802  as Spark calls it
            return self.table

    plain = pa.table({"key": ["a", "b"], "value": [5, 6]})
    odd = pa.table(
        {
            "value": pa.array([5, 6], pa.int16()),
            "key": pa.array(["a", "b"], pa.large_string()).dictionary_encode(),
        }
    )
    expected = [("a", "6 [1] 1 0"), ("b", "7 [1] 1 0")]
    for number, given in enumerate([plain, plain.to_batches()[0], Frame(plain), plain.to_pandas(), odd]):
        assert run_from(tmp_path / str(number), {("step", "total"): given}) == expected


def test_what_was_read_can_be_written(tmp_path: Path) -> None:
    first, again = hw.connectors.memory(), hw.connectors.memory()
    path = run_epochs(job(first, [("a", 1), ("b", 2), ("a", 3)]), 1).savepoint(tmp_path / "sp")
    saved = hw.savepoint.read(path)
    hw.savepoint.write(tmp_path / "copy", job(again), {place: saved[place] for place in saved})
    copy = hw.savepoint.read(tmp_path / "copy")
    assert list(copy) == list(saved)
    for place in saved:
        assert saved[place].to_arrow() == copy[place].to_arrow()


def test_a_savepoint_is_changed_and_all_else_stays(tmp_path: Path) -> None:
    env = job(hw.connectors.memory(), [("a", 1), ("b", 2)])
    path = run_epochs(env, 1).savepoint(tmp_path / "sp")
    fixed = [{"key": "a", "value": 1000}]
    changed = hw.savepoint.write(tmp_path / "fixed", job(hw.connectors.memory()), {("step", "total"): fixed}, base=path)
    assert (changed.job, changed.epoch, changed.positions) == ("bootstrapped", 0, {"rows": {"0": 2}})
    assert changed["step", "total"].to_arrow().to_pylist() == fixed
    assert changed["step", "seen"].rows == 2
    sink = hw.connectors.memory()
    job(sink, [("a", 1), ("b", 2), ("a", 5), ("b", 5)]).run(from_=tmp_path / "fixed")
    assert sorted(map(tuple, sink.rows)) == [("a", "1005 [1, 5] 5 0"), ("b", "5 [2, 5] 5 0")]


def test_positions_say_where_sources_go_on(tmp_path: Path) -> None:
    sink = hw.connectors.memory()
    env = job(sink, [("a", 1), ("a", 10), ("a", 100)])
    written = hw.savepoint.write(tmp_path / "sp", env, {}, positions={"rows": {"0": 2}})
    assert written.positions == {"rows": {"0": 2}}
    env.run(from_=tmp_path / "sp")
    assert [tuple(row) for row in sink.rows] == [("a", "100 [100] 100 0")]
    back = hw.savepoint.write(tmp_path / "back", env, {}, base=tmp_path / "sp", positions={"rows": {"0": 1}})
    assert back.positions == {"rows": {"0": 1}}


@pytest.mark.parametrize(
    ("positions", "why"),
    [
        ({"row": {"0": 1}}, "positions for source 'row' do not fit: there is no such source; .*which has rows"),
        ({"rows": {"0": -1}}, "'0': -1 is no position"),
        ({"rows": {0: 1}}, "0: 1 is no position"),
        ({"rows": {"0": 1.5}}, "'0': 1.5 is no position"),
    ],
)
def test_positions_that_cannot_be_are_refused(tmp_path: Path, positions: Any, why: str) -> None:
    with pytest.raises(hw.SavepointError, match=why):
        hw.savepoint.write(tmp_path / "sp", job(hw.connectors.memory()), {}, positions=positions)


@pytest.mark.parametrize(
    ("place", "given", "why"),
    [
        (("step", "sum"), [], "job 'bootstrapped' has no state 'sum' of a step 'step'; it has step/total, step/seen"),
        (("stop", "total"), [], "has no state 'total' of a step 'stop'"),
        (("step", "@channels"), [], "has no state '@channels'"),
        (("step", "total"), [{"key": "a"}], "row .* lacks value; .*has the columns key string, value bigint"),
        (("step", "total"), pa.table({"key": ["a"]}), "it has the columns key; the state has the columns key string"),
        (("step", "total"), [{"key": "a", "value": 1, "x": 2}], "has unknown x"),
        (("step", "total"), pa.table({"key": ["a"], "value": [1], "x": [1]}), "it has the columns key, value, x"),
        (("step", "total"), pa.table({"key": ["a"], "value": [1.5]}), "value was double, is bigint"),
        (("step", "total"), pa.table({"key": [1], "value": [1]}), "key was bigint, is string"),
        (("step", "total"), [{"key": "a", "value": "x"}], "value 'x' does not fit int64"),
        (("step", "total"), [{"key": "a", "value": None}], "column value is null in {'key': 'a', 'value': None}"),
        (("step", "total"), [{"key": "a", "value": 1}] * 2, "key 'a' is there 2 times; give one row for each"),
        (("step", "seen"), [{"key": "a", "index": 0, "value": 1}] * 2, "key 'a', index 0 is there 2 times"),
        (("step", "@timers.event"), [{"key": "a", "timestamp": 1}] * 3, "key 'a', timestamp 1 is there 3 times"),
        (("step", "seen"), pa.table({"key": ["a"], "value": [1]}), "value was bigint, is int"),
        (("step", "total"), "rows", "it is a str; give an Arrow table, a DataFrame, or a list of dicts"),
        (("step", "total"), [("a", 1)], "it is a list; give an Arrow table, a DataFrame, or a list of dicts"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(tmp_path: Path, place: Any, given: Any, why: str) -> None:
    with pytest.raises(hw.SavepointError, match=why):
        hw.savepoint.write(tmp_path / "sp", job(hw.connectors.memory()), {place: given})
    assert not (tmp_path / "sp").exists()


def test_the_order_of_a_list_is_that_of_its_index(tmp_path: Path) -> None:
    seen = [{"key": "a", "index": index, "value": index * 10} for index in (2, 0, 1)]
    assert run_from(tmp_path, {("step", "seen"): seen})[0] == ("a", "1 [0, 10, 20, 1] 1 0")


def test_fields_that_are_missing_are_null(tmp_path: Path) -> None:
    days = pa.table(
        {
            "key": ["a"],
            "entry": pa.array([0], pa.date32()),
            "value": pa.array([{"n": 5}], pa.struct([("n", pa.int32())])),
        }
    )
    sink = hw.connectors.memory()
    saved = hw.savepoint.write(tmp_path / "sp", job(sink), {("step", "by_day"): days})
    assert saved["step", "by_day"].to_arrow()["value"].to_pylist() == [{"n": 5, "tag": None}]


# -- state without keys, and state of the library's own steps -----------------------------------------------------------


class Rules(hw.KeyedBroadcastFunction):
    def process_broadcast(self, row: Any, ctx: hw.BroadcastContext) -> None:
        ctx.broadcast_state("rules").put(row.k, row.n)

    def process(self, row: Any, ctx: hw.BroadcastContext) -> Any:
        yield ctx.key, str(ctx.broadcast_state("rules").items())


class Held(hw.ProcessFunction):
    held = hw.OperatorListState("bigint")
    union = hw.UnionListState("bigint")

    def process(self, event: Any, ctx: hw.Context) -> Any:
        yield event.k, f"{sorted(self.held.get())} {sorted(self.union.get())}"


@pytest.mark.parametrize("parallelism", [1, 3])
def test_broadcast_and_operator_state_need_no_key(tmp_path: Path, parallelism: int) -> None:
    def env(rules: Any, held: Any, parallelism: int) -> hw.Environment:
        env = hw.Environment("without", engine="local", parallelism=parallelism)
        rows = env.from_rows([("a", 1), ("b", 2), ("c", 3)], SCHEMA)
        broadcast = env.from_rows([], SCHEMA, name="rules").broadcast(hw.MapState("rules", "string", "bigint"))
        rows.key_by("k").connect(broadcast).process(Rules(), OUT).with_uid("rules-step").sink(rules)
        rows.global_().process(Held(), OUT).with_uid("held-step").sink(held)
        return env

    rules, held = hw.connectors.memory(), hw.connectors.memory()
    tables = {
        ("rules-step", "rules"): [{"entry": "x", "value": 1}, {"entry": "y", "value": 2}],
        ("held-step", "held"): [{"value": 5}, {"value": 6}],
        ("held-step", "union"): [{"value": 7}, {"value": 8}],
    }
    saved = hw.savepoint.write(tmp_path / "sp", env(rules, held, 2), tables)
    assert saved["rules-step", "rules"].to_arrow().column_names == ["entry", "value"]
    env(rules, held, parallelism).run(from_=tmp_path / "sp")
    assert {row.what for row in rules.rows} == {"[('x', 1), ('y', 2)]"}
    (of_first,) = {row.what for row in held.rows}
    assert of_first.endswith("[7, 8]")
    if parallelism == 1:
        assert of_first == "[5, 6] [7, 8]"


def windowed(sink: Any, **settings: Any) -> hw.Environment:
    rows = [("a", 1, 100), ("b", 2, 200), ("a", 3, 2500)]
    env = hw.Environment("windowed", engine="local", **settings)
    keyed = env.from_rows(rows, "k string, n bigint, at bigint", hw.Watermarks.monotonous("at")).key_by("k")
    sums = keyed.window(hw.tumbling("1 s")).agg(total=hw.sum("n")).with_uid("sums")
    sums.union(keyed.window(hw.session("5 s")).agg(total=hw.sum("n")).with_uid("sessions")).sink(sink)
    return env


def test_windows_and_their_sums_can_be_corrected(tmp_path: Path) -> None:
    path = run_epochs(windowed(hw.connectors.memory(), max_rows_per_epoch=2), 1).savepoint(tmp_path / "half")
    slices = hw.savepoint.read(path)["sums", "slices"].to_arrow()
    assert slices.column_names == ["@slice", "@run", "k", "total.sum"]
    more = slices.set_column(3, slices.schema.field(3), pa.array([n + 50 for n in slices["total.sum"].to_pylist()]))
    found = hw.connectors.memory()
    hw.savepoint.write(tmp_path / "more", windowed(found), {("sums", "slices"): more}, base=path)
    windowed(found).run(from_=tmp_path / "more")
    assert sorted((row.k, row.total) for row in found.rows) == [("a", 3), ("a", 4), ("a", 51), ("b", 2), ("b", 52)]


def test_two_sums_for_one_slice_and_key_are_refused(tmp_path: Path) -> None:
    row = {"@slice": 0, "@run": 0, "k": "a", "total.sum": 1}
    env = windowed(hw.connectors.memory())
    hw.savepoint.write(tmp_path / "good", env, {("sums", "slices"): [row, {**row, "@slice": 1000}, {**row, "k": "b"}]})
    with pytest.raises(hw.SavepointError, match="@slice 0, @run 0, k 'a' is there 2 times"):
        hw.savepoint.write(tmp_path / "sp", env, {("sums", "slices"): [row, row]})


def test_columns_of_rows_may_be_called_as_those_of_states(tmp_path: Path) -> None:
    schema, rows = "key string, `index` bigint, entry string", [("a", 2, "x"), ("a", 1, "y")]

    def joined(sink: Any) -> hw.Environment:
        env = hw.Environment("joined", engine="local")
        left, right = (env.from_rows(rows, schema, name=name) for name in ("left", "right"))
        left.key_by("entry").join_regular(right.key_by("entry"), ttl="1 h").with_uid("joined").sink(sink)
        return env

    kept = [{"@id": n, "@time": 1 << 50, "@marked": False, "key": "a", "index": None, "entry": "x"} for n in (1, 0)]
    saved = hw.savepoint.write(tmp_path / "sp", joined(hw.connectors.memory()), {("joined", "left"): kept})
    assert saved["joined", "left"].to_arrow()["@id"].to_pylist() == [0, 1]
    sink = hw.connectors.memory()
    joined(sink).run(from_=tmp_path / "sp")
    assert [row.entry for row in sink.rows].count("x") == 3
    with pytest.raises(hw.SavepointError, match="@id 1 is there 2 times"):
        hw.savepoint.write(tmp_path / "twice", joined(sink), {("joined", "left"): [kept[0], kept[0]]})
