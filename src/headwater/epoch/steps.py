"""The steps of an epoch, and the hook that is told of each: for tracing, and for tests that kill a job."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum


class EpochStep(IntEnum):
    """What has just happened in the driver. `EpochProtocol` takes them; docs/architecture.md has them in a table.

    They happen in this order. A job that is at-least-once publishes before it commits: 5 and 6 come before 4.
    """

    PLANNED = 1
    """The engine has logged the epoch's offsets and asks for its output."""
    STAGED = 2
    """Every task has written its output files and handed its state changes to the state store."""
    MANIFEST = 3
    """The manifest names the files of the successful attempts."""
    COMMITTED = 4
    """The engine's commit log holds the epoch: it will not run again."""
    PUBLISHING = 5
    """One sink has the epoch, others may not have it yet."""
    PUBLISHED = 6
    """Every sink has the epoch."""
    CLEANED = 7
    """The epoch is recorded as published and its staged files are gone."""


OnStep = Callable[[EpochStep, int], None]
"""Told the step and the epoch, in the driver, on the thread that made the step."""


def ignore_steps(step: EpochStep, epoch: int) -> None:
    """The hook of a job that nobody watches."""
