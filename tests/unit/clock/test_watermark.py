from __future__ import annotations

from headwater.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.clock.watermark import Valve
from headwater.watermarks import Watermarks


def test_the_watermark_is_the_minimum_over_channels() -> None:
    valve = Valve()
    assert valve.watermark() == MIN_TIMESTAMP
    valve.update("a", 10)
    assert valve.watermark() == 10
    valve.update("b", 5)
    valve.update("a", 20)
    assert valve.watermark() == 5
    valve.update("b", MAX_TIMESTAMP)
    assert valve.watermark() == 20


def test_a_channel_never_goes_back() -> None:
    valve = Valve()
    valve.update("a", 10)
    valve.update("a", 3)
    assert valve.watermark() == 10


def test_a_channel_without_a_watermark_holds_event_time_back() -> None:
    valve = Valve()
    valve.update("a", 10)
    valve.update("b", MIN_TIMESTAMP)
    assert valve.watermark() == MIN_TIMESTAMP


def test_the_valve_is_state() -> None:
    valve, other = Valve(), Valve()
    valve.update("a", 10)
    valve.update("b", 7)
    changes = valve.changes()
    assert changes is not None
    other.apply(changes)
    valve.update("b", 6)
    assert valve.changes() is None
    valve.update("b", 8)
    changes = valve.changes()
    assert changes is not None
    assert changes.to_pylist() == [{"channel": "b", "watermark": 8}]
    other.apply(changes)
    assert other.dump() == valve.dump()
    assert len(other) == 2


def test_strategies_know_their_delay() -> None:
    assert Watermarks.bounded("at", "5 s") == Watermarks("at", 5_000)
    assert Watermarks.monotonous("at").delay_ms == 0
    assert Watermarks.none().column is None
