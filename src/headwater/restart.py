"""Whether a job that failed starts again, and after how long: `hw.restart.fixed(...)`, `exponential(...)` and others."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError

__all__ = ["RestartCount", "RestartStrategy", "RestartTime", "exponential", "failure_rate", "fixed", "none"]


class RestartCount(ABC):
    """The failures of one run of a job, as its strategy counts them."""

    @abstractmethod
    def delay_ms(self, failed_ms: int) -> int | None:
        """Count a failure at this time; how long to wait before the next start, or None to give up."""


class RestartStrategy(ABC):
    """What to do when a running job fails. It is only a description: each run of a job begins a count of its own."""

    @abstractmethod
    def begin(self) -> RestartCount:
        """A count without failures."""

    @abstractmethod
    def describe(self) -> str:
        """The strategy as it is written."""


class RestartTime(Protocol):
    """The time that strategies go by; tests give one of their own."""

    def now_ms(self) -> int:
        """The time now, in ms since 1970."""

    def wait(self, delay_ms: int, stopping: threading.Event) -> None:
        """Return after the delay, or as soon as `stopping` is set."""


class MachineTime:
    """The machine's own time."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def wait(self, delay_ms: int, stopping: threading.Event) -> None:
        stopping.wait(delay_ms / 1000)


def none() -> RestartStrategy:
    """A job that fails has failed."""
    return _None()


def fixed(attempts: int, *, delay: Duration = "10 s") -> RestartStrategy:
    """Start again up to `attempts` times in the life of the driver, each time after `delay`.

    >>> count = fixed(2, delay="10 s").begin()
    >>> [count.delay_ms(failed_ms) for failed_ms in (0, 60_000, 90_000)]
    [10000, 10000, None]
    """
    return _Fixed(_number("fixed", "attempts", attempts), duration_ms(delay, what="delay of restart.fixed"))


def exponential(
    *,
    initial: Duration = "1 s",
    max: Duration = "5 min",  # noqa: A002  the word users expect beside `initial`
    multiplier: float = 2.0,
    reset_after: Duration = "1 h",
    attempts: int | None = None,
) -> RestartStrategy:
    """Wait longer after each failure, from `initial` to `max`, and as at first once the job has run for `reset_after`.

    `attempts` bounds the starts in a row, without a run of `reset_after` between them; None for no bound.

    >>> count = exponential(initial="1 s", max="5 s", attempts=4).begin()
    >>> [count.delay_ms(failed_ms) for failed_ms in (0, 2_000, 5_000, 10_000, 20_000)]
    [1000, 2000, 4000, 5000, None]
    """
    first = duration_ms(initial, what="initial of restart.exponential")
    most = duration_ms(max, what="max of restart.exponential")
    if not 1 <= first <= most:
        raise GraphError.bad_argument(
            "restart.exponential",
            "waits at least 1 ms, and at first no longer than at last",
            (initial, max),
            "raise max",
        )
    factor: Any = multiplier
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 1 < factor < float("inf"):
        raise GraphError.bad_argument(
            "restart.exponential", "multiplies its delay by more than 1", multiplier, "use restart.fixed for one delay"
        )
    quiet = duration_ms(reset_after, what="reset_after of restart.exponential")
    bound = None if attempts is None else _number("exponential", "attempts", attempts)
    return _Exponential(first, most, float(factor), quiet, bound)


def failure_rate(failures: int, *, per: Duration = "5 min", delay: Duration = "10 s") -> RestartStrategy:
    """Start again after `delay`, as long as there are no more than `failures` within `per`.

    >>> count = failure_rate(2, per="1 min", delay="5 s").begin()
    >>> [count.delay_ms(failed_ms) for failed_ms in (0, 30_000, 60_001, 90_000)]
    [5000, 5000, 5000, None]
    """
    within = duration_ms(per, what="per of restart.failure_rate")
    if within < 1:
        raise GraphError.bad_argument("restart.failure_rate", "needs a span of 1 ms or more", per, "write per='5 min'")
    wait = duration_ms(delay, what="delay of restart.failure_rate")
    return _FailureRate(_number("failure_rate", "failures", failures), within, wait)


def _number(strategy: str, what: str, given: Any) -> int:
    if type(given) is not int or given < 1:
        raise GraphError.bad_argument(
            f"restart.{strategy}", f"needs {what} of 1 or more", given, "use restart.none() to start never again"
        )
    return int(given)


@dataclass(frozen=True)
class _None(RestartStrategy):
    def begin(self) -> RestartCount:
        return _NoCount()

    def describe(self) -> str:
        return "none()"


class _NoCount(RestartCount):
    def delay_ms(self, failed_ms: int) -> int | None:
        return None


@dataclass(frozen=True)
class _Fixed(RestartStrategy):
    attempts: int
    wait_ms: int

    def begin(self) -> RestartCount:
        return _FixedCount(self)

    def describe(self) -> str:
        return f"fixed({self.attempts}, delay='{self.wait_ms} ms')"


class _FixedCount(RestartCount):
    def __init__(self, strategy: _Fixed) -> None:
        self._strategy, self._failures = strategy, 0

    def delay_ms(self, failed_ms: int) -> int | None:
        self._failures += 1
        return self._strategy.wait_ms if self._failures <= self._strategy.attempts else None


@dataclass(frozen=True)
class _Exponential(RestartStrategy):
    initial_ms: int
    max_ms: int
    multiplier: float
    reset_after_ms: int
    attempts: int | None

    def begin(self) -> RestartCount:
        return _ExponentialCount(self)

    def describe(self) -> str:
        bound = "" if self.attempts is None else f", attempts={self.attempts}"
        return (
            f"exponential(initial='{self.initial_ms} ms', max='{self.max_ms} ms', multiplier={self.multiplier}, "
            f"reset_after='{self.reset_after_ms} ms'{bound})"
        )


class _ExponentialCount(RestartCount):
    """The failures in a row, and when the job was last started after one."""

    def __init__(self, strategy: _Exponential) -> None:
        self._strategy = strategy
        self._in_a_row = 0
        self._delay_ms = 0.0
        self._started_ms: float | None = None

    def delay_ms(self, failed_ms: int) -> int | None:
        strategy = self._strategy
        if self._started_ms is None or failed_ms - self._started_ms >= strategy.reset_after_ms:
            self._in_a_row, self._delay_ms = 1, strategy.initial_ms
        else:
            self._in_a_row += 1
            self._delay_ms = min(self._delay_ms * strategy.multiplier, strategy.max_ms)
        if strategy.attempts is not None and self._in_a_row > strategy.attempts:
            return None
        self._started_ms = failed_ms + self._delay_ms
        return int(self._delay_ms)


@dataclass(frozen=True)
class _FailureRate(RestartStrategy):
    failures: int
    per_ms: int
    wait_ms: int

    def begin(self) -> RestartCount:
        return _FailureRateCount(self)

    def describe(self) -> str:
        return f"failure_rate({self.failures}, per='{self.per_ms} ms', delay='{self.wait_ms} ms')"


class _FailureRateCount(RestartCount):
    """The times of the newest failures, one more than are allowed within the span."""

    def __init__(self, strategy: _FailureRate) -> None:
        self._strategy = strategy
        self._failed_ms: deque[int] = deque(maxlen=strategy.failures + 1)

    def delay_ms(self, failed_ms: int) -> int | None:
        self._failed_ms.append(failed_ms)
        is_full = len(self._failed_ms) > self._strategy.failures
        if is_full and failed_ms - self._failed_ms[0] <= self._strategy.per_ms:
            return None
        return self._strategy.wait_ms
