"""Facts about jobs, as commands print them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from headwater.control import JobView
from headwater.job.progress.durations_text import long_text
from headwater.job.watermark_text import mark_text

__all__ = ["age_text", "job_record", "mark_text"]


def job_record(job: JobView) -> dict[str, Any]:
    """A job as JSON has it: what its driver wrote, and where its folder says it stands."""
    return {
        **job.status.to_json(),
        "job": job.name,
        "job_id": job.job_id,
        "job_dir": str(job.job_dir),
        "state": job.state,
        "process": None if job.owner is None else asdict(job.owner),
        "planned": job.planned,
        "committed": job.committed,
        "published": job.published,
        "positions": job.positions,
        "restarts": [reason.to_json() for reason in job.restarts],
    }


def age_text(then_ms: int | None, now_ms: int | None) -> str:
    """How long before the newest epoch something was."""
    if then_ms is None or now_ms is None:
        return "never"
    return f"{long_text(now_ms - then_ms)} ago" if now_ms > then_ms else "just now"
