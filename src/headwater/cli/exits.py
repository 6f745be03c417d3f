"""What the exit codes of commands mean. Signals add theirs: 130 after Ctrl-C, 143 after SIGTERM."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The exit code of a command."""

    DONE = 0
    FAILED = 1
    """The job failed, or what was asked for cannot be done; standard error says why, and the way out."""
    USAGE = 2
    """The command was not understood."""
    GIVES_STATE_UP = 3
    """Of `savepoint check`: the program can go on, if it may give state up."""
