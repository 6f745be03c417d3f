"""Event time: watermarks of splits and steps, and why a window has not fired."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from headwater.control.firing import why_not_fired
from headwater.control.windows import open_windows
from headwater.errors import JobError
from headwater.job.outline import JobOutline
from headwater.job.splits import holder_in
from headwater.serving.refused import Refused
from headwater.web.answers.summary import shown_mark
from headwater.web.watched import WatchedJob

ASK_TIMEOUT = "120 s"
"""How long a running job may take to answer."""


def watermarks(job: WatchedJob) -> dict[str, Any]:
    """Where event time stands in every split and step, and what the next window of each step waits for."""
    view, outline = job.watch.view(), job.watch.outline()
    holder = holder_in(view.splits)
    splits = [
        {
            "source": uid,
            "split": name,
            "rows_in": one.rows_in,
            "position": view.positions.get(uid, {}).get(name),
            "watermark_ms": shown_mark(one.watermark_ms),
            "is_idle": one.is_idle,
            "last_rows_ms": one.last_rows_ms,
            "moved_ms": one.moved_ms,
            "is_holding": holder is not None and (uid, name) == (holder.uid, holder.split),
        }
        for uid, own in view.splits.items()
        for name, one in own.items()
    ]
    strategies = (
        {} if outline is None else {s.uid: s.watermarks.text for s in outline.steps if s.watermarks is not None}
    )
    steps = [{"uid": uid, "watermark_ms": shown_mark(one.watermark_ms)} for uid, one in view.steps.items()]
    firings = [] if outline is None else [firing(job, one.uid, None) for one in outline.steps if one.window is not None]
    return {
        "now_ms": int(time.time() * 1000),
        "since_ms": view.status.since_ms,
        "strategies": strategies,
        "splits": splits,
        "steps": steps,
        "firings": firings,
    }


def firing(job: WatchedJob, step: str, end_ms: int | None) -> dict[str, Any]:
    """Why a window has not fired: the one that ends at a time, or the next one of a step."""
    view = job.watch.view()
    now_ms = int(time.time() * 1000) if view.is_running else view.status.now_ms or 0
    told = why_not_fired(view.status, _outline(job), step, end_ms, now_ms=now_ms, is_running=view.is_running)
    return {**asdict(told), "watermark_ms": None if told.watermark_ms is None else shown_mark(told.watermark_ms)}


def windows(job: WatchedJob, step: str) -> dict[str, Any]:
    """The windows of a step that hold rows, each with whether it has fired, as the running job says when it is asked."""
    view, planned = job.watch.view(), _outline(job).step(step)
    if planned is None or planned.window is None:
        raise JobError.no_windows(step, [one.uid for one in _outline(job).steps if one.window is not None])
    states = view.steps[step].state if step in view.steps else {}
    found = open_windows(job.path, planned, states, timeout=ASK_TIMEOUT)
    shown = [{"start_ms": one.start_ms, "end_ms": one.end_ms, "entries": one.entries} for one in found.windows]
    return {"step": step, "epoch": found.epoch, "number": found.number, "windows": shown}


def _outline(job: WatchedJob) -> JobOutline:
    outline = job.watch.outline()
    if outline is None:
        raise Refused(409, "the steps of this job are not known here: an older Headwater has run it; start it again")
    return outline
