"""Python's cyclic garbage collector, out of the way while an epoch is computed."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_LOOK_EVERY = 256
"""Tasks after which it is asked whether everything a worker holds is to be looked at."""
_GROWN = 1.25
"""By how much a worker must have come to hold more for that: it takes a second for a million entries of state."""
_tasks = 0
_blocks = 0
"""The blocks of memory that were left after the first task, and then after the last look at everything."""


@contextmanager
def paused() -> Iterator[None]:
    """Rows are many and die by reference count; the collector would walk all of the state again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def worker_task() -> Iterator[None]:
    """`paused`, for a task in a Spark worker, whose daemon runs a full collection after each task.

    That walks all modules and all state, 60 ms and up. So what a task leaves behind is looked at once, while it is young,
    and then set aside where collections do not see it; all of it is looked at again when it has grown. Garbage that was
    set aside makes it grow; state that stays as large as it is does not.
    """
    global _tasks, _blocks  # noqa: PLW0603 a process has one collector
    with paused():
        yield
        if _tasks % _LOOK_EVERY == _LOOK_EVERY - 1 and sys.getallocatedblocks() > _GROWN * _blocks:
            look_at_everything()
            _blocks = sys.getallocatedblocks()
        else:
            gc.collect(0)
            _blocks = _blocks or sys.getallocatedblocks()
        gc.freeze()
        _tasks += 1


def set_aside() -> None:
    """Let collections not see what there is now: state that was just read, which is no garbage, and takes long to walk."""
    gc.freeze()


def look_at_everything() -> None:
    """Remove all garbage, also what was set aside: what a run that is over leaves behind, for example."""
    gc.unfreeze()
    gc.collect()
