"""Lookup joins with tables in memory and with functions: what matches, what is cached, and what is refused."""

from __future__ import annotations

import datetime as dt
import pickle
from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

import headwater as hw
from headwater.graph.nodes import LookupJoinNode, lookup
from headwater.operators.lookup import key_index
from headwater.operators.lookup.key_index import KeyIndex
from headwater.streams.stream import Stream
from headwater.testing import Harness

ORDERS = "user long, amount long"
USERS = pa.table({"id": [1, 2, 2, None], "name": ["ann", "bob", "bo", "nobody"], "age": [30, 40, 50, 60]})


def stream_of(rows: list[Any], schema: str = ORDERS) -> Stream:
    return hw.Environment("lookup", engine="local").from_rows(rows, schema)


def plain(stream: Stream) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in stream.collect()]


ROWS = [(2, 10), (3, 20), (None, 30), (1, 40)]


def test_a_left_join_keeps_every_row_and_gives_a_row_for_each_match() -> None:
    joined = stream_of(ROWS).lookup_join(USERS, on={"user": "id"})
    assert joined.schema.ddl() == "user bigint, amount bigint, name string, age bigint"
    assert plain(joined) == [
        (2, 10, "bob", 40),
        (2, 10, "bo", 50),
        (3, 20, None, None),
        (None, 30, None, None),
        (1, 40, "ann", 30),
    ]


def test_an_inner_join_keeps_what_matches() -> None:
    joined = stream_of(ROWS).lookup_join(USERS, on={"user": "id"}, how="inner", columns=["age"])
    assert plain(joined) == [(2, 10, 40), (2, 10, 50), (1, 40, 30)]


def test_nothing_matches_an_empty_table() -> None:
    empty = USERS.slice(0, 0)
    assert plain(stream_of(ROWS[:1]).lookup_join(empty, on={"user": "id"})) == [(2, 10, None, None)]
    assert plain(stream_of(ROWS[:1]).lookup_join(empty, on={"user": "id"}, how="inner")) == []


def test_rows_keep_their_time() -> None:
    with Harness(lambda s: s.lookup_join(USERS, on={"user": "id"}, columns=["name"]), ORDERS) as harness:
        harness.push((2, 10), at=5)
        harness.push((9, 10), at=6)
        assert [(row.name, row.timestamp) for row in harness.take()] == [("bob", 5), ("bo", 5), (None, 6)]


def test_a_column_that_is_there_already_gets_the_suffix() -> None:
    table = pa.table({"user": [1], "amount": ["x"], "amount_right": [True]})
    joined = stream_of([(1, 5)]).lookup_join(table, on="user", suffix="_of_user")
    assert joined.collect()[0]._asdict() == {"user": 1, "amount": 5, "amount_of_user": "x", "amount_right": True}
    with pytest.raises(hw.GraphError, match="two columns of one name; got 'amount_right'; choose another suffix="):
        stream_of([]).lookup_join(table, on="user")


def test_columns_that_must_not_be_null_may_be_null_where_nothing_matches() -> None:
    table = pa.table(
        {"user": [1], "name": ["a"]}, schema=pa.schema([("user", pa.int64()), pa.field("name", "str", False)])
    )
    assert stream_of([]).lookup_join(table, on="user").schema.field("name").nullable
    assert not stream_of([]).lookup_join(table, on="user", how="inner").schema.field("name").nullable


class SparkLike:
    """What is asked of a static DataFrame of Spark's."""

    isStreaming = False  # noqa: N815

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def toArrow(self) -> pa.Table:  # noqa: N802
        return self._table


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.to_batches()[0], lambda t: t.to_pandas(), SparkLike])
def test_a_table_in_memory_may_be_of_any_kind(make: Any) -> None:
    table = make(pa.table({"user": [1, 2], "name": ["ann", None]}))
    assert plain(stream_of([(2, 10), (1, 20)]).lookup_join(table, on="user")) == [(2, 10, None), (1, 20, "ann")]


def test_the_index_of_a_frame_is_a_column_if_it_has_a_name() -> None:
    frame = pd.DataFrame({"user": [1, 2, 3], "name": ["x", "y", "z"]})
    assert plain(stream_of([(3, 1)]).lookup_join(frame[frame.user > 1], on="user")) == [(3, 1, "z")]
    assert plain(stream_of([(3, 1)]).lookup_join(frame.set_index("user"), on="user")) == [(3, 1, "z")]


MOMENT = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
TYPED = {
    "string": ["a", "b"],
    "int": [1, -2],
    "boolean": [True, False],
    "binary": [b"\0", b"\1"],
    "date": [MOMENT.date(), dt.date(1969, 1, 1)],
    "timestamp": [MOMENT, MOMENT + dt.timedelta(microseconds=1)],
    "decimal(10,2)": [Decimal("1.50"), Decimal("-1.50")],
    "struct<a:int,b:string>": [(1, "x"), (1, "y")],
}


@pytest.mark.parametrize("dtype", TYPED)
@pytest.mark.parametrize("kind", ["table", "function"])
def test_keys_and_values_of_any_type(dtype: str, kind: str) -> None:
    one, other = TYPED[dtype]
    arrow = hw.Schema.of(f"k {dtype}, v {dtype}").arrow
    table = pa.table(
        [pa.array([one, other], arrow.field(0).type), pa.array([other, one], arrow.field(1).type)], schema=arrow
    )
    stream = stream_of([(other,), (None,), (one,)], f"k {dtype}")
    if kind == "table":
        joined = stream.lookup_join(table, on="k")
    else:
        joined = stream.lookup_join(lambda keys: {one: (other,), other: (one,)}, on="k", schema=f"v {dtype}")
    assert plain(joined) == [(other, one), (None, None), (one, other)]


def test_a_struct_with_a_null_in_it_is_a_null_key() -> None:
    table = pa.table(
        {"k": pa.array([{"a": 1, "b": None}], pa.struct([("a", pa.int32()), ("b", pa.string())])), "v": [1]}
    )
    assert plain(stream_of([((1, None),)], "k struct<a:int,b:string>").lookup_join(table, on="k")) == [
        ((1, None), None)
    ]


def test_integers_of_any_width_are_compared_as_numbers() -> None:
    table = pa.table({"user": pa.array([1, 1 << 40], pa.int64()), "name": ["a", "b"]})
    assert plain(stream_of([(1,)], "user short").lookup_join(table, on="user")) == [(1, "a")]
    narrow = pa.table({"user": pa.array([1, 200], pa.uint8()), "name": ["a", "b"]})
    assert plain(stream_of([(200,), (1 << 40,)], "user long").lookup_join(narrow, on="user")) == [
        (200, "b"),
        (1 << 40, None),
    ]


def test_other_encodings_of_arrow_are_read() -> None:
    table = pa.table(
        {
            "k": pa.array(["a", "b"]).dictionary_encode(),
            "large": pa.array(["x", "y"], pa.large_string()),
            "at": pa.array([0, 1_000_000_000], pa.timestamp("ns", "Europe/Paris")),
            "many": pa.array([[1], []], pa.large_list(pa.uint16())),
            "map": pa.array([[("p", 1)], []], pa.map_(pa.large_string(), pa.int8())),
        }
    )
    joined = stream_of([("b",)], "k string").lookup_join(table, on="k")
    assert joined.schema.ddl() == "k string, large string, at timestamp, many array<int>, map map<string,tinyint>"
    assert plain(joined) == [("b", "y", dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC), [], {})]


def test_rows_with_the_hash_of_another_key_do_not_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "hash_columns", lambda arrays: np.zeros(len(arrays[0]), np.uint64))
    assert plain(stream_of(ROWS).lookup_join(USERS, on={"user": "id"}, how="inner", columns=["age"])) == [
        (2, 10, 40),
        (2, 10, 50),
        (1, 40, 30),
    ]


def test_an_index_is_built_once_and_not_for_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    init = KeyIndex.__init__
    monkeypatch.setattr(KeyIndex, "__init__", lambda self, *a: (built.append(1), init(self, *a))[1])
    with Harness(lambda s: s.lookup_join(USERS, on={"user": "id"}), ORDERS) as harness:
        for _ in range(5):
            harness.push((2, 1))
        assert len(harness.take()) == 10
    assert len(built) == 1


def test_of_a_slice_only_the_slice_travels() -> None:
    table = pa.table({"user": np.arange(100_000), "name": np.arange(100_000), "more": np.arange(100_000)})
    env = hw.Environment("travel", engine="local")
    env.from_rows([], ORDERS).lookup_join(table.slice(500, 10), on="user", columns=["name"])
    (node,) = (node for node in env.graph if isinstance(node, LookupJoinNode))
    assert len(pickle.dumps(node.right)) < 2000


# -- functions ------------------------------------------------------------------------------------------------------


class Asked:
    """A function over a dict that notes what it was asked for."""

    def __init__(self, known: Mapping[Any, Any]) -> None:
        self.known = known
        self.calls: list[list[Any]] = []

    def __call__(self, keys: list[Any]) -> Mapping[Any, Any]:
        self.calls.append(keys)
        return {key: self.known[key] for key in keys if key in self.known}


def test_a_function_is_asked_once_a_batch_for_each_key_once() -> None:
    asked = Asked({1: ("ann",), 2: [{"name": "bob"}, ("bo",)], 4: None, 5: []})
    rows = [(2, 10), (3, 20), (None, 30), (1, 40), (2, 50), (4, 60), (5, 70)]
    assert plain(stream_of(rows).lookup_join(asked, on="user", schema="name string")) == [
        (2, 10, "bob"),
        (2, 10, "bo"),
        (3, 20, None),
        (None, 30, None),
        (1, 40, "ann"),
        (2, 50, "bob"),
        (2, 50, "bo"),
        (4, 60, None),
        (5, 70, None),
    ]
    assert asked.calls == [[2, 3, 1, 4, 5]]


def test_a_function_gets_rows_where_there_are_several_key_columns() -> None:
    asked = Asked({(1, 10): ("x",)})
    joined = stream_of([(1, 10), (1, None), (10, 1)]).lookup_join(asked, on=["user", "amount"], schema="what string")
    assert plain(joined) == [(1, 10, "x"), (1, None, None), (10, 1, None)]
    (keys,) = asked.calls
    assert [key.user for key in keys] == [1, 10]


def test_a_function_is_not_asked_for_nothing() -> None:
    asked = Asked({})
    assert plain(stream_of([(None, 1)]).lookup_join(asked, on="user", schema="name string")) == [(None, 1, None)]
    assert asked.calls == []


def boom(keys: list[Any]) -> Any:
    raise ZeroDivisionError("boom")


@pytest.mark.parametrize(
    ("function", "kind", "problem"),
    [
        (boom, hw.UserCodeError, "step 'find' failed: ZeroDivisionError: boom"),
        (
            lambda keys: ["x"],
            hw.RowError,
            "step 'find': the function must return a dict of keys and their rows; got list",
        ),
        (lambda keys: {1: "ann"}, hw.RowError, "step 'find': expected a dict or tuple with name; got 'ann'"),
        (lambda keys: {1: (5,)}, hw.RowError, "step 'find', field 'name': value 5 does not fit string"),
    ],
)
def test_a_function_that_fails_is_told_with_its_step(function: Any, kind: type[Exception], problem: str) -> None:
    with pytest.raises(kind, match=problem):
        stream_of([(1, 1)]).lookup_join(function, on="user", schema="name string", name="find").collect()


def harness_of(asked: Asked, **settings: Any) -> Harness:
    return Harness(lambda s: s.lookup_join(asked, on="user", schema="name string", **settings), ORDERS)


def push(harness: Harness, *users: int) -> list[str | None]:
    for user in users:
        harness.push((user, 0))
    return [row.name for row in harness.take()]


def test_without_a_cache_every_batch_asks() -> None:
    asked = Asked({1: ("ann",)})
    with harness_of(asked) as harness:
        assert push(harness, 1, 1) == ["ann", "ann"]
    assert asked.calls == [[1], [1]]


def test_a_cache_keeps_misses_too() -> None:
    asked = Asked({1: ("ann",)})
    with harness_of(asked, cache=10) as harness:
        assert push(harness, 1, 9, 1, 9) == ["ann", None, "ann", None]
    assert asked.calls == [[1], [9]]


def test_the_key_that_was_used_longest_ago_leaves_a_full_cache() -> None:
    asked = Asked({n: (str(n),) for n in range(9)})
    with harness_of(asked, cache=2) as harness:
        assert push(harness, 1, 2, 1, 3, 1, 2) == ["1", "2", "1", "3", "1", "2"]
    assert asked.calls == [[1], [2], [3], [2]]


def test_more_keys_than_the_cache_holds_may_come_at_once() -> None:
    asked = Asked({n: (str(n),) for n in range(9)})
    env = hw.Environment("many", engine="local", max_rows_per_epoch=6)
    rows = [(n % 6, 0) for n in range(12)]
    joined = env.from_rows(rows, ORDERS).lookup_join(asked, on="user", schema="name string", cache=2)
    assert [row.name for row in joined.collect()] == [str(n % 6) for n in range(12)]
    assert asked.calls == [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3]]


def test_what_was_looked_up_ages_by_the_clock_of_the_epochs() -> None:
    known = {1: ("ann",)}
    asked = Asked(known)
    with harness_of(asked, cache=10, ttl="10 s") as harness:
        harness.advance_to(1_000)
        assert push(harness, 1, 2) == ["ann", None]
        known.update({1: ("anna",), 2: ("bob",)})
        harness.advance_to(10_999)
        assert push(harness, 1, 2) == ["ann", None]
        harness.advance_to(11_000)
        assert push(harness, 1, 2) == ["anna", "bob"]
    assert asked.calls == [[1], [2], [1], [2]]


def test_what_does_not_fit_is_not_kept() -> None:
    known: dict[Any, Any] = {1: (5,)}
    asked = Asked(known)
    with harness_of(asked, cache=10) as harness:
        with pytest.raises(hw.RowError):
            push(harness, 1)
        known[1] = ("ann",)
        assert push(harness, 1) == ["ann"]


# -- any data -------------------------------------------------------------------------------------------------------

KEYS = st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.one_of(st.none(), st.sampled_from(["", "a", "b"])))


@examples(50)
@given(
    left=st.lists(KEYS, max_size=12),
    right=st.lists(st.tuples(KEYS, st.one_of(st.none(), st.integers(0, 5))), max_size=12),
    how=st.sampled_from(["left", "inner"]),
    cache=st.sampled_from([None, 1, 3]),
    epoch=st.integers(1, 5),
)
def test_a_lookup_join_is_what_a_dict_gives(
    left: list[Any], right: list[Any], how: str, cache: int | None, epoch: int
) -> None:
    known = defaultdict(list)
    for key, value in right:
        if None not in key:
            known[key].append((value,))
    expected = [
        (*key, value[0])
        for key in left
        for value in (known[key] if None not in key else []) or ([(None,)] if how == "left" else [])
    ]
    schema = hw.Schema.of("a long, b string, v long").arrow
    table = pa.Table.from_pylist([{"a": k[0], "b": k[1], "v": v} for k, v in right], schema)

    def stream() -> Stream:
        env = hw.Environment("any", engine="local", max_rows_per_epoch=epoch)
        return env.from_rows(left, "a long, b string")

    assert plain(stream().lookup_join(table, on=["a", "b"], how=how)) == expected
    find = stream().lookup_join(
        lambda keys: {key: known[tuple(key)] for key in keys}, on=["a", "b"], how=how, schema="v long", cache=cache
    )
    assert plain(find) == expected


# -- what is refused ------------------------------------------------------------------------------------------------


class Streaming(SparkLike):
    isStreaming = True  # noqa: N815


def find(keys: list[Any]) -> dict[Any, Any]:
    return {}


@pytest.mark.parametrize(
    ("table", "arguments", "problem"),
    [
        (
            5,
            {"on": "user"},
            "needs a pyarrow Table, a DataFrame, a hw.connectors.PostgresTable or a function; got 'int'",
        ),
        (Streaming(USERS), {"on": "user"}, "a table that stands still; got 'a streaming DataFrame'; pass a static one"),
        (USERS, {"on": {}}, "needs columns to join on"),
        (USERS, {"on": {"user": 1}}, "needs columns to join on"),
        (USERS, {"on": {"user": "id"}, "how": "outer"}, "joins 'left' or 'inner'; got 'outer'"),
        (USERS, {"on": {"user": "name"}}, r"joins 'user' \(int64\) with 'name' \(string\); .*cast one of them"),
        (USERS, {"on": {"user": "id"}, "cache": 5}, "has its table in memory, so there is nothing to cache"),
        (USERS, {"on": {"user": "id"}, "ttl": "5 s"}, "has its table in memory, so there is nothing to cache"),
        (USERS, {"on": {"user": "id"}, "columns": []}, "must bring a column"),
        (USERS, {"on": {"user": "id"}, "columns": ["id"]}, "brings a list of columns that are not its keys"),
        (USERS, {"on": {"user": "id"}, "columns": "name"}, "brings a list of columns that are not its keys"),
        (USERS, {"on": {"user": "id"}, "schema": "n long"}, "takes a schema for a function only"),
        (find, {"on": "user"}, "needs the schema of what the function finds"),
        (find, {"on": {"user": "id"}, "schema": "n long"}, r"takes the stream's columns .*; write on=\['user'\]"),
        (find, {"on": "user", "schema": "n long", "cache": "full"}, "cannot load all that a function would find"),
        (find, {"on": "user", "schema": "n long", "cache": 0}, "caches a number of keys, or 'full'; got 0"),
        (find, {"on": "user", "schema": "n long", "cache": True}, "caches a number of keys, or 'full'; got True"),
        (find, {"on": "user", "schema": "n long", "columns": ["n"]}, "brings all that a function finds"),
        (find, {"on": "user", "schema": "n long", "ttl": "5 s"}, "has a ttl but no cache"),
    ],
)
def test_bad_arguments_are_refused_when_the_graph_is_built(table: Any, arguments: Any, problem: str) -> None:
    with pytest.raises(hw.GraphError, match=f"step 'lookup_join' .*{problem}"):
        stream_of([]).lookup_join(table, **arguments)


def test_a_column_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(
        hw.SchemaError, match="step 'lookup_join': there is no field 'usr'; the fields are user, amount"
    ):
        stream_of([]).lookup_join(USERS, on={"usr": "id"})
    with pytest.raises(hw.SchemaError, match="there is no field 'user'; the fields are id, name, age"):
        stream_of([]).lookup_join(USERS, on="user")
    with pytest.raises(hw.SchemaError, match="there is no field 'size'; the fields are id, name, age"):
        stream_of([]).lookup_join(USERS, on={"user": "id"}, columns=["size"])


def test_a_key_must_have_exact_equality() -> None:
    with pytest.raises(hw.StateError, match="cannot use double as a key"):
        stream_of([], "x double").lookup_join(pa.table({"x": [1.0], "y": [1]}), on="x")


def test_a_type_that_no_stream_carries_is_refused() -> None:
    with pytest.raises(hw.SchemaError, match=r"type 'time64\[us\]' is not supported"):
        stream_of([]).lookup_join(pa.table({"user": [1], "t": pa.array([1], pa.time64("us"))}), on="user")
    finer = pa.table({"user": [1], "t": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises(
        hw.SchemaError, match=r"column 't' of the table cannot be .*would lose data.*cast it in the table"
    ):
        stream_of([]).lookup_join(finer, on="user")


def test_a_table_too_large_to_travel_is_refused_and_columns_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "MAX_TABLE_BYTES", 1 << 20)
    table = pa.table({"user": np.arange(100_000), "wide": ["x" * 10] * 100_000, "narrow": np.zeros(100_000, np.int8)})
    with pytest.raises(
        hw.GraphError, match="takes a table of up to 1 MiB along to the workers; got '2 MiB'; take fewer"
    ):
        stream_of([]).lookup_join(table, on="user")
    assert plain(stream_of([(7, 1)]).lookup_join(table, on="user", columns=["narrow"])) == [(7, 1, 0)]
