from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.data.batch import MIN_TIMESTAMP
from headwater.streams.stream import Stream
from headwater.testing import Harness

SCHEMA = "k string, n long"
LATE = hw.OutputTag("late", SCHEMA)


class Total(hw.KeyedProcessFunction):
    total = hw.ValueState("bigint", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        if ctx.timestamp is not None and ctx.timestamp <= ctx.watermark:
            ctx.output(LATE, event)
            return
        self.total.set(self.total.get() + event.n)
        if event.n < 0:
            raise ValueError("negative")
        ctx.timers.event_time((ctx.timestamp or 0) + 10)
        ctx.timers.processing_time(ctx.now + 100)

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield timer.domain, self.total.get()


def build(stream: Stream) -> Stream:
    return stream.key_by("k").process(Total(), "what string, n long")


@pytest.fixture(params=[1, 3])
def harness(request: pytest.FixtureRequest) -> Harness:
    return Harness(build, SCHEMA, parallelism=request.param)


def test_time_moves_by_hand(harness: Harness) -> None:
    harness.push({"k": "a", "n": 5}, at=1)
    harness.push(("a", 6), at=2)
    assert harness.take() == []
    harness.watermark(11)
    assert [(row.what, row.n, row.timestamp) for row in harness.take()] == [("event", 11, 11)]
    harness.advance_to(99)
    assert harness.take() == []
    harness.advance_to(100)
    assert [(row, row.timestamp) for row in harness.take()] == [(("processing", 11), None)]
    harness.end()
    assert [row.timestamp for row in harness.take()] == [12]


def test_side_outputs_are_taken_by_tag(harness: Harness) -> None:
    harness.watermark(50)
    harness.push(("a", 1), at=50)
    harness.push(("a", 2), at=51)
    assert [(row, row.timestamp) for row in harness.take(LATE)] == [(("a", 1), 50)]
    assert harness.take(LATE) == []


def test_a_snapshot_goes_on_elsewhere(harness: Harness) -> None:
    harness.push(("a", 5), at=1)
    harness.push(("b", 7), at=1)
    harness.advance_to(40)
    parallelism = harness._cluster.plan.parallelism
    other = Harness.restore(build, SCHEMA, harness.snapshot(), parallelism=parallelism)
    for one in (harness, other):
        one.push(("a", 1), at=2)
        one.watermark(99)
        one.advance_to(140)
    assert sorted(other.take()) == sorted(harness.take())
    assert other.snapshot() == harness.snapshot()


def test_a_snapshot_remembers_the_watermark(harness: Harness) -> None:
    harness.watermark(50)
    parallelism = harness._cluster.plan.parallelism
    other = Harness.restore(build, SCHEMA, harness.snapshot(), parallelism=parallelism)
    other.push(("a", 1), at=50)
    assert other.take(LATE) == [("a", 1)]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_snapshot_goes_on_at_another_parallelism(harness: Harness, parallelism: int) -> None:
    for n, key in enumerate("abcdef"):
        harness.push((key, n), at=1)
    harness.advance_to(40)
    harness.take()
    other = Harness.restore(build, SCHEMA, harness.snapshot(), parallelism=parallelism)
    for one in (harness, other):
        for key in "abcdef":
            one.push((key, 1), at=2)
        one.watermark(99)
        one.advance_to(140)
    assert sorted(other.take()) == sorted(harness.take())


def test_a_snapshot_of_another_program_is_refused(harness: Harness) -> None:
    with pytest.raises(hw.ChangelogError, match="taken of another program or version"):
        Harness.restore(lambda stream: stream.map(lambda r: r), SCHEMA, harness.snapshot())


def test_what_user_code_raises_is_told_with_step_key_and_time(harness: Harness) -> None:
    with pytest.raises(
        hw.UserCodeError,
        match=r"step 'total' failed for key 'a' at timestamp 7, .*: ValueError: negative",
    ) as failed:
        harness.push(("a", -1), at=7)
    error = failed.value
    assert (error.step, error.key, error.timestamp) == ("total", "a", 7)
    assert "raise ValueError" in error.traceback


def test_rows_that_do_not_fit_are_refused(harness: Harness) -> None:
    with pytest.raises(hw.RowError, match="step 'harness', field 'n'"):
        harness.push(("a", "x"))


def test_a_field_named_timestamp_keeps_its_value() -> None:
    harness = Harness(lambda s: s.map(lambda r: r), "timestamp long")
    harness.push((5,), at=1)
    assert harness.take()[0].timestamp == 5


# -- what it tells --------------------------------------------------------------------------------------------------


def tens(left: Stream, right: Stream) -> Stream:
    counted = left.union(right).key_by("k").window(hw.tumbling("10 ms")).agg(n=hw.sum("n")).with_uid("tens")
    return counted.key_by("k").window(hw.tumbling("20 ms")).agg(n=hw.sum("n")).with_uid("twenties")


TWO = {"left": SCHEMA, "right": SCHEMA}


@pytest.mark.parametrize("parallelism", [1, 2])
def test_it_tells_what_steps_count_and_where_they_stand(parallelism: int) -> None:
    harness = Harness(tens, TWO, parallelism=parallelism)
    harness.push_all([("a", 1), ("b", 2), ("c", 3)], [5, 6, 7], to="left")
    assert harness.status("tens").rows_in == 3
    assert harness.status("tens").state["slices"] > 0
    harness.watermark(12, of="left")
    assert harness.status("tens").watermark_ms == MIN_TIMESTAMP
    harness.watermark(30, of="right")
    assert [harness.status(step).watermark_ms for step in ("tens", "twenties")] == [12, 12]
    assert (harness.status("tens").rows_out, harness.status("twenties").rows_in) == (3, 3)
    harness.push(("a", 1), at=5, to="right")
    assert harness.status("tens")["late_dropped"] == harness.status("tens").counters["late_dropped"] == 1
    restored = Harness.restore(tens, TWO, harness.snapshot(), parallelism=parallelism)
    assert restored.status("twenties").watermark_ms == 12
    assert restored.status("tens")["late_dropped"] == 0  # it counts anew, as a job does


def test_it_tells_whether_a_step_is_idle() -> None:
    harness = Harness(tens, TWO)
    harness.watermark(5)
    harness.idle(of="left")
    assert not harness.is_idle("tens")
    harness.idle(of="right")
    assert harness.is_idle("tens")
    assert harness.is_idle("twenties")
    harness.push(("a", 1), at=6, to="left")
    assert not harness.is_idle("twenties")


def test_it_names_the_steps_there_are(harness: Harness) -> None:
    assert dict(harness.status()) == dict(harness.status("total"))
    with pytest.raises(ValueError, match="the harness has the steps total; got 'totals'"):
        harness.status("totals")
    with pytest.raises(ValueError, match="the harness has the steps tens, twenties; got None"):
        Harness(tens, TWO).is_idle()


def test_the_page_on_tests_lists_every_call() -> None:
    page = (Path(__file__).parents[3] / "docs" / "howto" / "test-your-job.md").read_text()
    table = "\n".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    listed = set(re.findall(r"`(?:Harness\.)?(\w+)\(", table))
    public = {name for name in vars(Harness) if not name.startswith("_")}
    assert listed & public == public
