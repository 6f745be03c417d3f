"""What a user does wrong, and what the answer must say."""

from __future__ import annotations

import io
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import headwater as hw
from headwater.uncaught import of_user

MOST_LINES = 15
"""What fits a glance at a terminal."""
MOST_CPU_S = 2
"""At once. Seconds of the processor, which do not grow on a busy machine."""

ORDER = "user string, ts timestamp, amount double"
START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = [("ann", START, 3.0), ("bob", START, 4.0), ("ann", START, 5.0)]

Act = Callable[[Path], None]


@dataclass(frozen=True)
class Mistake:
    """A deliberate mistake: what is done in an empty folder, and the fact and the way out that must be named."""

    act: Act
    says: tuple[str, ...]
    warns: bool
    """Whether it runs, with a warning."""

    def __str__(self) -> str:
        return self.act.__name__

    def answer(self, folder: Path) -> str:
        """What the user reads: warnings, what was written to the terminal, and the error that the program ends with."""
        written = io.StringIO()
        began = time.process_time()
        with warnings.catch_warnings(record=True) as warned, redirect_stderr(written):
            warnings.simplefilter("always")
            error = self._error(folder)
        lines = [str(one.message) for one in warned] + written.getvalue().splitlines()
        assert time.process_time() - began < MOST_CPU_S
        if error is not None:
            assert error.__traceback__ is not None
            frames = of_user(error.__traceback__.tb_next)  # the first is of this file
            lines += "".join(traceback.format_exception(type(error), error, frames)).splitlines()
        assert (error is None) == self.warns, lines
        return "\n".join(lines)

    def _error(self, folder: Path) -> hw.HeadwaterError | None:
        try:
            self.act(folder)
        except hw.HeadwaterError as error:
            return error
        return None


def says(*fragments: str, warns: bool = False) -> Callable[[Act], Mistake]:
    """Make a function a mistake, with what its answer must hold."""
    return lambda act: Mistake(act, fragments, warns)


def orders(env: hw.Environment | None = None, *, timed: bool = True) -> hw.Step:
    """Three orders of two users."""
    env = env or hw.Environment("shop", engine="local")
    return env.from_rows(ROWS, ORDER, hw.Watermarks.bounded("ts", "1 s") if timed else None, name="orders")
