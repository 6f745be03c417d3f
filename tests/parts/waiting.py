"""Waiting for what a running job does."""

from __future__ import annotations

import time
from collections.abc import Callable

import headwater as hw


def until(condition: Callable[[], bool], job: hw.Job, seconds: float = 120) -> None:
    """Wait until something holds; a job that has failed meanwhile, or takes too long, fails the test."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert job.status().error is None, job.status().error
        assert time.monotonic() < deadline, job.status()
        time.sleep(0.05)
