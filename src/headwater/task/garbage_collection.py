"""Python's cyclic garbage collector, out of the way while an epoch is computed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_FULL_EVERY = 256
"""Tasks between two looks at everything a worker holds."""
_tasks = 0


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
    and then set aside where collections do not see it; all of it is looked at again now and then.
    """
    global _tasks  # noqa: PLW0603 a process has one collector
    with paused():
        yield
        if _tasks % _FULL_EVERY == 0:
            gc.unfreeze()
            gc.collect()
        else:
            gc.collect(0)
        gc.freeze()
        _tasks += 1
