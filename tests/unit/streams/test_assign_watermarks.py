"""Event time that is set in the middle of a job: who counts, who is late, and that no restart takes it back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples
from tests.parts.halves import run_epochs
from tests.unit.operators.test_window_operators import Player

import headwater as hw
from headwater.connectors.memory import MemorySink
from headwater.job.identity import shape_of
from headwater.plan.plan import plan_job
from headwater.savepoints.renaming import Renaming
from headwater.streams.stream import Stream
from headwater.testing import Harness

SCHEMA = "k string, n long, t long"
LATE = hw.OutputTag("late", "k string, n long, t long")
BY_T = hw.Watermarks.monotonous("t")


def tens(stream: Stream) -> Stream:
    return stream.key_by("k").window(hw.tumbling("10 ms")).late_to(LATE).agg(n=hw.sum("n"))


def behind_source(stream: Stream) -> Stream:
    return tens(stream.where("n > 0").assign_watermarks(BY_T))


class Pass(hw.KeyedProcessFunction):
    """Rows as they are, without their time."""

    def process(self, event: Any, ctx: hw.Context) -> Any:
        yield event


def behind_keyed(strategy: hw.Watermarks = BY_T) -> Any:
    return lambda s: tens(s.key_by("k").process(Pass(), SCHEMA).assign_watermarks(strategy))


def totals(harness: Harness) -> list[tuple[str, int, int]]:
    return [(row.k, row.n, row.timestamp) for row in harness.take()]


@pytest.mark.parametrize("build", [behind_source, behind_keyed()], ids=["source", "keyed"])
def test_event_time_is_that_of_the_column_until_the_input_ends(build: Any) -> None:
    harness = Harness(build, SCHEMA)
    harness.push(("a", 1, 5))
    harness.watermark(10**6)
    assert totals(harness) == []
    harness.push(("a", 2, 11))
    assert totals(harness) == [("a", 1, 9)]
    harness.push(("a", 4, 9))
    assert harness.take(LATE) == [("a", 4, 9)]
    harness.end()
    assert totals(harness) == [("a", 2, 19)]


def test_a_generator_and_markers_say_how_far_it_is() -> None:
    class Tenth(hw.WatermarkGenerator):
        def on_event(self, event: Any, timestamp: int) -> int | None:
            return timestamp if event.n == 10 else None

    for strategy in (
        hw.Watermarks.custom("t", Tenth),
        hw.Watermarks.punctuated("t", lambda row: row.t if row.n == 10 else None),
    ):
        harness = Harness(lambda s, by=strategy: tens(s.assign_watermarks(by)), SCHEMA)
        harness.push_all([("a", 1, 5), ("a", 2, 50)])
        assert totals(harness) == []
        harness.push(("a", 10, 30))
        assert totals(harness) == [("a", 1, 9)]


# -- what is kept ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [behind_source, behind_keyed()], ids=["source", "keyed"])
@pytest.mark.parametrize("to", [1, 2, 3])
def test_it_does_not_go_back_in_a_restart_whatever_the_number_of_subtasks(build: Any, to: int) -> None:
    harness = Harness(build, SCHEMA, parallelism=2)
    harness.push_all([(f"k{n}", 1, 25) for n in range(20)])
    harness = Harness.restore(build, SCHEMA, harness.snapshot(), parallelism=to)
    harness.push_all([(f"k{n}", 1, 9) for n in range(20)])
    assert len(harness.take(LATE)) == 20
    harness.push_all([(f"k{n}", 1, 31) for n in range(20)])
    assert sorted(totals(harness)) == sorted((f"k{n}", 1, 29) for n in range(20))


rows = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.integers(0, 60)), max_size=12)


@examples(40)
@given(script=rows, again=st.lists(st.booleans(), min_size=12, max_size=12))
def test_state_that_was_rebuilt_goes_on_with_the_same_bytes(script: list[Any], again: list[bool]) -> None:
    build = behind_keyed(hw.Watermarks.bounded("t", "5 ms").with_idleness("7 ms"))
    live, rebuilt = (Player(build, SCHEMA, parallelism=2) for _ in range(2))
    for number, (row, is_rebuilt) in enumerate(zip(script, again, strict=False)):
        if is_rebuilt:
            rebuilt.rebuild()
        for harness in (live, rebuilt):
            harness.push(row)
            harness.advance_to(3 * number)
        assert totals(live) == totals(rebuilt)
        assert live.last_records() == rebuilt.last_records()


@pytest.mark.parametrize("build", ["source", "keyed"])
def test_a_savepoint_keeps_it_also_under_other_names_and_on_more_subtasks(build: str, tmp_path: Path) -> None:
    before, after = [(f"k{n}", 1, 25) for n in range(8)], [(f"k{n}", 1, t) for n in range(8) for t in (5, 31, 32, 33)]

    def job(parallelism: int, uids: tuple[str, str]) -> tuple[hw.Environment, MemorySink]:
        env = hw.Environment("times", engine="local", parallelism=parallelism, max_rows_per_epoch=8)
        rows: Stream = env.from_rows([*before, *after], SCHEMA, name="rows")
        if build == "keyed":
            rows = rows.key_by("k").process(Pass(), SCHEMA).with_uid(uids[0])
        timed = rows.assign_watermarks(BY_T.with_idleness("1 h")).with_uid(uids[1])
        sink = hw.connectors.memory()
        timed.key_by("k").window(hw.tumbling("10 ms")).agg(n=hw.sum("n")).with_uid("tens").sink(sink)
        return env, sink

    env, _ = job(1, ("pass", "times"))
    path = run_epochs(env, 1).stop(savepoint=tmp_path / "savepoint")
    env, sink = job(3, ("passed", "timed"))
    renamed = {"pass": "passed"} if build == "keyed" else {}
    status = env.run(from_=path, renamed=renamed).status()
    assert status.steps["tens"]["late_dropped"] == 8
    assert sorted((row.k, row.n) for row in sink.rows) == sorted((f"k{n}", total) for n in range(8) for total in (1, 3))


def test_channels_are_renamed_with_the_steps_in_their_names() -> None:
    renaming = Renaming.of({"pass": "passed", "times": "timed"})
    assert renaming.channel("pass@times/1") == "passed@timed/1"
    assert renaming.channel("rows@times/topic/0") == "rows@timed/topic/0"
    assert renaming.channel("pass/1") == "passed/1"
    assert renaming.channel("left") == "left"


def test_a_job_folder_knows_which_step_sets_event_time() -> None:
    env = hw.Environment("test", engine="local")
    behind_source(env.from_rows([], SCHEMA)).sink(hw.connectors.memory())
    steps = shape_of(plan_job(env.graph, 1, 128))["steps"]
    assert steps["window_agg"]["event time by"] == ["assign_watermarks"]


# -- who is waited for ----------------------------------------------------------------------------------------------


def test_a_subtask_without_rows_is_waited_for_unless_it_is_idle() -> None:
    harness = Harness(behind_keyed(), SCHEMA, parallelism=2)
    harness.push_all([("a", 1, 5), ("a", 1, 30)])
    assert totals(harness) == []
    harness = Harness(behind_keyed(BY_T.with_idleness("10 ms")), SCHEMA, parallelism=2)
    harness.push_all([("a", 1, 5), ("a", 1, 30)])
    harness.advance_to(9)
    assert totals(harness) == []
    snapshot = harness.snapshot()
    harness.advance_to(10)
    assert totals(harness) == [("a", 1, 9)]
    harness = Harness.restore(behind_keyed(BY_T.with_idleness("10 ms")), SCHEMA, snapshot, parallelism=2)
    harness.advance_to(10)
    assert totals(harness) == [("a", 1, 9)]


def test_rows_with_two_times_wait_for_both() -> None:
    harness = Harness(lambda s: tens(s.union(s.assign_watermarks(BY_T))), SCHEMA)
    harness.push(("a", 1, 25), at=5)
    assert totals(harness) == []
    harness.watermark(40)
    assert totals(harness) == [("a", 1, 9)]
    harness.push(("a", 1, 35), at=41)
    assert totals(harness) == [("a", 1, 29)]


def test_the_last_step_that_sets_it_counts() -> None:
    harness = Harness(
        lambda s: tens(s.assign_watermarks(BY_T).assign_watermarks(hw.Watermarks.bounded("n", "0 s"), name="again")),
        SCHEMA,
    )
    harness.push_all([("a", 5, 1000), ("a", 11, 1000)])
    assert totals(harness) == [("a", 5, 9)]


# -- what may stand before and behind it ----------------------------------------------------------------------------


def test_a_live_source_without_watermarks_can_be_joined_behind_it(tmp_path: Path) -> None:
    env = hw.Environment("test", engine="local")
    live = env.source(hw.connectors.log(tmp_path, "topic"), SCHEMA, name="live")
    left = env.from_rows([], SCHEMA, BY_T, name="left")
    with pytest.raises(hw.GraphError, match="source 'live' without watermarks"):
        left.interval_join(live, between=("0 s", "1 s"), on="k")
    left.interval_join(live.assign_watermarks(BY_T), between=("0 s", "1 s"), on="k")


def test_rows_of_a_changelog_are_taken_back_with_the_time_they_came_with() -> None:
    def build(stream: Stream) -> Stream:
        latest = stream.as_changelog(key="k").assign_watermarks(hw.Watermarks.bounded("t", "100 ms"))
        return latest.key_by("n").window(hw.tumbling("10 ms")).agg(count=hw.count())

    harness = Harness(build, "k string, n long, t long, row_kind string")
    harness.push_all([("a", 1, 5, "+I"), ("b", 1, 6, "+I"), ("a", 1, 25, "+U"), ("b", 1, 6, "-D")])
    harness.end()
    assert [(row.n, row.count, row.timestamp) for row in harness.take()] == [(1, 1, 29)]


def test_strategies_that_cannot_work_there_are_refused() -> None:
    stream = hw.Environment("test", engine="local").from_rows([], SCHEMA)
    with pytest.raises(hw.GraphError, match=r"takes event time from a column; got 'Watermarks.none\(\)'; use another"):
        stream.assign_watermarks(hw.Watermarks.none())
    with pytest.raises(hw.GraphError, match=r"cannot let sources wait.*aligned.*give the sources aligned strategies"):
        stream.assign_watermarks(BY_T.aligned("g", "1 s"))
    with pytest.raises(hw.GraphError, match="takes event time from a timestamp or a bigint of milliseconds; got 'k'"):
        stream.assign_watermarks(hw.Watermarks.monotonous("k"))
    with pytest.raises(hw.GraphError, match="needs a watermark strategy; got 't'"):
        stream.assign_watermarks("t")  # type: ignore[arg-type]
    with pytest.raises(hw.SchemaError, match="no field 'z'"):
        stream.assign_watermarks(hw.Watermarks.monotonous("z"))


def test_a_row_without_a_time_in_the_column_is_told() -> None:
    harness = Harness(behind_source, SCHEMA)
    with pytest.raises(hw.RowError, match=r"'assign_watermarks' takes event time from 't'.*where\('t is not null'\)"):
        harness.push(("a", 1, None))
