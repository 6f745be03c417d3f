"""Savepoints: which there are, taking one, stopping with one, and whether one is whole."""

from __future__ import annotations

from typing import Any

from headwater import control
from headwater.control.saved import Verdict
from headwater.web.watched import WatchedJob

_TIMEOUT = "30 min"
"""How long taking one, or stopping, may last before nobody waits for it any more."""


def savepoints(job: WatchedJob) -> dict[str, Any]:
    """Those of the job that lie in its folder of savepoints, newest first."""
    view = job.watch.view()
    return {"is_running": view.is_running, "folder": str(job.saved.folder), "savepoints": job.saved.listed(view.job_id)}


def take(job: WatchedJob, name: str) -> dict[str, Any]:
    """Let the job take one; it goes on meanwhile."""
    control.request_savepoint(job.path, job.saved.path(name), timeout=_TIMEOUT)
    return {"savepoint": name}


def stop(job: WatchedJob, savepoint: str | None, *, drain: bool) -> dict[str, Any]:
    """Let the job stop, and save its state at the end if a name is given."""
    folder = None if savepoint is None else job.saved.path(savepoint)
    control.request_stop(job.path, savepoint=folder, drain=drain, timeout=_TIMEOUT)
    return {"savepoint": savepoint, "state": job.watch.view().state}


def check(job: WatchedJob, name: str) -> Verdict:
    """Read one against its checksums, and compare it with what the job keeps."""
    return job.saved.check(name, job.watch.reader.identity)
