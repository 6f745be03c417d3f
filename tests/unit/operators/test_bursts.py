"""Sessions by bursts give what they give row by row, and Python is called per burst."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import given
from tests.parts.examples import examples

import headwater as hw
from headwater.windows.triggers import EventTimeTrigger

SCHEMA = "k string, v long"
LATE = hw.OutputTag("late", "k string, v long, late_by_ms long")


class Same(EventTimeTrigger):
    """The default trigger under another name, so that rows go one by one."""


def harness(trigger: hw.Trigger | None) -> hw.testing.Harness:
    def build(stream: Any) -> Any:
        windows = stream.key_by("k").window(hw.session("10 ms")).allow_lateness("15 ms").late_to(LATE)
        if trigger is not None:
            windows = windows.trigger(trigger)
        return windows.agg(n=hw.count(), total=hw.sum("v"), low=hw.min("v"), mean=hw.avg("v"))

    return hw.testing.Harness(build, schema=SCHEMA)


rows = st.tuples(st.sampled_from("ab"), st.integers(-5, 5), st.integers(-60, 120))
actions = st.lists(st.one_of(rows, st.integers(-40, 130)), max_size=40)


@examples(60)
@given(actions)
def test_bursts_equal_rows(actions):
    """A row an epoch, with random watermarks: late rows, merges and updates of sessions that have fired."""
    by_bursts, by_rows = harness(None), harness(Same())
    for action in actions:
        for one in (by_bursts, by_rows):
            if isinstance(action, int):
                one.watermark(action)
            else:
                one.push({"k": action[0], "v": action[1]}, at=action[2])
        assert sorted(map(tuple, by_bursts.take())) == sorted(map(tuple, by_rows.take()))
        assert list(map(tuple, by_bursts.take(LATE))) == list(map(tuple, by_rows.take(LATE)))
    by_bursts.end()
    by_rows.end()
    assert sorted(map(tuple, by_bursts.take())) == sorted(map(tuple, by_rows.take()))


@examples(20)
@given(st.lists(rows, min_size=1, max_size=60))
def test_a_batch_of_rows_makes_the_sessions_that_its_rows_make(rows):
    env = hw.Environment("bursts", engine="local", parallelism=2)
    table = [{"k": k, "v": v, "ts": ts} for k, v, ts in rows]
    stream = env.source(
        hw.testing.TimedRows([[(0, row) for row in table]], f"{SCHEMA}, ts long"),
        f"{SCHEMA}, ts long",
        hw.Watermarks.bounded("ts", "1 min"),
    )
    found = stream.key_by("k").window(hw.session("10 ms")).agg(n=hw.count(), total=hw.sum("v")).collect()
    expected: dict[tuple[str, int], list[int]] = {}
    last: dict[str, tuple[int, int]] = {}
    for k, v, ts in sorted(rows, key=lambda row: row[2]):
        start, reached = last.get(k, (ts, ts))
        if ts > reached + 10:
            start = ts
        last[k] = (start, ts)
        expected.setdefault((k, start), []).append(v)
    assert sorted((r.k, round(r.window_start.timestamp() * 1000), r.n, r.total) for r in found) == sorted(
        (k, start, len(values), sum(values)) for (k, start), values in expected.items()
    )
