"""What went wrong: failures, with what the user's code raised, restarts, and the end of the log."""

from __future__ import annotations

from typing import Any

from headwater.web.watched import WatchedJob


def failures(job: WatchedJob) -> dict[str, Any]:
    """The newest failure first."""
    view = job.watch.view()
    restarts = [
        {
            "attempt": one.attempt,
            "failed_ms": one.failed_ms,
            "delay_ms": one.delay_ms,
            "error": one.error,
            "message": one.message,
            "step": one.step,
        }
        for one in reversed(view.restarts)
    ]
    error = view.status.error
    return {
        "state": view.state,
        "error": None if error is None else error.strip(),
        "restarts": restarts,
        "log": job.watch.log_tail(),
    }


def settings(job: WatchedJob) -> dict[str, Any]:
    """How the job was last started."""
    view, outline = job.watch.view(), job.watch.outline()
    return {
        "job_id": view.job_id,
        "folder": str(job.path),
        "savepoints": str(job.saved.folder),
        "engine": None if outline is None else outline.engine,
        "version": None if outline is None else outline.version,
        "started_ms": None if outline is None else outline.started_ms,
        "settings": {} if outline is None else dict(outline.settings),
    }
