"""Waiting for what a running job does."""

from __future__ import annotations

import time
from collections.abc import Callable

import headwater as hw


def until(condition: Callable[[], bool], job: hw.Job | None = None, seconds: float = 120) -> None:
    """Wait until something holds; a job that has failed meanwhile, or a wait that takes too long, fails the test."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert job is None or job.status().error is None, job.status().error
        assert time.monotonic() < deadline, job and job.status()
        time.sleep(0.05)
