"""Rows that came late or could not be read, and where rows go: late rows, dead letters, sinks."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from headwater.epoch.protocol import MAX_UNPUBLISHED
from headwater.late_rows import LateRow
from headwater.web.answers.summary import recent
from headwater.web.plain import EXACT
from headwater.web.watched import WatchedJob

_TOLD_EPOCHS = 100
_LATE, _DEAD = "late_dropped", "dead_letters"


def late(job: WatchedJob) -> dict[str, Any]:
    """How many rows each step has put aside, where they went, and in which epochs."""
    view, outline = job.watch.view(), job.watch.outline()
    readers: dict[tuple[str, str], list[str]] = {}
    for one in outline.steps if outline is not None else ():
        for edge in one.inputs:
            if edge.tag is not None:
                readers.setdefault((edge.step, edge.tag), []).append(one.uid)
    tags = {} if outline is None else {one.uid: one.late_to for one in outline.steps}
    steps = [
        {
            "step": uid,
            "late": step.counters.get(_LATE, 0),
            "dead_letters": step.counters.get(_DEAD, 0),
            "rows_in": step.rows_in,
            "late_to": tags.get(uid),
            "late_rows": [_late_row(row) for row in reversed(step.late_rows)],
            "counters": {name: count for name, count in step.counters.items() if name not in (_LATE, _DEAD)},
            "outputs": [
                {"tag": tag, "rows": count, "read_by": readers.get((uid, tag), [])}
                for tag, count in step.outputs.items()
            ],
        }
        for uid, step in view.steps.items()
    ]
    history = [
        {
            "epoch": line.epoch,
            "late": sum(step.counters.get(_LATE, 0) for step in line.steps.values()),
            "dead_letters": sum(step.counters.get(_DEAD, 0) for step in line.steps.values()),
        }
        for line in reversed(recent(job, _TOLD_EPOCHS))
    ]
    return {"steps": steps, "history": history}


def _late_row(row: LateRow) -> dict[str, Any]:
    """A row that was dropped; times that a browser's numbers do not hold are left out."""
    told = asdict(row)
    for name in ("timestamp_ms", "late_by_ms"):
        if told[name] is not None and abs(told[name]) > EXACT:
            told[name] = None
    return told


def sinks(job: WatchedJob) -> dict[str, Any]:
    """How far each sink is, what waits for it, and how often rows take effect in it."""
    view, outline = job.watch.view(), job.watch.outline()
    waiting = job.watch.unpublished()
    found = []
    for sink in (one for one in outline.steps if one.is_sink) if outline is not None else ():
        paths = [path for path in outline.paths if path.sink == sink.uid] if outline is not None else []
        inputs = [view.steps[edge.step] for edge in sink.inputs if edge.step in view.steps and edge.tag is None]
        found.append(
            {
                "sink": sink.uid,
                "detail": sink.detail,
                "rows": sum(step.rows_out for step in inputs),
                "paths": [
                    {"source": path.source, "guarantee": path.guarantee, "reasons": list(path.reasons)}
                    for path in paths
                ],
            }
        )
    return {
        "published": view.published,
        "committed": view.committed,
        "waiting": waiting,
        "most_waiting": MAX_UNPUBLISHED,
        "sinks": found,
    }
