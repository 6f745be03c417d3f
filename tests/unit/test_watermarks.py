from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import headwater as hw
from headwater.watermarks import Watermarks


def test_strategies_know_their_delay() -> None:
    assert Watermarks.bounded("at", "5 s") == Watermarks("at", 5_000)
    assert Watermarks.monotonous("at").delay_ms == 0
    assert Watermarks.none().column is None


def test_idleness_and_alignment_are_added_to_any_strategy() -> None:
    strategy = Watermarks.bounded("at", "5 s").with_idleness("1 min").aligned("orders", "10 s")
    assert strategy == Watermarks("at", 5_000, idle_ms=60_000, group="orders", max_drift_ms=10_000)
    assert Watermarks.none().with_idleness("1 s").idle_ms == 1_000


TS: Any = 5
BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "a column without a name": (lambda: Watermarks.monotonous(""), "need the name of the event-time column; got ''"),
    "a column that is none": (lambda: Watermarks.bounded(TS, "1 s"), "need the name of the event-time column; got 5"),
    "a negative delay": (lambda: Watermarks.bounded("ts", "-1 s"), "delay of bounded watermarks must not be negative"),
    "no function": (lambda: Watermarks.punctuated("ts", TS), "need a function of a row; got 5"),
    "no factory": (lambda: Watermarks.custom("ts", TS), "need something that makes a WatermarkGenerator; got 5"),
    "a class of another kind": (
        lambda: Watermarks.custom("ts", dict),
        "makes a WatermarkGenerator; got <class 'dict'>",
    ),  # type: ignore[arg-type]
    "negative idleness": (lambda: Watermarks.none().with_idleness("-1 s"), "timeout of idleness must not be negative"),
    "no idleness": (lambda: Watermarks.none().with_idleness("0 s"), "need a timeout of idleness above zero"),
    "negative drift": (lambda: Watermarks.monotonous("ts").aligned("g", "-1 s"), "drift of aligned .* not be negative"),
    "a group without a name": (lambda: Watermarks.monotonous("ts").aligned("", "1 s"), "name of the alignment group"),
    "alignment without event time": (lambda: Watermarks.none().aligned("g", "1 s"), "only when rows have timestamps"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_argument_is_refused_at_once(case: str) -> None:
    make, message = BAD[case]
    with pytest.raises(hw.HeadwaterError, match=message):
        make()


def test_a_source_refuses_a_column_that_is_not_there_or_is_no_time() -> None:
    env = hw.Environment("bad", engine="local")
    with pytest.raises(hw.SchemaError, match="there is no field 'when'; the fields are k, ts"):
        env.from_rows([], "k string, ts long", Watermarks.punctuated("when", lambda row: None))
    with pytest.raises(hw.GraphError, match="takes event time from a timestamp or a bigint of milliseconds; got 'k'"):
        env.from_rows([], "k string, ts long", Watermarks.custom("k", hw.WatermarkGenerator))
    with pytest.raises(hw.GraphError, match="needs a watermark strategy; got 'ts'"):
        env.from_rows([], "k string, ts long", "ts")  # type: ignore[arg-type]
