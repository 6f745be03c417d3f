from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.clock.watermark import Valve

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
