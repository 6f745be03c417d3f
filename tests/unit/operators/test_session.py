"""Sessions by columns beside those of streams, which take rows one by one."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import given
from tests.parts.examples import examples

import headwater as hw
from headwater.graph.nodes import SessionNode
from headwater.testing import Harness
from headwater.windows.triggers import EventTimeTrigger

SCHEMA = "k string, v long"
EPOCHS = st.lists(
    st.tuples(st.lists(st.tuples(st.sampled_from("ab"), st.integers(-30, 30)), max_size=8), st.integers(0, 15)),
    max_size=6,
)
"""Rows with their times, and how far the watermark then moves; times are around where it stands."""


class OneByOne(EventTimeTrigger):
    """The default trigger under another name, so that rows go one by one."""


def by_columns(**settings: Any) -> Harness:
    def build(stream: Any) -> Any:
        return stream._add(SessionNode.of(stream._flow, gap="10 ms", partition_by=["k"], **settings))

    return Harness(build, SCHEMA)


def row_by_row() -> Harness:
    def build(stream: Any) -> Any:
        windows = stream.key_by("k").window(hw.session("10 ms")).trigger(OneByOne())
        return windows.agg(total=hw.sum("v"), rows=hw.count())

    return Harness(build, SCHEMA)


@examples(100)
@given(EPOCHS)
def test_sessions_by_columns_are_those_that_rows_make_one_by_one(
    epochs: list[tuple[list[tuple[str, int]], int]],
) -> None:
    """Late rows among them: each goes into what is open when it comes, or nowhere."""
    folded, rows = by_columns(aggregates={"total": hw.sum("v"), "rows": hw.count()}), by_columns()
    beside, watermark = row_by_row(), 0
    for number, (given_rows, ahead) in enumerate([*epochs, ([], 100)]):
        values = [(key, 100 * number + place) for place, (key, _) in enumerate(given_rows)]
        times = [watermark + at for _, at in given_rows]
        for harness in (folded, rows):
            harness.push_all(values, times)
        for value, at in zip(values, times, strict=True):
            beside.push(value, at=at)
        watermark += ahead
        for harness in (folded, rows, beside):
            harness.watermark(watermark)
        expected = sorted(map(tuple, beside.take()))
        assert sorted(map(tuple, folded.take())) == expected
        sessions: dict[Any, list[int]] = {}
        for row in rows.take():
            sessions.setdefault((row.k, row.window_start, row.window_end), []).append(row.v)
        assert sorted((*bounds, sum(own), len(own)) for bounds, own in sessions.items()) == expected
    assert folded.state_sizes() == rows.state_sizes() == {}


def test_values_in_order_are_in_that_of_arrival_also_of_sessions_that_became_one() -> None:
    harness = by_columns(aggregates={"all": hw.collect_list("v"), "first": hw.first("v")})
    for value, at in ((1, 20), (2, 0), (3, 21), (4, 1), (5, 10)):
        harness.push(("a", value), at=at)
    harness.watermark(30)
    assert [(row.all, row.first) for row in harness.take()] == [([1, 2, 3, 4, 5], 1)]
