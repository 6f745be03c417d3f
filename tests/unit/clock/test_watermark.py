from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.clock.sides import SidedValve
from headwater.clock.watermark import Valve
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.state.spread import Subtasks

MIN, MAX = MIN_TIMESTAMP, MAX_TIMESTAMP
Said = dict[str, int | str]
"""What channels say in an epoch: a watermark, "idle", or "active" without a new watermark."""


def play(valve: Valve, said: Said) -> tuple[int, bool]:
    for channel, word in said.items():
        valve.update(channel, word if isinstance(word, int) else MIN, idle=word == "idle")
    return valve.settle(), valve.is_idle()


CASES: dict[str, list[tuple[Said, int, bool]]] = {
    "one channel": [({"a": 0}, 0, False), ({"a": 25}, 25, False), ({"a": 18}, 25, False), ({"a": 42}, 42, False)],
    "one channel, idle in between": [
        ({"a": 25}, 25, False),
        ({"a": "idle"}, 25, True),
        ({"a": "idle"}, 25, True),
        ({"a": 50}, 50, False),
    ],
    "the minimum over channels": [
        ({"a": 0, "b": MIN, "c": MIN}, MIN, False),
        ({"b": 0, "c": 0}, 0, False),
        ({"a": 12, "b": 8, "c": 10}, 8, False),
        ({"b": 15}, 10, False),
        ({"c": 17}, 12, False),
        ({"a": 20}, 15, False),
    ],
    "a watermark behind the last one of its channel changes nothing": [
        ({"a": 10, "b": 7}, 7, False),
        ({"a": 8, "b": 3}, 7, False),
        ({"b": 9}, 9, False),
    ],
    "idle channels do not hold the others back": [
        ({"a": 15, "b": 10, "c": 20}, 10, False),
        ({"b": "idle"}, 15, False),
        ({"a": "idle"}, 20, False),
        ({"c": 25}, 25, False),
    ],
    "a channel that never said anything does not block once it is idle": [
        ({"a": 15, "b": MIN}, MIN, False),
        ({"b": "idle"}, 15, False),
        ({"a": 18}, 18, False),
    ],
    "when the last one goes idle the watermark goes to the largest": [
        ({"a": 10, "b": 25, "c": 17}, 10, False),
        ({"a": "idle", "b": "idle", "c": "idle"}, 25, True),
        ({"a": "idle", "b": "idle", "c": "idle"}, 25, True),
    ],
    "the largest counts also when its channel went idle first": [
        ({"a": 10, "b": 25}, 10, False),
        ({"b": "idle"}, 10, False),
        ({"a": "idle"}, 25, True),
    ],
    "a channel that resumes counts again once it has caught up": [
        ({"a": 10, "b": 10}, 10, False),
        ({"b": "idle", "a": 30}, 30, False),
        ({"b": 20, "a": 35}, 35, False),
        ({"b": 34, "a": 40}, 40, False),
        ({"b": 40, "a": 50}, 40, False),
        ({"a": 60}, 40, False),
        ({"b": 45}, 45, False),
    ],
    "catching up is judged by the watermark that stood before": [
        ({"a": 10, "b": 10}, 10, False),
        ({"b": "idle"}, 10, False),
        ({"b": 12, "a": 90}, 12, False),
    ],
    "one that resumes behind ends the idleness, and moves nothing by itself": [
        ({"a": 10, "b": 30}, 10, False),
        ({"a": "idle", "b": "idle"}, 30, True),
        ({"a": "active"}, 30, False),
        ({"a": 20}, 30, False),
        ({"a": "idle"}, 30, True),
        ({"a": 31}, 31, False),
    ],
    "a channel that resumes level with the watermark counts at once": [
        ({"a": 10, "b": 10}, 10, False),
        ({"b": "idle"}, 10, False),
        ({"b": "active", "a": 20}, 10, False),
    ],
    "a channel that is new holds the watermark, which does not go back": [
        ({"a": 10}, 10, False),
        ({"a": 20, "b": MIN}, 10, False),
        ({"b": 5}, 10, False),
        ({"b": 15}, 15, False),
    ],
    "a channel at its end does not count": [
        ({"a": 10, "b": 20}, 10, False),
        ({"b": MAX}, 10, False),
        ({"a": 30}, 30, False),
        ({"a": MAX}, MAX, False),
    ],
    "an end and idleness together are not the end": [
        ({"a": 10, "b": 20}, 10, False),
        ({"b": MAX, "a": "idle"}, 10, True),
        ({"a": 40}, 40, False),
        ({"a": "idle"}, 40, True),
        ({"a": MAX}, MAX, False),
    ],
}


@pytest.mark.parametrize("case", CASES)
def test_valve(case: str) -> None:
    valve = Valve()
    assert (valve.watermark(), valve.is_idle()) == (MIN, False)
    for number, (said, watermark, is_idle) in enumerate(CASES[case]):
        assert play(valve, said) == (watermark, is_idle), f"step {number}"
        assert valve.watermark() == watermark


def test_the_valve_is_state() -> None:
    valve, other = Valve(), Valve()
    play(valve, {"a": 10, "b": 7})
    changes = valve.changes()
    assert changes is not None
    other.apply(changes)
    play(valve, {"b": 6})
    assert valve.changes() is None
    play(valve, {"b": 8})
    changes = valve.changes()
    assert changes is not None
    assert changes.to_pylist() == [{"channel": "b", "watermark": 8}]
    other.apply(changes)
    assert other.dump() == valve.dump()
    assert len(other) == 2


def test_what_was_stored_before_there_was_idleness_can_be_read() -> None:
    old, valve = Valve(), Valve()
    play(old, {"a": 10, "b": 7})
    stored = old.dump()
    assert stored.column_names == ["channel", "watermark"]
    valve.apply(stored)
    assert (valve.watermark(), valve.is_idle()) == (7, False)


def test_a_table_shows_idleness_only_while_there_is_some() -> None:
    valve = Valve()
    play(valve, {"a": 10, "b": 7})
    play(valve, {"b": "idle"})
    assert valve.dump().to_pylist() == [
        {"channel": "a", "watermark": 10, "status": 0},
        {"channel": "b", "watermark": 7, "status": 1},
        {"channel": "", "watermark": 10, "status": 0},
    ]
    play(valve, {"b": 10})
    assert valve.dump().column_names == ["channel", "watermark"]


WORDS = st.one_of(st.integers(0, 30), st.sampled_from(["idle", "active", MAX]))
EPOCHS = st.lists(st.dictionaries(st.sampled_from("abc"), WORDS), max_size=12)


def in_turn(said: Said) -> Said:
    """As a host gives it: by channel."""
    return dict(sorted(said.items()))


@given(epochs=EPOCHS, order=st.randoms())
def test_the_watermark_never_goes_back_and_no_order_within_an_epoch_matters(epochs: list[Said], order: Any) -> None:
    valve, other = Valve(), Valve()
    before = MIN
    for said in epochs:
        shuffled = list(said.items())
        order.shuffle(shuffled)
        found = play(valve, in_turn(said))
        assert play(other, dict(shuffled)) == found
        assert found[0] >= before
        before = found[0]


@given(epochs=EPOCHS, dumped=st.lists(st.booleans(), min_size=12, max_size=12))
def test_a_rebuilt_valve_goes_on_with_the_same_bytes(epochs: list[Said], dumped: list[bool]) -> None:
    valve, follower = Valve(), Valve()
    for said, by_dump in zip(epochs, dumped, strict=False):
        replayed = Valve()
        replayed.apply(valve.dump())
        assert play(valve, in_turn(said)) == play(replayed, in_turn(said))
        changes = valve.changes()
        assert replayed.changes() == changes
        if by_dump:
            follower = Valve()
            follower.apply(valve.dump())
        elif changes is not None:
            follower.apply(changes)
        assert follower.dump() == valve.dump() == replayed.dump()
        assert (follower.watermark(), follower.is_idle()) == (valve.watermark(), valve.is_idle())


def valve_of(said: Said, *, then: Said | None = None) -> Valve:
    valve = Valve()
    play(valve, said)
    play(valve, then or {})
    return valve


def moved(valves: list[Valve], count: int) -> list[Valve]:
    """The valves of so many subtasks; 'step' runs on all of them, other channels are splits."""
    to = Subtasks(count, 128, entries=frozenset({"step"}), feeders=frozenset({"rows", "step"}))
    parts = Valve.spread.deal([valve.dump() for valve in valves], to)
    found = []
    for part in parts:
        valve = Valve()
        valve.apply(part)
        found.append(valve)
    return found


@pytest.mark.parametrize(("before", "after"), [(1, 3), (2, 1), (3, 2)])
def test_a_valve_that_moves_stands_where_it_stood(before: int, after: int) -> None:
    said: Said = {"rows/a/b": 20, "rows/0": 30, **{f"step/{subtask}": 15 + subtask for subtask in range(before)}}
    for valve in moved([valve_of(said) for _ in range(before)], after):
        assert valve.watermark() == valve.settle() == 15
        assert play(valve, {"rows/a/b": 50, "rows/0": 50}) == (15, False)
        assert play(valve, {f"step/{subtask}": 40 for subtask in range(after)}) == (40, False)
        assert set(valve._channels) == {"rows/a/b", "rows/0", *(f"step/{subtask}" for subtask in range(after))}


def test_nobody_waits_for_a_channel_that_is_gone() -> None:
    said: Said = {"step/0": 10, "step/1": 10, "step/2": 10}
    (valve,) = moved([valve_of(said)] * 3, 1)
    assert play(valve, {"step/0": 99}) == (99, False)


def test_nobody_waits_for_a_step_or_source_that_is_no_longer_read() -> None:
    (valve,) = moved([valve_of({"step/0": 30, "gone/0": 10, "gone/1": 10})], 1)
    assert valve.watermark() == 10
    assert play(valve, {"step/0": 40}) == (40, False)


def test_what_was_late_stays_late_when_the_watermark_was_ahead_of_its_channels() -> None:
    ahead = valve_of({"rows/0": 10, "rows/1": 90}, then={"rows/0": "idle"})
    assert ahead.watermark() == 90
    for valve in moved([ahead, ahead], 3):
        assert valve.watermark() == 90
        assert play(valve, {"rows/0": 20}) == (90, False)  # it resumes behind, and does not count yet


def test_the_slowest_counts_where_valves_do_not_agree() -> None:
    (valve,) = moved([valve_of({"rows/0": 10, "step/0": 30}), valve_of({"rows/0": 12, "step/0": 5})], 1)
    assert valve.watermark() == 5
    assert valve._channels == {"rows/0": (10, 0), "step/0": (5, 0)}


def test_idleness_and_the_end_move_along() -> None:
    for said in ({"step/0": "idle", "step/1": "idle"}, {"step/0": "idle", "step/1": MAX}):
        for valve in moved([valve_of(said)] * 2, 3):
            assert valve.is_idle()
    for valve in moved([valve_of({"step/0": "idle", "step/1": 5})] * 2, 3):
        assert not valve.is_idle()
    for valve in moved([valve_of({"step/0": MAX, "step/1": MAX, "rows/0": MAX})] * 2, 3):
        assert valve.settle() == MAX


def test_event_time_waits_for_an_input_that_was_idle_and_goes_on() -> None:
    valve = SidedValve()
    valve.update("a", 5, side=0)
    valve.update("b", 10, side=1)
    assert valve.settle() == 5
    valve.update("a", 5, idle=True, side=0)
    assert valve.settle() == 10
    valve.update("a", 7, side=0)
    valve.update("b", 20, side=1)
    assert valve.settle() == 10
    valve.update("a", 15, side=0)
    assert valve.settle() == 15


def test_a_channel_of_an_input_counts_again_when_it_has_caught_up_with_its_side() -> None:
    valve = SidedValve()
    for channel in ("a", "b"):
        valve.update(channel, 5, side=0)
    valve.update("c", 30, side=1)
    valve.update("a", 5, idle=True, side=0)
    valve.update("b", 10, side=0)
    assert valve.settle() == 10
    valve.update("a", 8, side=0)
    valve.update("b", 20, side=0)
    assert valve.settle() == 20


def test_both_sides_survive_as_tables() -> None:
    valve, copy = SidedValve(), SidedValve()
    valve.update("a", 5, side=0)
    valve.update("b", 10, idle=True, side=1)
    valve.update("b", 40, idle=True, side=1)
    valve.update("a", 5, idle=True, side=0)
    assert valve.settle() == 40
    for name, table in valve.tables().items():
        copy.tables()[name].apply(table.dump())
    assert copy.watermark() == 40
    for one in (valve, copy):
        one.update("a", 30, side=0)
        assert one.settle() == 40
        one.update("a", 50, side=0)
        assert one.settle() == 50
