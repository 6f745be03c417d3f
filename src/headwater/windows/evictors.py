"""Evictors: which elements leave a window when it fires, before or after its function saw them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError

__all__ = ["Element", "Evictor", "count", "delta", "time"]


class Element(NamedTuple):
    """A row in a window, with its event time in ms or None."""

    row: Any
    timestamp: int | None


class Evictor:
    """Says which elements stay. Subclass it for an evictor of your own."""

    def keep(self, elements: list[Element]) -> list[Element]:
        """The elements that stay, of all in the window, in order of arrival."""
        raise NotImplementedError


class CountEvictor(Evictor):
    """Keeps the last `count` elements."""

    def __init__(self, count: int) -> None:
        self.count = count

    def keep(self, elements: list[Element]) -> list[Element]:
        return elements[-self.count :]


class TimeEvictor(Evictor):
    """Keeps the elements that are less than `size_ms` older than the newest."""

    def __init__(self, size_ms: int) -> None:
        self._size_ms = size_ms

    def keep(self, elements: list[Element]) -> list[Element]:
        times = [e.timestamp for e in elements if e.timestamp is not None]
        if not times:
            return elements
        oldest = max(times) - self._size_ms
        return [e for e in elements if e.timestamp is None or e.timestamp > oldest]


class DeltaEvictor(Evictor):
    """Keeps the elements whose delta to the last one is below the threshold."""

    def __init__(self, threshold: float, delta: Callable[[Any, Any], float]) -> None:
        self._threshold, self._delta = threshold, delta

    def keep(self, elements: list[Element]) -> list[Element]:
        newest = elements[-1].row
        return [e for e in elements if self._delta(e.row, newest) < self._threshold]


def count(n: int) -> Evictor:
    """Keep the last `n` elements."""
    if type(n) is not int or n <= 0:
        raise GraphError.bad_argument("evictors.count", "needs a positive number", n, "write evictors.count(100)")
    return CountEvictor(n)


def time(size: Duration) -> Evictor:
    """Keep the elements less than `size` older than the newest."""
    return TimeEvictor(duration_ms(size, what="the size of a time evictor"))


def delta(threshold: float, function: Callable[[Any, Any], float]) -> Evictor:
    """Keep the elements with `function(element, last element) < threshold`."""
    if not callable(function):
        raise GraphError.bad_argument("evictors.delta", "needs a function of two rows", function, "pass a function")
    return DeltaEvictor(threshold, function)
