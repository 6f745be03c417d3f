"""The steps of a savepoint, and the hook that is told of each: for tracing, and for tests that kill a job."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum


class SavepointStep(Enum):
    """What has just happened while a savepoint is taken."""

    BEGUN = "begun"
    """The folder is the savepoint's, and there is nothing in it."""
    WRITING = "writing"
    """One more subtask's state is written."""
    WRITTEN = "written"
    """Everybody's state is written, and nothing names the files."""
    COMPLETE = "complete"
    """The description names them: this is a savepoint."""


OnSavepointStep = Callable[[SavepointStep, int], None]
"""Told the step and the epoch that is saved, on the thread that takes the savepoint."""


def ignore_savepoint_steps(step: SavepointStep, epoch: int) -> None:
    """The hook of savepoints that nobody watches."""
