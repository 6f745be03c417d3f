"""Windowed cases run on Headwater's harness."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import headwater as hw
from headwater.testing import Harness

LATE = hw.OutputTag("late", "k string, v bigint")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ways(case: dict[str, Any]) -> tuple[str, ...]:
    """The methods that compute a case's function; each is another path through the operators."""
    return ("process",) if case["function"] == "list" else ("agg", "aggregate")


def seen(case: dict[str, Any], way: str, flink: dict[str, Any]) -> dict[str, Any]:
    """What Flink emitted, as that way of running the case can tell it: all of it, for every action is an epoch."""
    return flink


def run_headwater(case: dict[str, Any], way: str) -> dict[str, Any]:
    """What a case emits on Headwater, in the form that window_cases.py describes."""
    harness = Harness(lambda stream: build(stream, case, way), "k string, v bigint")
    fired: list[list[Any]] = []
    late: list[list[Any]] = []
    for step, (action, *arguments) in enumerate(case["actions"]):
        if action == "row":
            key, value, timestamp = arguments
            harness.push({"k": key, "v": value}, at=timestamp)
        elif action == "watermark":
            harness.watermark(*arguments)
        elif action == "clock":
            harness.advance_to(*arguments)
        else:
            harness.end()
        fired += [[step, row.k, *_bounds(row), _values(row), row.timestamp] for row in harness.take()]
        late += [[step, row.k, row.v, row.timestamp] for row in harness.take(LATE)]
    return {"id": case["id"], "fired": fired, "late": late}


def build(stream: hw.Stream, case: dict[str, Any], way: str) -> hw.Stream:
    """The case's program."""
    windowed = in_windows(stream.key_by("k"), case)
    if case["late"]:
        windowed = windowed.late_to(LATE)
    function = case["function"]
    if way == "process":
        return windowed.process(Values(), "k string, start bigint, stop bigint, result array<bigint>")
    if way == "aggregate":
        return windowed.aggregate(Fold(function), accumulator="bigint", schema="result bigint")
    return windowed.agg(result=hw.count() if function == "count" else getattr(hw, function)("v"))


def in_windows(stream: Any, case: dict[str, Any]) -> Any:
    """What has a method `window`, in the case's windows, with its trigger, evictor and lateness."""
    windowed = stream.window(_window(case["window"]))
    if case["trigger"]:
        windowed = windowed.trigger(_trigger(case["trigger"]))
    if case["evictor"]:
        windowed = windowed.evict(_evictor(case["evictor"]), after=case["evictor"]["after"])
    if case["lateness"]:
        windowed = windowed.allow_lateness(_ms(case["lateness"]))
    return windowed


def _window(spec: dict[str, Any]) -> Any:
    match spec["kind"]:
        case "tumbling":
            window = hw.tumbling(_ms(spec["size"]), offset=_ms(spec["offset"]))
        case "sliding":
            window = hw.sliding(_ms(spec["size"]), _ms(spec["slide"]), offset=_ms(spec["offset"]))
        case "session":
            window = hw.session(_ms(spec["gap"]))
        case "count":
            window = hw.count(spec["size"], spec["slide"]) if "slide" in spec else hw.count(spec["size"])
        case _:
            window = hw.global_window()
    return hw.processing_time(window) if spec.get("clock") else window


def _trigger(spec: dict[str, Any]) -> Any:
    match spec["kind"]:
        case "count":
            trigger = hw.triggers.count(spec["n"])
        case "delta":
            trigger = hw.triggers.delta(spec["threshold"], _growth)
        case "event_time" | "processing_time" as kind:
            trigger = getattr(hw.triggers, kind)()
        case kind:
            trigger = getattr(hw.triggers, kind)(_ms(spec["interval"]))
    return hw.triggers.purging(trigger) if spec["purging"] else trigger


def _evictor(spec: dict[str, Any]) -> Any:
    match spec["kind"]:
        case "count":
            return hw.evictors.count(spec["n"])
        case "delta":
            return hw.evictors.delta(spec["threshold"], _growth)
        case _:
            return hw.evictors.time(_ms(spec["size"]))


def _growth(earlier: Any, later: Any) -> int:
    return later.v - earlier.v


class Values(hw.ProcessWindowFunction):
    """The window with all its values, in order."""

    def process(self, elements: list[Any], ctx: Any) -> Iterator[dict[str, Any]]:
        yield {"k": ctx.key, "start": ctx.window.start, "stop": ctx.window.end, "result": [e.v for e in elements]}


class Fold(hw.AggregateFunction[Any, int | None, int]):
    """Sum, count, min or max of the values."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._merge = {"min": min, "max": max}.get(name, operator.add)

    def create(self) -> int | None:
        return None

    def add(self, accumulator: int | None, value: Any) -> int | None:
        return self.merge(accumulator, 1 if self._name == "count" else value.v)

    def merge(self, left: int | None, right: int | None) -> int | None:
        return right if left is None else left if right is None else self._merge(left, right)

    def result(self, accumulator: int | None) -> int:
        assert accumulator is not None
        return accumulator


def _bounds(row: Any) -> tuple[int | None, int | None]:
    """The window of a result; count and global windows show none."""
    if hasattr(row, "start"):
        return (row.start, row.stop) if row.timestamp == row.stop - 1 else (None, None)
    if hasattr(row, "window_start"):
        return _timestamp_ms(row.window_start), _timestamp_ms(row.window_end)
    return None, None


def _timestamp_ms(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def _values(row: Any) -> list[int]:
    return list(row.result) if isinstance(row.result, list) else [row.result]


def _ms(millis: int) -> str:
    return f"{millis} ms"
