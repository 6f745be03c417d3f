"""How often a failed call to another system is made again, and how long to wait before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError


@dataclass(frozen=True)
class Retry:
    """Up to `attempts` calls for one row, as long as they fail with one of `on`; `backoff=1` waits the same each time.

    >>> [Retry(attempts=5, delay="100 ms", backoff=2.0, max_delay="500 ms").delay_ms(n) for n in (1, 2, 3, 4)]
    [100, 200, 400, 500]
    """

    attempts: int = 3
    delay: Duration = "100 ms"
    backoff: float = 2.0
    max_delay: Duration = "1 s"
    on: tuple[type[Exception], ...] = (TimeoutError, OSError)

    def __post_init__(self) -> None:
        attempts, backoff, kinds = self._given()
        if type(attempts) is not int or attempts < 1:
            raise GraphError.bad_argument("retry", "makes 1 attempt or more", attempts, "leave retry out for one")
        if not isinstance(backoff, int | float) or not backoff >= 1:
            raise GraphError.bad_argument(
                "retry", "multiplies its delay by 1 or more", backoff, "1.0 waits the same each time"
            )
        if not isinstance(kinds, tuple) or not all(isinstance(k, type) and issubclass(k, Exception) for k in kinds):
            raise GraphError.bad_argument("retry", "needs a tuple of exceptions", kinds, "write on=(OSError,)")
        for what in ("delay", "max_delay"):
            duration_ms(getattr(self, what), what=f"{what} of retry")

    def _given(self) -> tuple[Any, Any, Any]:
        """What the caller gave, of whatever type."""
        return self.attempts, self.backoff, self.on

    def delay_ms(self, failed: int) -> int:
        """How long to wait after so many failed attempts, counted from 1."""
        most = duration_ms(self.max_delay)
        try:
            return min(most, int(duration_ms(self.delay) * self.backoff ** (failed - 1)))
        except OverflowError:
            return most


OF_DATABASE = Retry(attempts=8, delay="200 ms", max_delay="5 s")
"""Some 16 seconds in all: a server that is restarted is back by then."""
