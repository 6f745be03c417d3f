"""Late rows that are dropped: the newest are shown, and what they hold can neither fail a step nor fill its report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.transcripts.over_programs import over

import headwater as hw
from headwater.data.batch import MAX_TIMESTAMP, Batch
from headwater.epoch.reports import TaskReport
from headwater.graph.edges import NO_KEY, Key
from headwater.graph.nodes import KeepFirstNode, SessionNode, WindowTopNNode
from headwater.job.status import JobStatus, StepStatus
from headwater.late_rows import SHOWN, LateRow
from headwater.operators.dropped import DroppedRows
from headwater.task.counters import StepCounters
from headwater.testing import Harness

ROWS = "k string, v long"
TEN = hw.tumbling("10 ms")


class Listed(hw.ProcessWindowFunction):
    """What is computed element by element."""

    def process(self, key: Any, window: Any, rows: Any, ctx: Any) -> Iterator[dict[str, Any]]:
        yield {"k": key, "n": len(list(rows))}


def top_of_windows(stream: Any) -> Any:
    ended = stream.map(lambda row: {**row._asdict(), "until": row.v}, "k string, v long, until timestamp")
    return ended._add(WindowTopNNode.of(ended._flow, window_end="until", n=1, by="v", partition_by=["k"]))


ONE_INPUT = {
    "slices": lambda s: s.key_by("k").window(TEN).agg(n=hw.count()),
    "elements": lambda s: s.key_by("k").window(TEN).process(Listed(), "k string, n long"),
    "a computed key": lambda s: s.key_by(lambda row: row.k, type="string").window(TEN).agg(n=hw.count()),
    "runs": lambda s: s.key_by("k").window(TEN).trigger(hw.triggers.count(2)).agg(n=hw.count()),
    "bursts": lambda s: s.key_by("k").window(hw.session("5 ms")).agg(n=hw.count()),
    "sessions of SQL": lambda s: s._add(SessionNode.of(s._flow, gap="5 ms", partition_by=["k"])),
    "the first of a key": lambda s: s._add(KeepFirstNode.of(s._flow, by="k")),
    "over": lambda s: over(s, "over", functions={"n": hw.count()}, partition_by=["k"]),
}
TWO_INPUTS = {
    "an interval": lambda a, b: a.interval_join(b, ("0 s", "1 s"), on="k"),
    "versions": lambda a, b: a.temporal_join(b.as_changelog(key="k"), on="k"),
    "windows": lambda a, b: a.join(b).where("k").equal_to("k").window(TEN).apply(),
    "windows by element": lambda a, b: (
        a.join(b).where("k").equal_to("k").window(TEN).trigger(hw.triggers.count(9)).apply()
    ),
}
SHOWN_ROWS = [(50, 50, '"a"', '{"k": "a", "v": 1}', 1), (60, 40, '"b"', '{"k": "b", "v": 2}', 1)]


def the_step(harness: Harness) -> StepStatus:
    (uid,) = harness._counted
    return harness.status(uid)


def told(rows: Any) -> list[tuple[Any, ...]]:
    return [(one.timestamp_ms, one.late_by_ms, one.key, one.row, one.rows) for one in rows]


@pytest.mark.parametrize("name", ONE_INPUT)
def test_a_step_shows_the_late_rows_that_it_drops(name: str) -> None:
    harness = Harness(ONE_INPUT[name], ROWS)
    harness.watermark(100)
    harness.push_all([("a", 1), ("b", 2), ("c", 3)], [50, 60, 150])
    status = the_step(harness)
    assert (status["late_dropped"], told(status.late_rows)) == (2, SHOWN_ROWS)


@pytest.mark.parametrize("name", TWO_INPUTS)
def test_a_join_shows_the_late_rows_of_its_left_side(name: str) -> None:
    harness = Harness(TWO_INPUTS[name], {"a": ROWS, "b": f"{ROWS}, row_kind string" if name == "versions" else ROWS})
    harness.watermark(100)
    harness.push_all([("a", 1), ("b", 2), ("c", 3)], [50, 60, 150], to="a")
    status = the_step(harness)
    assert (status["late_dropped"], told(status.late_rows)) == (2, SHOWN_ROWS)


def test_late_results_of_windows_are_shown_by_the_end_of_their_window() -> None:
    harness = Harness(top_of_windows, ROWS)
    harness.watermark(100)
    harness.push_all([("a", 50), ("b", 150)], [10, 10])
    (found,) = the_step(harness).late_rows
    assert (found.timestamp_ms, json.loads(found.key or "")["k"]) == (49, "a")


def test_rows_that_were_combined_are_shown_by_their_key_and_slice() -> None:
    env = hw.Environment("combined", engine="local", parallelism=1, max_rows_per_epoch=40)
    rows = [("z", 900)] * 40 + [("a", 3)] * 25 + [("b", 14)] * 15
    marks = hw.Watermarks.monotonous("at")
    stream = env.from_rows(rows, "k string, at long", marks).key_by("k").window(TEN).agg(n=hw.count())
    stream.with_uid("sums").sink(hw.connectors.blackhole())
    step = env.run().status().steps["sums"]
    assert step["late_dropped"] == 40
    assert told(step.late_rows) == [(0, 899, '"a"', None, 25), (10, 889, '"b"', None, 15)]


def test_nothing_is_shown_of_rows_that_go_to_a_side_output() -> None:
    late = hw.OutputTag("late", ROWS)
    harness = Harness(lambda s: s.key_by("k").window(TEN).late_to(late).agg(n=hw.count()), ROWS)
    harness.watermark(100)
    harness.push(("a", 1), at=5)
    assert (len(harness.take(late)), the_step(harness).late_rows) == (1, ())


@pytest.mark.parametrize("name", ["elements", "the first of a key"])
def test_of_ten_thousand_late_rows_the_newest_are_kept(name: str) -> None:
    harness = Harness(ONE_INPUT[name], ROWS, parallelism=2)
    harness.watermark(100_000)
    for first in range(0, 10_000, 2_500):
        numbers = range(first, first + 2_500)
        harness.push_all([("a", n) for n in numbers], list(numbers))
    status = the_step(harness)
    assert status["late_dropped"] == 10_000
    assert [json.loads(one.row or "")["v"] for one in status.late_rows] == list(range(10_000 - SHOWN, 10_000))
    assert {one.epoch for one in status.late_rows} == {max(one.epoch for one in status.late_rows)}


def dropped(table: pa.Table, key: Key, watermark_ms: int = 100) -> list[LateRow]:
    rows = DroppedRows()
    rows.add(Batch(table, np.zeros(len(table), np.int64)), np.arange(len(table)), watermark_ms, key)
    assert rows.take_count() == len(table)
    return list(rows.take_newest())


def test_long_values_are_cut_and_of_large_rows_fewer_are_shown() -> None:
    table = pa.table({"k": ["x" * 5_000] * 30, "v": [["y" * 1_000] * 1_000] * 30})
    found = dropped(table, Key(("k",), None, pa.string()))
    assert 1 <= len(found) < SHOWN
    assert all(len(one.row or "") == 400 and len(one.key or "") == 100 for one in found)
    assert {(one.row or "")[-1] for one in found} == {"…"}


def test_values_that_python_or_a_terminal_cannot_take_are_told_and_fail_nothing() -> None:
    beyond = pa.array([1 << 62], pa.int64()).view(pa.timestamp("us", "UTC"))
    nested = pa.StructArray.from_arrays([beyond], ["at"])
    hostile = "<script>alert(1)</script>\x1b[2J\x9b31m\u202e"
    table = pa.table({"at": beyond, "in": nested, "text": [hostile], "raw": [b"\xff\x00"], "nan": [float("nan")]})
    (found,) = dropped(table, NO_KEY, MAX_TIMESTAMP)
    assert (found.key, found.late_by_ms) == (None, None)
    assert found.row is not None
    assert found.row.isprintable()
    assert json.loads(found.row)["text"] == hostile
    assert json.loads(found.row)["raw"] == "ff00"


def test_they_travel_with_reports_into_the_status_and_not_into_the_history() -> None:
    rows = [LateRow(at, 10, '"a"', "{}", epoch=3) for at in range(15)]
    reports = [TaskReport((), {"s": StepCounters(20, 5, 100, late_rows=rows)}) for _ in range(2)]
    status = JobStatus("running").after(3, [TaskReport.from_bytes(one.to_bytes()) for one in reports])
    read = JobStatus.from_json(json.loads(json.dumps(status.to_json())), "here")
    assert read.steps["s"].late_rows == status.steps["s"].late_rows
    assert [one.timestamp_ms for one in read.steps["s"].late_rows] == [at for at in range(5, 15) for _ in range(2)]
    after = status.after(4, [TaskReport((), {"s": StepCounters(0, 0, 100, late_rows=[replace(rows[0], epoch=4)])})])
    assert [one.epoch for one in after.steps["s"].late_rows] == [3] * (SHOWN - 1) + [4]
    assert StepStatus.of({"rows_in": 1, "late_dropped": 2}).late_rows == ()
