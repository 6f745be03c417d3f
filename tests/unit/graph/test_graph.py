from __future__ import annotations

from typing import Any

import pytest

import headwater as hw
from headwater.streams.stream import Stream


class Keyed(hw.KeyedProcessFunction):
    total = hw.ValueState("bigint")

    def process(self, event: Any, ctx: hw.Context) -> list[Any]:
        return []


class Plain(hw.ProcessFunction):
    def process(self, event: Any, ctx: hw.Context) -> list[Any]:
        return []


@pytest.fixture
def env() -> hw.Environment:
    return hw.Environment("graph", engine="local")


@pytest.fixture
def stream(env: hw.Environment) -> Stream:
    return env.from_rows([("a", 1, 0.5)], "k string, n long, x double")


def test_one_uid_for_two_steps_is_refused(stream: Stream) -> None:
    stream.map(lambda r: r).with_uid("mine")
    with pytest.raises(
        hw.GraphError, match=r"'mine' is the uid of map 'map' \(step 1\) and of filter 'filter' \(step 2\)"
    ):
        stream.filter(lambda r: True).with_uid("mine")


def test_two_functions_of_one_class_need_uids(env: hw.Environment, stream: Stream) -> None:
    for _ in range(2):
        stream.key_by("k").process(Keyed(), "k string").sink(hw.connectors.memory())
    with pytest.raises(hw.GraphError, match=r"'keyed' is the uid of .*with_uid"):
        env.describe()


def test_two_sources_of_one_name_need_uids(env: hw.Environment, stream: Stream) -> None:
    stream.union(env.from_rows([], stream.schema)).sink(hw.connectors.memory())
    with pytest.raises(hw.GraphError, match=r"'rows' is the uid of source 'rows' \(step 0\) and of source"):
        env.describe()


def test_stateless_steps_are_numbered_and_keep_clear_of_given_uids(env: hw.Environment, stream: Stream) -> None:
    stream.map(lambda r: r).with_uid("filter")
    stream.filter(lambda r: True).sink(hw.connectors.memory())
    stream.filter(lambda r: True).sink(hw.connectors.memory())
    env.graph.validate()
    uids = [env.graph.uid(node) for node in env.graph]
    assert len(set(uids)) == len(uids)
    assert uids == ["rows", "filter", "filter-x", "sink", "filter-2", "sink-2"]


@pytest.mark.parametrize("uid", ["", "a b", "a/b", "ü", "x" * 101, 5, None])
def test_a_uid_is_made_of_plain_characters(stream: Stream, uid: Any) -> None:
    with pytest.raises(hw.GraphError, match="a uid is made of letters"):
        stream.map(lambda r: r).with_uid(uid)


def test_a_job_without_a_sink_is_refused(env: hw.Environment, stream: Stream) -> None:
    stream.map(lambda r: r)
    for act in (env.describe, env.explain, env.run):
        with pytest.raises(hw.GraphError, match="job 'graph' has no sink"):
            act()


def test_a_union_needs_one_schema(env: hw.Environment, stream: Stream) -> None:
    other = env.from_rows([(1,)], "n int")
    with pytest.raises(hw.SchemaError, match=r"schemas differ: 'k string, n bigint, x double' and 'n int'"):
        stream.union(other)


def test_a_union_stays_in_one_environment(stream: Stream) -> None:
    other = hw.Environment("other", engine="local").from_rows([("a", 1, 0.5)], "k string, n long, x double")
    with pytest.raises(hw.GraphError, match="two environments"):
        stream.union(other)


@pytest.mark.parametrize("bad", ["double", "float", "array<int>", "map<string,int>", "void", "struct<a:int,b:double>"])
def test_a_key_must_compare_exactly(stream: Stream, bad: str) -> None:
    with pytest.raises(hw.StateError, match="as a key: its equality is not exact or it is not hashable"):
        stream.key_by(lambda r: None, type=bad)


def test_a_column_of_doubles_is_no_key(stream: Stream) -> None:
    with pytest.raises(hw.StateError, match="double as a key"):
        stream.key_by("x")
    with pytest.raises(hw.StateError):
        stream.key_by("k", "x")


def test_a_key_column_must_exist(stream: Stream) -> None:
    with pytest.raises(hw.SchemaError, match="no field 'user'; the fields are k, n, x"):
        stream.key_by("user")


@pytest.mark.parametrize("key", [(), ("k", len), (len, len)])
def test_a_key_is_columns_or_one_function(stream: Stream, key: tuple[Any, ...]) -> None:
    with pytest.raises(hw.GraphError, match="column names or one function"):
        stream.key_by(*key, type="string")


def test_a_key_function_needs_its_type(stream: Stream) -> None:
    with pytest.raises(hw.GraphError, match="add type='string'"):
        stream.key_by(lambda r: r.k)
    with pytest.raises(hw.GraphError, match="needs a function"):
        stream.key_by(5, type="string")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("by", "dtype", "problem"),
    [
        ([], None, "column names or one function"),
        (["k", len], None, "column names or one function"),
        (len, None, "step 'partition_custom' needs the type of a function's result"),
        ("x", None, "double as a key"),
        ("user", None, "no field 'user'"),
        (5, "int", "needs a function; got 5"),
    ],
)
def test_what_to_partition_by_is_what_could_be_a_key(stream: Stream, by: Any, dtype: str | None, problem: str) -> None:
    with pytest.raises(hw.HeadwaterError, match=problem):
        stream.partition_custom(lambda key, n: 0, by, type=dtype)


def test_a_partitioner_is_a_function_and_is_shown(env: hw.Environment, stream: Stream) -> None:
    def nearest(key: Any, parallelism: int) -> int:
        return 0

    with pytest.raises(hw.GraphError, match="step 'partition_custom' needs a function; got 1"):
        stream.partition_custom(1, "k")  # type: ignore[arg-type]
    stream.partition_custom(nearest, ["k", "n"]).sink(hw.connectors.memory())
    assert "by partition_custom(nearest, k, n)" in env.describe()


def test_a_keyed_function_needs_a_keyed_stream(stream: Stream) -> None:
    with pytest.raises(hw.GraphError, match=r"step 'keyed' needs a keyed stream; got Step; call .key_by"):
        stream.process(Keyed(), "k string")
    with pytest.raises(hw.GraphError, match="got Stream"):
        stream.rebalance().process(Keyed(), "k string", name="keyed")


@pytest.mark.parametrize("bad", [Keyed, Plain, len, None])
def test_process_needs_an_instance(stream: Stream, bad: Any) -> None:
    with pytest.raises(hw.GraphError, match="pass an instance"):
        stream.process(bad, "k string")
    with pytest.raises(hw.GraphError, match="pass an instance"):
        stream.key_by("k").process(bad, "k string")


def test_a_stateless_function_runs_on_a_keyed_stream_too(stream: Stream) -> None:
    assert stream.key_by("k").process(Plain(), "k string").collect() == []


@pytest.mark.parametrize("method", ["map", "flat_map", "filter", "map_batches"])
def test_a_function_is_needed(stream: Stream, method: str) -> None:
    with pytest.raises(hw.GraphError, match=f"step '{method}' needs a function; got 'n'"):
        getattr(stream, method)("n")


@pytest.mark.parametrize("act", ["map", "flat_map", "process", "source"])
def test_a_bad_schema_is_refused_where_it_is_given(env: hw.Environment, stream: Stream, act: str) -> None:
    acts: dict[str, Any] = {
        "process": lambda: stream.process(Plain(), "a intt"),
        "source": lambda: env.from_rows([(1,)], "a intt"),
        "map": lambda: stream.map(lambda r: r, "a intt"),
        "flat_map": lambda: stream.flat_map(lambda r: r, "a intt"),
    }
    with pytest.raises(hw.SchemaError, match="at position 2"):
        acts[act]()


def test_event_time_comes_from_a_time_column(env: hw.Environment) -> None:
    rows: list[Any] = [("a", 1)]
    with pytest.raises(hw.GraphError, match=r"takes event time from a timestamp or a bigint of milliseconds; got 'k'"):
        env.from_rows(rows, "k string, n long", hw.Watermarks.monotonous("k"))
    with pytest.raises(hw.SchemaError, match="no field 'at'"):
        env.from_rows(rows, "k string, n long", hw.Watermarks.monotonous("at"))
    with pytest.raises(hw.GraphError, match="for event time"):
        env.from_rows(rows, "k string, n long").map_batches(lambda t: t, timestamp="k")


def test_sources_and_sinks_are_instances(env: hw.Environment, stream: Stream) -> None:
    with pytest.raises(hw.GraphError, match="needs a source"):
        env.source([1, 2], "n long")  # type: ignore[arg-type]
    with pytest.raises(hw.GraphError, match="needs a sink"):
        stream.sink(print)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"engine": "flink"}, "runs on spark or local"),
        ({"parallelism": 0}, "parallelism of 1 to its key groups"),
        ({"parallelism": 129}, "parallelism of 1 to its key groups"),
        ({"key_groups": 0}, "1 to 32768 key groups"),
        ({"key_groups": 32_769}, "1 to 32768 key groups"),
        ({"max_rows_per_epoch": 0}, "max_rows_per_epoch"),
        ({"checkpoint_interval": "soon"}, "checkpoint_interval must be a duration"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        hw.Environment("job", **settings)


@pytest.mark.parametrize("name", ["", "a b", "../x"])
def test_the_name_of_a_job_is_made_of_plain_characters(name: str) -> None:
    with pytest.raises(hw.GraphError, match="needs a name of letters"):
        hw.Environment(name)


def test_one_tag_has_one_schema(stream: Stream) -> None:
    step = stream.process(Plain(), "k string")
    step.side_output(hw.OutputTag("late", "k string"))
    step.side_output(hw.OutputTag("late", "k string"))
    with pytest.raises(hw.GraphError, match="side output 'late' of schema 'k string'"):
        step.side_output(hw.OutputTag("late", "k int"))


def test_collecting_leaves_the_graph_as_it_was(env: hw.Environment, stream: Stream) -> None:
    before = list(env.graph)
    stream.collect()
    assert list(env.graph) == before


def test_collecting_runs_only_what_the_stream_needs(env: hw.Environment, stream: Stream) -> None:
    def fail(row: Any) -> Any:
        raise AssertionError("not asked for")

    stream.map(fail).sink(hw.connectors.memory())
    assert stream.select("n").collect() == [(1,)]
