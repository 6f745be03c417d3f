"""Savepoints as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.parts.halves import run_epochs

import headwater as hw

ROWS = [(f"k{n % 3}", n, n * 1000) for n in range(12)]
SCHEMA = "k string, n bigint, at bigint"


class Kept(hw.KeyedProcessFunction):
    total = hw.ValueState("bigint", default=0)
    seen = hw.ListState("bigint")
    last = hw.MapState("bigint", "bigint")
    never = hw.ValueState("string")

    def process(self, event: Any, ctx: hw.Context) -> Any:
        self.total.set(self.total.get() + event.n)
        self.seen.add(event.n)
        self.last.put(event.n % 2, event.n)
        ctx.timers.event_time(event.at + 60_000)
        yield ctx.key, self.total.get()


@pytest.fixture
def saved(tmp_path: Path) -> hw.savepoint.SavedJob:
    env = hw.Environment("orders", engine="local", max_rows_per_epoch=6)
    rows = env.from_rows(ROWS, SCHEMA, hw.Watermarks.bounded("at", "2 s"))
    rows.key_by("k").process(Kept(), "k string, n bigint").sink(hw.connectors.memory())
    path = run_epochs(env, 1).stop(savepoint=tmp_path / "sp")
    assert path is not None
    return hw.savepoint.read(path)


def test_states_are_found_by_step_and_name(saved: hw.savepoint.SavedJob) -> None:
    names = ["@timers.event", "@timers.processing", "last", "never", "seen", "total"]
    assert list(saved) == [("kept", name) for name in names]
    assert ("kept", "total") in saved
    assert ("kept", "@channels") not in saved
    assert len(saved) == 6


def test_a_state_is_a_table_of_its_entries(saved: hw.savepoint.SavedJob) -> None:
    total = saved["kept", "total"]
    assert (total.rows, total.step, total.name) == (3, "kept", "total")
    assert total.size_bytes > 0
    assert total.schema == pa.schema([("key", pa.string()), ("value", pa.int64())])
    assert sorted(map(tuple, (row.values() for row in total.to_arrow().to_pylist()))) == [
        ("k0", 3),
        ("k1", 5),
        ("k2", 7),
    ]
    seen = saved["kept", "seen"].to_arrow().to_pylist()
    assert sorted((row["key"], row["index"], row["value"]) for row in seen) == [
        (f"k{n % 3}", n // 3, n) for n in (0, 3, 1, 4, 2, 5)
    ]
    assert saved["kept", "last"].to_arrow().column_names == ["key", "entry", "value"]
    assert saved["kept", "@timers.event"].to_arrow().column_names == ["key", "timestamp", "registration"]
    assert saved["kept", "total"].to_pandas()["value"].sum() == 15


def test_an_empty_state_shows_its_columns(saved: hw.savepoint.SavedJob) -> None:
    never = saved["kept", "never"]
    assert never.rows == 0
    assert never.to_arrow() == pa.table({"key": pa.array([], pa.string()), "value": pa.array([], pa.string())})


def test_where_the_job_stood_is_known(saved: hw.savepoint.SavedJob) -> None:
    assert (saved.job, saved.epoch, saved.parallelism, saved.key_groups) == ("orders", 0, 2, 128)
    assert saved.positions == {"rows": {"0": 6}}
    assert saved.watermarks == {"kept": 2999}
    assert not saved.has_ended


def test_a_savepoint_tells_what_it_holds(saved: hw.savepoint.SavedJob) -> None:
    lines = str(saved).splitlines()
    assert lines[0] == f"savepoint {saved.path}"
    assert lines[1:4] == [
        "job orders, epoch 0, parallelism 2, 128 key groups",
        "source rows: 0 at 6",
        "step kept: event time 1970-01-01 00:00:02.999",
    ]
    assert [line.split(",")[0] for line in lines[4:]] == [
        "  @timers.event: 6 rows",
        "  last: 6 rows",
        "  never: 0 rows",
        "  seen: 6 rows",
        "  total: 3 rows",
    ]


def test_a_state_that_is_not_there_is_told_with_those_that_are(saved: hw.savepoint.SavedJob) -> None:
    with pytest.raises(
        hw.SavepointError, match=r"has no state 'sum' of a step 'kept'; it has kept/@timers.event, .*total"
    ):
        saved["kept", "sum"]


def test_state_without_key_is_shown_without_one(tmp_path: Path) -> None:
    class Held(hw.ProcessFunction):
        held = hw.OperatorListState("bigint")

        def process(self, event: Any, ctx: hw.Context) -> Any:
            self.held.add(event.n)
            yield event

    env = hw.Environment("held", engine="local")
    env.from_rows([(n,) for n in range(6)], "n bigint").process(Held(), "n bigint").sink(hw.connectors.memory())
    saved = hw.savepoint.read(env.run().savepoint(tmp_path / "sp"))
    assert saved.has_ended
    assert "its input had ended" in str(saved)
    assert "event time at its end" in str(saved)
    held = saved["held", "held"].to_arrow()
    assert held.column_names == ["index", "value"]
    assert sorted(held["value"].to_pylist()) == list(range(6))
