from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.connectors.contract import Sink, Staged
from headwater.connectors.memory import RowsSource

SCHEMA = "k string, n long"
ONCE, OVER_ITSELF, MORE, LESS, NONE = hw.Guarantee


class Feed(RowsSource):
    """A source that forgets what it gave."""

    replayable = False

    def __init__(self) -> None:
        super().__init__([[]], hw.Schema.of(SCHEMA))

    def describe(self) -> str:
        return "feed"


class To(Sink):
    """A sink of the guarantee in question."""

    def __init__(self, guarantee: hw.Guarantee) -> None:
        self.guarantee = guarantee

    def describe(self) -> str:
        return "to"

    def open(self, uid: str, job_id: str, schema: hw.Schema, *, resumed: bool) -> None:
        raise AssertionError("nothing runs here")

    def publish(self, epoch: int, files: list[Staged]) -> None:
        raise AssertionError("nothing runs here")


async def ask(row: Any) -> Any:
    return row


def rows(env: hw.Environment, name: str = "rows") -> hw.Step:
    return env.from_rows([], SCHEMA, name=name)


def paths(env: hw.Environment) -> dict[tuple[str, str], hw.Guarantee]:
    return {(path.source, path.sink): path.guarantee for path in env.guarantees()}


def reasons(env: hw.Environment) -> str:
    (path,) = env.guarantees()
    return "\n".join(path.reasons)


@pytest.mark.parametrize(
    ("replayable", "sink", "whole"),
    [
        (True, ONCE, ONCE),
        (True, OVER_ITSELF, OVER_ITSELF),
        (True, MORE, MORE),
        (True, LESS, LESS),
        (True, NONE, NONE),
        (False, ONCE, LESS),
        (False, OVER_ITSELF, LESS),
        (False, MORE, NONE),
        (False, LESS, LESS),
        (False, NONE, NONE),
    ],
)
def test_a_path_is_what_its_ends_together_allow(replayable: bool, sink: hw.Guarantee, whole: hw.Guarantee) -> None:
    env = hw.Environment("job", engine="local")
    source = rows(env) if replayable else env.source(Feed(), SCHEMA, name="rows")
    source.sink(To(sink))
    assert paths(env) == {("rows", "sink"): whole}


def test_a_sink_that_says_nothing_gets_epochs_at_least_once() -> None:
    assert Sink.guarantee is MORE
    assert hw.connectors.console().guarantee is MORE
    assert hw.connectors.files("out").guarantee is ONCE


def test_rows_in_memory_are_lost_to_a_job_that_outlives_its_process(tmp_path: Path) -> None:
    found = []
    for settings in ({"engine": "local", "job_dir": tmp_path}, {}, {"job_dir": tmp_path}):
        env = hw.Environment("job", **settings)  # type: ignore[arg-type]
        rows(env).sink(hw.connectors.memory())
        found.append(paths(env)["rows", "sink"])
        is_told = "gone with the process" in reasons(env)
        assert is_told == (found[-1] is LESS)
    assert found == [ONCE, ONCE, LESS]


def test_branches_unions_joins_and_side_outputs_lead_from_source_to_sink() -> None:
    class Check(hw.ProcessFunction):
        bad = hw.OutputTag("bad", SCHEMA)

    env = hw.Environment("job", engine="local")
    left, right, feed, alone = rows(env, "left"), rows(env, "right"), env.source(Feed(), SCHEMA), rows(env, "alone")
    checked = left.union(feed).process(Check(), SCHEMA)
    joined = checked.key_by("k").join_regular(right.key_by("k"))
    joined.sink(To(ONCE), name="joined")
    checked.side_output(Check.bad).sink(To(MORE), name="bad")
    alone.sink(To(OVER_ITSELF), name="kept")
    assert paths(env) == {
        ("left", "joined"): ONCE,
        ("left", "bad"): MORE,
        ("right", "joined"): ONCE,
        ("source", "joined"): LESS,
        ("source", "bad"): NONE,
        ("alone", "kept"): OVER_ITSELF,
    }


def test_a_diamond_is_one_path() -> None:
    env = hw.Environment("job", engine="local")
    stream = rows(env)
    stream.filter(bool).union(stream.map(lambda row: row)).sink(To(ONCE))
    assert paths(env) == {("rows", "sink"): ONCE}


def test_a_step_that_asks_outside_is_named_on_the_paths_it_is_on() -> None:
    env = hw.Environment("job", engine="local")
    stream = rows(env)
    stream.map_async(ask).with_uid("ask").sink(To(ONCE), name="asked")
    stream.sink(To(ONCE), name="plain")
    asked, plain = env.guarantees()
    assert (asked.guarantee, plain.guarantee) == (ONCE, ONCE), "what is published is published once"
    assert [
        reason for reason in asked.reasons if "may get other answers" in reason and "step ask (map_async)" in reason
    ]
    assert not any("answers" in reason for reason in plain.reasons)


def test_a_lookup_in_a_table_that_travels_with_the_job_gives_the_same_answers() -> None:
    table = pa.table({"k": ["a"], "name": ["ann"]})

    def find(keys: list[Any]) -> dict[Any, Any]:
        return {}

    found = []
    for right, schema in ((table, None), (find, "name string")):
        env = hw.Environment("job", engine="local")
        rows(env).lookup_join(right, on="k", schema=schema).sink(To(ONCE))
        found.append("answers" in reasons(env))
    assert found == [False, True]


def test_rows_that_move_after_a_question_may_be_routed_by_the_answer() -> None:
    found = []
    for build in (
        lambda stream: stream.map_async(ask).filter(bool),
        lambda stream: stream.rebalance().map_async(ask),
        lambda stream: stream.map_async(ask).filter(bool).rebalance(),
    ):
        env = hw.Environment("job", engine="local")
        build(rows(env)).sink(To(ONCE))
        found.append("routed by an answer" in reasons(env))
    assert found == [False, False, True]


def test_a_graph_without_a_sink_has_nothing_to_guarantee() -> None:
    env = hw.Environment("job", engine="local")
    rows(env)
    with pytest.raises(hw.GraphError, match="has no sink"):
        env.explain_guarantees()
