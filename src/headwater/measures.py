"""What functions measure: counters, gauges, meters and histograms by name, and how they travel and add up.

A step's measures go to the driver with the report of its task, so they count when the epoch does, and once.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from headwater.errors import GraphError
from headwater.words import MeasureKind, OverSubtasks

DEFAULT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""In seconds: what most histograms are of."""
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,99}")

Number = int | float
Kind = TypeVar("Kind")

_COMBINED: Mapping[str, Callable[[Iterable[Number]], Number]] = {"sum": sum, "min": min, "max": max}


@dataclass(frozen=True)
class Measured:
    """A measure: of one epoch on one subtask, or of all of a run."""

    kind: MeasureKind
    value: Number = 0
    """Of a counter or meter what it counted, of a gauge what it was set to, of a histogram how many values it has."""
    over_subtasks: OverSubtasks = "sum"
    """What a gauge of several subtasks is: their sum, or the smallest or largest of them."""
    total: Number = 0
    """Of a histogram: the sum of its values."""
    bounds: Sequence[Number] = ()
    """Of a histogram: the largest value of each bucket but the last, which has none."""
    buckets: Sequence[int] = ()
    """How many values each bucket has."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "bounds", tuple(self.bounds))
        object.__setattr__(self, "buckets", tuple(self.buckets))

    def beside(self, other: Measured) -> Measured:
        """The measure of two subtasks."""
        if self.kind == "gauge":
            return replace(self, value=_COMBINED[self.over_subtasks]((self.value, other.value)))
        return self._plus(other)

    def then(self, later: Measured) -> Measured:
        """The measure after another epoch."""
        return later if self.kind == "gauge" or self.kind != later.kind else self._plus(later)

    def _plus(self, other: Measured) -> Measured:
        buckets = [mine + its for mine, its in zip(self.buckets, other.buckets, strict=True)]
        return replace(self, value=self.value + other.value, total=self.total + other.total, buckets=buckets)


Measures = Mapping[str, Measured]
"""By name."""


def beside(parts: Iterable[Measures]) -> dict[str, Measured]:
    """The measures of several subtasks."""
    found: dict[str, Measured] = {}
    for part in parts:
        for name, one in part.items():
            found[name] = one if name not in found else found[name].beside(one)
    return found


def then(known: Measures, later: Measures) -> dict[str, Measured]:
    """The measures after another epoch."""
    return {**known, **{name: known[name].then(one) if name in known else one for name, one in later.items()}}


class Counter:
    """Counts what happens: `ctx.metrics.counter("refused").inc()`. It only grows."""

    def __init__(self, name: str) -> None:
        self._name, self._count = name, 0

    def inc(self, by: int = 1) -> None:
        """Count one more, or several."""
        if by < 0:
            raise GraphError.bad_argument(f"metric {self._name!r}", "only grows", by, "use a gauge for what falls too")
        self._count += by

    def take(self) -> Measured:
        """What was counted since the last call."""
        count, self._count = self._count, 0
        return Measured("counter", count)


class Meter(Counter):
    """Counts events of which the rate is of interest: `ctx.metrics.meter("hits").mark()`."""

    def mark(self, events: int = 1) -> None:
        """Count one more, or several."""
        self.inc(events)

    def take(self) -> Measured:
        return replace(super().take(), kind="meter")


class Gauge:
    """A value that goes up and down: `ctx.metrics.gauge("open_orders").set(7)`. The last one of an epoch is told."""

    def __init__(self, name: str, over_subtasks: OverSubtasks) -> None:
        self._name, self._over_subtasks = name, over_subtasks
        self._value: Number | None = None

    def set(self, value: Number) -> None:
        """What it is from now on."""
        self._value = _number(self._name, value)

    def take(self) -> Measured | None:
        """What it is; None before it was set."""
        return None if self._value is None else Measured("gauge", self._value, self._over_subtasks)


class Histogram:
    """How values are spread: `ctx.metrics.histogram("amount", buckets=(1, 10, 100)).update(12.5)`."""

    def __init__(self, name: str, bounds: Sequence[Number]) -> None:
        self._name, self.bounds = name, tuple(bounds)
        self._clear()

    def _clear(self) -> None:
        self._count, self._total, self._buckets = 0, 0.0, [0] * (len(self.bounds) + 1)

    def update(self, value: Number) -> None:
        """Take a value."""
        self._total += _number(self._name, value)
        self._count += 1
        self._buckets[bisect_left(self.bounds, value)] += 1

    def take(self) -> Measured:
        """The values since the last call."""
        count, total, buckets = self._count, self._total, self._buckets
        self._clear()
        return Measured("histogram", count, total=total, bounds=list(self.bounds), buckets=buckets)


class Metrics:
    """The metrics of a function on one subtask, by name; `ctx.metrics` in its calls.

    >>> class Refused(hw.ProcessFunction):
    ...     def process(self, order, ctx):
    ...         if order.n < 0:
    ...             ctx.metrics.counter("refused").inc()
    ...         else:
    ...             yield order
    >>> env = hw.Environment("doc", engine="local")
    >>> stream = env.from_rows([(1,), (-1,)], "n long").process(Refused(), "n long")
    >>> end = stream.sink(hw.connectors.memory())
    >>> env.run().status().steps["refused"].metrics["refused"].value
    1
    """

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def counter(self, name: str) -> Counter:
        """A count that only grows."""
        return self._of(Counter, name) or self._add(name, Counter(name))

    def meter(self, name: str) -> Meter:
        """A count of events of which the rate is of interest."""
        return self._of(Meter, name) or self._add(name, Meter(name))

    def gauge(self, name: str, *, over_subtasks: OverSubtasks = "sum") -> Gauge:
        """A value that goes up and down. Those of several subtasks are summed up, or the "min" or "max" of them counts."""
        found = self._of(Gauge, name)
        if found is not None:
            return found
        if over_subtasks not in _COMBINED:
            raise GraphError.bad_argument(
                f"metric {name!r}", f"is {', '.join(_COMBINED)} over subtasks", over_subtasks, "choose one of them"
            )
        return self._add(name, Gauge(name, over_subtasks))

    def histogram(self, name: str, *, buckets: Sequence[Number] = DEFAULT_BUCKETS) -> Histogram:
        """How values are spread over buckets, each given by its largest value."""
        found = self._of(Histogram, name)
        if found is not None:
            return found
        if not buckets or list(buckets) != sorted({*buckets}):
            raise GraphError.bad_argument(
                f"metric {name!r}", "needs buckets that grow", buckets, "write buckets=(1, 10, 100)"
            )
        return self._add(name, Histogram(name, buckets))

    def take(self) -> dict[str, Measured]:
        """What was measured since the last call, and what gauges are."""
        taken = ((name, one.take()) for name, one in self._known.items())
        return {name: one for name, one in taken if one is not None}

    def _of(self, kind: type[Kind], name: str) -> Kind | None:
        found = self._known.get(name)
        if found is None or type(found) is kind:
            return found
        raise GraphError.bad_argument(
            f"metric {name!r}", f"is a {type(found).__name__.lower()}", kind.__name__.lower(), "give it another name"
        )

    def _add(self, name: str, made: Kind) -> Kind:
        given: object = name
        if not isinstance(given, str) or not _NAME.fullmatch(given):
            raise GraphError.bad_argument("metrics", "have names of letters, digits and _", name, "rename it")
        self._known[name] = made
        return made


def _number(name: str, value: Any) -> Number:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise GraphError.bad_argument(f"metric {name!r}", "takes finite numbers", value, "leave others out")
    return value
