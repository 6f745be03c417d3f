"""State: how large it is and how it grows, and what is kept for a key or comes of a query."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from headwater import control
from headwater.data.table_query import Bounds, query
from headwater.job.state_view import StateView
from headwater.web.answers.summary import recent
from headwater.web.answers.times import ASK_TIMEOUT
from headwater.web.watched import WatchedJob

_TOLD_EPOCHS = 100
"""What a picture of its size shows."""
_SHOWN_ROWS = 200
_BOUNDS = Bounds(seconds=10.0, rows=_SHOWN_ROWS + 1, memory="512MB")


def states(job: WatchedJob) -> dict[str, Any]:
    """The states of every step, and how the job itself says that they grow."""
    view, lines = job.watch.view(), recent(job, _TOLD_EPOCHS)
    history = [
        {
            "epoch": line.epoch,
            "time_ms": line.time_ms,
            "entries": sum(sum(step.state.values()) for step in line.steps.values()),
            "bytes": sum(step.work.get("state_bytes", 0) for step in line.steps.values()),
            "stored_bytes": line.stored_bytes,
        }
        for line in reversed(lines)
    ]
    steps = [
        {
            "step": uid,
            "states": [
                {"name": name, "entries": entries, "bytes": step.state_bytes.get(name, 0)}
                for name, entries in sorted(step.state.items())
            ],
            "entries": sum(step.state.values()),
            "bytes": sum(step.state_bytes.values()),
            "expired": step.counters.get("state_expired", 0),
            "largest_subtask": step.work.get("largest_state"),
            "subtasks": step.work.get("subtasks"),
            "bytes_per_h": step.growth.get("bytes_per_hour"),
            "day_bytes": step.growth.get("day_bytes"),
            "week_bytes": step.growth.get("week_bytes"),
        }
        for uid, step in view.steps.items()
        if step.state
    ]
    return {"is_running": view.is_running, "steps": steps, "history": history}


def look_up(job: WatchedJob, step: str, state: str, key: str, savepoint: str | None) -> dict[str, Any]:
    """What is kept for a key: text, or JSON for keys of other types."""
    view = _view(job, step, state, savepoint)
    wanted = _key(view, key)
    found = view.get(tuple(wanted) if isinstance(wanted, list) else wanted)
    return {"epoch": view.epoch, "entries": len(view), "found": found is not None, "value": found}


def ask(job: WatchedJob, step: str, state: str, sql: str, savepoint: str | None) -> dict[str, Any]:
    """What a query gives over a state, which it calls `state`; it reads that and nothing else."""
    view = _view(job, step, state, savepoint)
    found = query(view.table(), sql, _BOUNDS)
    rows = [list(row.values()) for row in found.slice(0, _SHOWN_ROWS).to_pylist()]
    columns = [{"name": one.name, "type": str(one.type)} for one in found.schema]
    return {"epoch": view.epoch, "columns": columns, "rows": rows, "is_cut": len(found) > _SHOWN_ROWS}


def _view(job: WatchedJob, step: str, state: str, savepoint: str | None) -> StateView:
    if savepoint is not None:
        return job.saved.look(savepoint, step, state)
    return control.request_state(job.path, step, state, timeout=ASK_TIMEOUT)


def _key(view: StateView, text: str) -> Any:
    """A key as it is written: 17 may be a name."""
    schema = view.table().schema
    if "key" in schema.names and pa.types.is_string(schema.field("key").type):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
