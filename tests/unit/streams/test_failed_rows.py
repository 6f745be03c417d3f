"""Rows whose function fails: put aside with the error when the user says so, and otherwise the end of the job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import headwater as hw
from headwater.testing import Harness

ROWS = "k string, n long"
FAILED = hw.OutputTag("failed", "k string, n long, why string")
SIDE = hw.OutputTag("side", "n long")
Build = Callable[..., Any]


def half(row: Any) -> dict[str, Any]:
    if row.n == 0:
        raise ValueError("no half of nothing")
    if row.n == 7:
        return {"k": row.k, "n": "seven"}
    return {"k": row.k, "n": row.n // 2}


def down(row: Any) -> Iterator[dict[str, Any]]:
    yield {"k": row.k, "n": row.n}
    yield half(row)


class Down(hw.ProcessFunction):
    def process(self, row: Any, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        ctx.output(SIDE, {"n": row.n})
        yield from down(row)


async def half_async(row: Any) -> dict[str, Any]:
    return half(row)


STEPS: dict[str, Build] = {
    "map": lambda rows, **to: rows.map(half, **to),
    "flat_map": lambda rows, **to: rows.flat_map(down, **to),
    "filter": lambda rows, **to: rows.filter(lambda row: half(row)["n"] + 0 >= 0, **to),
    "process": lambda rows, **to: rows.process(Down(), ROWS, **to),
    "map_async": lambda rows, **to: rows.map_async(half_async, **to),
}
GIVEN = [("a", 4), ("a", 0), ("b", 7), ("a", None), ("c", 2)]
EXPECTED = {
    "map": [("a", 2), ("c", 1)],
    "flat_map": [("a", 4), ("a", 2), ("c", 2), ("c", 1)],
    "filter": [("a", 4), ("c", 2)],
    "process": [("a", 4), ("a", 2), ("c", 2), ("c", 1)],
    "map_async": [("a", 2), ("c", 1)],
}


def outputs(build: Build, rows: list[Any], **settings: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """What a step gives, what it puts aside, and what it sends to its own side output."""
    env = hw.Environment("job", engine="local", **settings)
    main, failed, side = hw.connectors.memory(), hw.connectors.memory(), hw.connectors.memory()
    step = build(env.from_rows(rows, ROWS), failed_to=FAILED)
    step.sink(main, name="main")
    step.side_output(FAILED).sink(failed, name="failed")
    if build is STEPS["process"]:
        step.side_output(SIDE).sink(side, name="side")
    env.run(bounded=True)
    return tuple([tuple(row) for row in sink.rows] for sink in (main, failed, side))  # type: ignore[return-value]


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("epoch", [1, 2, 100])
def test_failed_rows_go_aside_with_the_error_and_leave_nothing_behind(name: str, epoch: int) -> None:
    main, failed, side = outputs(STEPS[name], GIVEN, max_rows_per_epoch=epoch, parallelism=1)
    assert main == EXPECTED[name]
    (zero, seven, null) = failed
    assert zero == ("a", 0, "ValueError: no half of nothing")
    assert seven[:2] == ("b", 7)
    assert ("can only concatenate str" if name == "filter" else "field 'n': value 'seven'") in seven[2]
    assert null[:2] == ("a", None)
    assert null[2].startswith("TypeError: unsupported operand")
    assert side == ([(4,), (2,)] if name == "process" else [])


@pytest.mark.parametrize("name", STEPS)
def test_without_a_place_for_them_they_fail_the_job(name: str) -> None:
    env = hw.Environment("job", engine="local")
    with pytest.raises(hw.UserCodeError, match="no half of nothing") as failed:
        STEPS[name](env.from_rows([("a", 0)], ROWS)).collect()
    assert failed.value.cause == "ValueError: no half of nothing"


@pytest.mark.parametrize("name", ["map", "flat_map", "process"])
def test_a_result_that_does_not_fit_fails_the_job_too(name: str) -> None:
    env = hw.Environment("job", engine="local")
    with pytest.raises(hw.RowError, match="'seven'"):
        STEPS[name](env.from_rows([("a", 7)], ROWS)).collect()


def test_rows_keep_their_time() -> None:
    def build(rows: hw.Stream) -> hw.Stream:
        return rows.map(half, failed_to=FAILED)

    with Harness(build, ROWS) as harness:
        harness.push_all([("a", 0), ("a", 4), ("b", 7)], [100, 200, 300])
        assert [(row.n, row.timestamp) for row in harness.take()] == [(2, 200)]
        assert [(row.n, row.timestamp) for row in harness.take(FAILED)] == [(0, 100), (7, 300)]


def test_a_function_that_raises_stop_iteration_has_failed() -> None:
    def stop(row: Any) -> Any:
        if row.n == 2:
            raise StopIteration
        return row

    main, failed, _ = outputs(lambda rows, **to: rows.map(stop, **to), [("a", n) for n in range(1, 4)])
    assert main == [("a", 1), ("a", 3)]
    assert failed == [("a", 2, "StopIteration")]


def test_a_row_that_times_out_is_a_failed_one_unless_it_has_a_place_of_its_own() -> None:
    async def slow(row: Any) -> Any:
        await asyncio.sleep(3600)

    main, failed, _ = outputs(lambda rows, **to: rows.map_async(slow, timeout="10 ms", **to), [("a", 1)])
    assert main == []
    assert failed[0][:2] == ("a", 1)
    assert "no result within 10 ms" in failed[0][2]


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("schema", [ROWS, "k string, why string", "k string, n long, why long"])
def test_a_tag_of_another_schema_is_refused(name: str, schema: str) -> None:
    env = hw.Environment("job", engine="local")
    with pytest.raises(hw.GraphError, match=r"give the tag the schema '.*k string, n bigint, error string'"):
        STEPS[name](env.from_rows(GIVEN, ROWS), failed_to=hw.OutputTag("failed", schema))


@pytest.mark.parametrize("name", STEPS)
def test_failed_rows_need_a_reader(name: str) -> None:
    env = hw.Environment("job", engine="local")
    STEPS[name](env.from_rows(GIVEN, ROWS), failed_to=FAILED).sink(hw.connectors.memory())
    with pytest.raises(hw.GraphError, match=r"sends rows that fail to 'failed'; got .*nobody who reads them"):
        env.run(bounded=True)


def test_functions_with_state_are_refused() -> None:
    class Keyed(hw.KeyedProcessFunction):
        n = hw.ValueState("long", default=0)

        def process(self, row: Any, ctx: hw.Context) -> Any:
            self.n.set(1)

    class Listed(hw.ProcessFunction):
        n = hw.OperatorListState("long")

        def process(self, row: Any, ctx: hw.Context) -> Any:
            self.n.add(1)

    rows = hw.Environment("job", engine="local").from_rows(GIVEN, ROWS)
    for refused in (
        lambda: rows.key_by("k").process(Keyed(), ROWS, failed_to=FAILED),
        lambda: rows.process(Listed(), ROWS, failed_to=FAILED),
    ):
        with pytest.raises(hw.GraphError, match=r"cannot be taken back.*; catch the error in the function"):
            refused()


def test_two_places_need_two_names() -> None:
    rows = hw.Environment("job", engine="local").from_rows(GIVEN, ROWS)
    late = hw.OutputTag("failed", ROWS)
    with pytest.raises(hw.GraphError, match="different names for timeout_to and failed_to"):
        rows.map_async(half_async, timeout="1 s", timeout_to=late, failed_to=FAILED)
