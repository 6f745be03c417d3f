"""Commands about jobs that run, or have run: list, status, logs, stop."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import Annotated, Any

import typer

from headwater import control
from headwater.cli.output import Json, show_facts, show_json, show_json_line, show_table, show_text
from headwater.cli.shown import age_text, job_record, mark_text
from headwater.control import JobView
from headwater.errors import JobError
from headwater.job.growth.text import signed_text
from headwater.job.layout import JobLayout
from headwater.job.progress.durations_text import long_text
from headwater.job.status import StepStatus
from headwater.sizes import size_text

JobDir = Annotated[Path, typer.Argument(help="the job folder")]
_POLL_S = 1.0
_LATE_ROWS = 3
"""So many of the newest are shown of each step; --json has all that are kept."""
_STATE_COLUMNS = ("bytes", "an hour", "in a day", "in a week", "expired")


def list_jobs(
    folder: Annotated[Path, typer.Argument(help="where to look for job folders")] = Path(),
    as_json: Json = False,
) -> None:
    """List the jobs whose folders are in a folder, or below it."""
    if not folder.is_dir():
        raise JobError.no_folder(str(folder))
    found = control.jobs(folder)
    if as_json:
        show_json([job_record(job) for job in found])
    elif not found:
        show_text(f"no job has a folder in {folder.absolute()}")
    else:
        columns = ("job", "state", "epoch", "published", "rows in", "process", "folder")
        show_table(columns, map(_line, found), numbers=("epoch", "published", "rows in"))


def status(
    job_dir: JobDir,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="again whenever it changes, until the job ends")] = False,
    as_json: Json = False,
) -> None:
    """Show where a job stands: epochs, steps, splits, restarts."""
    seen: JobView | None = None
    while True:
        job = control.job(job_dir)
        if seen is None or job != seen:
            seen = job
            _show(job, as_json=as_json, one_of_many=watch)
        if not watch or not job.is_running:
            return
        time.sleep(_POLL_S)


def logs(
    job_dir: JobDir,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="how many of the newest")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="and what comes, until the job ends")] = False,
) -> None:
    """Show what a job has logged, where `headwater run` runs it."""
    file = JobLayout(control.job(job_dir).job_dir).log
    if not file.exists():
        raise JobError.no_log(str(job_dir))
    with file.open(errors="replace") as log:
        for line in deque(log, maxlen=lines):
            show_text(line.rstrip("\n"))
        while follow:
            is_running = control.job(job_dir).is_running
            for line in log:
                show_text(line.rstrip("\n"))
            if not is_running:
                return
            time.sleep(_POLL_S / 4)


def stop(
    job_dir: JobDir,
    savepoint: Annotated[Path | None, typer.Option(help="save the state at the end in this new folder")] = None,
    drain: Annotated[
        bool, typer.Option("--drain", help="let the input end first, so that all windows fire; the job is then over")
    ] = False,
    timeout: Annotated[str | None, typer.Option(help="how long to wait, as '5 min'; by default as it takes")] = None,
    as_json: Json = False,
) -> None:
    """Stop a job after what is committed is published; it can be started again from there."""
    taken = control.request_stop(job_dir, savepoint=savepoint, drain=drain, timeout=timeout)
    job = control.job(job_dir)
    if as_json:
        show_json({**job_record(job), "savepoint": taken})
    else:
        saved = "" if taken is None else f"; its state is saved in {taken}"
        show_text(
            f"job {job.name} has stopped after epoch {job.committed}, and everything up to it is published{saved}"
        )


def _line(job: JobView) -> tuple[Any, ...]:
    rows = sum(sum(one.rows_in for one in splits.values()) for splits in job.splits.values())
    newest = job.committed if job.committed >= 0 else None
    published = job.published if job.published >= 0 else None
    return job.name, job.state, newest, published, f"{rows:,}", job.owner, job.job_dir


def _show(job: JobView, *, as_json: bool, one_of_many: bool) -> None:
    if as_json:
        (show_json_line if one_of_many else show_json)(job_record(job))
        return
    facts = {
        "job": job.name,
        "state": job.state,
        "process": job.owner or "none",
        "folder": job.job_dir,
        "epoch": f"{job.committed} committed, {job.published} published" if job.committed >= 0 else "none yet",
    }
    if job.status.error is not None:
        facts["error"] = job.status.error.strip()
    if job.restarts:
        last = job.restarts[-1]
        facts["restarts"] = f"{len(job.restarts)}, the last after {last.error}: {last.message.strip()}"
    show_facts(facts)
    if job.steps:
        show_text("")
        show_table(
            ("step", "rows in", "rows out", "late", "watermark", "state", *_STATE_COLUMNS),
            [
                (
                    uid,
                    f"{s.rows_in:,}",
                    f"{s.rows_out:,}",
                    s["late_dropped"],
                    mark_text(s.watermark_ms),
                    _state(s.state),
                    *_cost(s),
                )
                for uid, s in job.steps.items()
            ],
            numbers=("rows in", "rows out", "late", *_STATE_COLUMNS),
        )
    if late := [(uid, row) for uid, step in job.steps.items() for row in step.late_rows[-_LATE_ROWS:][::-1]]:
        show_text("")
        show_table(
            ("late at step", "epoch", "event time", "late by", "key", "row"),
            [
                (
                    uid,
                    row.epoch,
                    mark_text(row.timestamp_ms),
                    "the input had ended" if row.late_by_ms is None else long_text(row.late_by_ms),
                    row.key,
                    row.row or f"{row.rows:,} rows, combined before they came",
                )
                for uid, row in late
            ],
            numbers=("epoch",),
        )
    if job.splits:
        show_text("")
        show_table(
            ("source", "split", "rows in", "position", "watermark", "last rows"),
            [
                (
                    uid,
                    split,
                    f"{one.rows_in:,}",
                    job.positions.get(uid, {}).get(split),
                    f"{mark_text(one.watermark_ms)}{' (idle)' if one.is_idle else ''}",
                    age_text(one.last_rows_ms, job.status.now_ms),
                )
                for uid, splits in job.splits.items()
                for split, one in splits.items()
            ],
            numbers=("rows in", "position"),
        )


def _cost(step: StepStatus) -> tuple[str, ...]:
    """What the state of a step takes, how it grows, and what a ttl has removed; nothing where it is not known."""
    size, growth, expired = sum(step.state_bytes.values()), step.growth, step.counters.get("state_expired")
    return (
        size_text(size) if size else "",
        signed_text(growth["bytes_per_hour"]) if growth else "",
        size_text(growth["day_bytes"]) if growth else "",
        size_text(growth["week_bytes"]) if growth else "",
        "" if expired is None else f"{expired:,}",
    )


def _state(entries: Any) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in entries.items() if count)
