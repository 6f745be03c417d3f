"""The death of a driver: the real one, and one inside a process that tests share."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, NoReturn

import headwater as hw

if TYPE_CHECKING:
    import pytest


class Crashed(Exception):
    """The driver is as good as dead."""


class Crash:
    """A hook that ends a job at a step of an epoch, as a kill would: nothing that is told as a step is done after it."""

    def __init__(self, step: str, epoch: int) -> None:
        self._at = (step, epoch)
        self._has_happened = False

    def __call__(self, step: hw.EpochStep, epoch: int) -> None:
        self._has_happened = self._has_happened or (step.name, epoch) == self._at
        if self._has_happened:  # also on the other thread, whose error may be the first that is seen
            raise Crashed(f"at {self._at[0]} of epoch {self._at[1]}")

    def is_seen(self) -> pytest.RaisesExc[Exception]:
        """Expect it: as the failure of a job that runs, or as it is where a start still publishes what was committed."""
        import pytest

        step, epoch = self._at
        return pytest.raises((hw.JobError, Crashed), match=f"at {step} of epoch {epoch}")


def kill(*_: object, **__: object) -> NoReturn:
    """Kill this process and all that it started."""
    os.killpg(os.getpgid(0), signal.SIGKILL)
    raise AssertionError("a killed process does not go on")
