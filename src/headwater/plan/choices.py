"""What a plan says of each step, beside what the graph says."""

from __future__ import annotations

from dataclasses import dataclass

IN_MEMORY, ON_DISK = "memory", "disk"
"""Where the working state of a step lives."""
STATE_MEMORY_BYTES = 256 << 20
"""What a worker holds in memory of state that is on disk, unless a job says otherwise."""
AFTER_COMMIT, EARLY = "after commit", "early"
"""When a sink gets the rows of an epoch."""


@dataclass(frozen=True)
class Chosen:
    """What rules have chosen for one step. Whoever runs it is told, and decides nothing."""

    level: int | None = None
    """The level that it is an entry of, counted from 1; None if no row moves to it."""
    fused_into: tuple[int, ...] = ()
    """The sources and entries that it runs behind, where rows come to it in place."""
    way: str | None = None
    """How it is computed, where there are several ways."""
    is_combined: bool = False
    """Whether rows are combined on their way to it."""
    state: str | None = None
    """Where its working state lives, if it keeps something; what is stored for recovery is the same."""
    published: str | None = None
    """When its rows are published, if it is a sink."""
