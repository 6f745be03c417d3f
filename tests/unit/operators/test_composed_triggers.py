"""Compositions of compositions: what starts over, and when."""

from __future__ import annotations

import pytest

import headwater as hw
from headwater.windows import triggers


def fired_after(trigger: hw.Trigger, rows: int) -> list[int]:
    """After which of so many rows a window fires."""
    harness = hw.testing.Harness(
        lambda s: s.key_by("k").window(hw.global_window()).trigger(trigger).agg(n=hw.count()), schema="k string"
    )
    found = []
    for row in range(1, rows + 1):
        harness.push({"k": "a"}, at=row)
        found += [row] * len(harness.take())
    return found


@pytest.mark.parametrize(
    ("trigger", "rows"),
    [
        (hw.then(triggers.count(2), triggers.count(3)), [2, 5, 8, 11]),
        (hw.repeat(hw.then(triggers.count(2), triggers.count(3))), [2, 5, 7, 10, 12]),
        (hw.repeat(hw.then(triggers.count(1), hw.then(triggers.count(2), triggers.count(3)))), [1, 3, 6, 7, 9, 12]),
        (hw.then(triggers.count(4), hw.repeat(hw.both(triggers.count(2), triggers.count(3)))), [4, 7, 10]),
        (hw.either(triggers.count(4), triggers.count(6)), [4, 6, 8, 12]),
    ],
)
def test_composed(trigger, rows):
    assert fired_after(trigger, 12) == rows


def panes(trigger: hw.Trigger, *watermarks: int) -> list[str]:
    """The kinds of the firings of a window with one row."""
    harness = hw.testing.Harness(
        lambda s: (
            s.key_by("k")
            .window(hw.tumbling("10 ms"))
            .trigger(trigger)
            .allow_lateness("50 ms")
            .panes("accumulating", info=True)
            .agg(n=hw.count())
        ),
        schema="k string",
    )
    harness.push({"k": "a"}, at=1)
    for watermark in watermarks:
        harness.watermark(watermark)
    return [row.pane_kind for row in harness.take()]


def test_a_trigger_that_starts_over_fires_the_same_however_event_time_moves():
    trigger = hw.repeat(hw.either(triggers.continuous("5 ms"), triggers.event_time()))
    assert panes(trigger, 20) == panes(trigger, 6, 20) == ["early", "on_time"]


def test_a_trigger_whose_turn_is_over_leaves_the_timers_of_others():
    trigger = hw.either(
        triggers.event_time(), hw.then(hw.either(triggers.count(1), triggers.event_time()), triggers.count(5))
    )
    assert panes(trigger, 20) == ["early", "on_time"]
