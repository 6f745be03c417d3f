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


def fired_at(trigger: hw.Trigger, rows: list[int], until: int) -> list[int]:
    """At what time a window fires that gets rows at these times."""
    harness = hw.testing.Harness(
        lambda s: s.key_by("k").window(hw.global_window()).trigger(trigger).agg(n=hw.count()), schema="k string"
    )
    found = []
    for now in range(until):
        harness.advance_to(now)
        if now in rows:
            harness.push({"k": "a"})
        found += [now] * len(harness.take())
    return found


def test_a_timeout_counts_from_the_first_row_or_from_the_last():
    assert fired_at(triggers.timeout(triggers.never(), "10 ms"), [1, 4, 9, 20], 40) == [11, 30]
    renewed = triggers.timeout(triggers.never(), "10 ms", reset_on_new_record=True)
    assert fired_at(renewed, [1, 4, 9, 20], 40) == [19, 30]


def test_a_timeout_that_clears_nothing_comes_once_until_the_trigger_fires_for_a_row():
    once = triggers.timeout(triggers.count(3), "5 ms", clear_on_timeout=False)
    assert fired_at(once, [1, 10, 20, 30], 50) == [6, 20, 35]
    assert fired_at(triggers.timeout(triggers.count(3), "5 ms"), [1, 10, 20, 30], 50) == [6, 15, 25, 35]


def test_timeouts_beside_each_other_do_not_take_each_others_timers_away():
    both = hw.either(triggers.timeout(triggers.count(2), "10 ms"), triggers.timeout(triggers.count(3), "10 ms"))
    assert fired_at(both, [1, 2], 30) == [2, 11]


def test_a_timeout_that_cannot_be_is_refused():
    with pytest.raises(hw.GraphError, match=r"'triggers.timeout' needs an interval of more than 0"):
        triggers.timeout(triggers.count(2), "0 s")
    with pytest.raises(hw.GraphError, match=r"'triggers.timeout' needs a hw.Trigger"):
        triggers.timeout("count", "1 s")
    once = triggers.timeout(triggers.count(2), "1 s", clear_on_timeout=False)
    stream = hw.Environment("test", engine="local").from_rows([], "k string").key_by("k")
    with pytest.raises(hw.GraphError, match="needs a trigger that can merge"):
        stream.window(hw.session("1 s")).trigger(once)


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
