"""The windows of a step that hold rows and have not been let go, as the state of a running job tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from headwater.control.asking import request_state
from headwater.durations import Duration
from headwater.errors import JobError
from headwater.job.outline import OutlineStep, OutlineWindow

_TIMERS, _SLICES, _SLICE = "@timers.event", "slices", "@slice"
_MOST = 200
"""Windows that are told of, the earliest ends first."""


@dataclass(frozen=True)
class OpenWindow:
    """A window that holds rows."""

    start_ms: int
    end_ms: int
    entries: int
    """How many are kept for it; a key may have several, which are put together now and then."""


@dataclass(frozen=True)
class OpenWindows:
    """The open windows of a step at an epoch, the earliest ends first, and how many there are in all."""

    step: str
    epoch: int
    number: int
    windows: tuple[OpenWindow, ...]


def open_windows(
    job_dir: Path, step: OutlineStep, states: Mapping[str, int], *, timeout: Duration | None = None
) -> OpenWindows:
    """Ask a running job; `states` are those that the step has."""
    if step.window is None:
        raise JobError.no_windows(step.uid, [])
    name = _SLICES if _SLICES in states else _TIMERS
    view = request_state(job_dir, step.uid, name, timeout=timeout)
    spans = _of_slices(view.table(), step.window) if name == _SLICES else _of_timers(view.table())
    found = sorted(
        (OpenWindow(start, end, entries) for (start, end), entries in spans.items()), key=lambda one: one.end_ms
    )
    return OpenWindows(step.uid, view.epoch, len(found), tuple(found[:_MOST]))


def _of_slices(table: pa.Table, window: OutlineWindow) -> dict[tuple[int, int], int]:
    """A slice is part of one window, or of several that overlap."""
    counted = table.group_by([_SLICE]).aggregate([([], "count_all")])
    size_ms, every_ms = window.size_ms or 0, window.every_ms or 1
    found: dict[tuple[int, int], int] = {}
    for start, entries in zip(counted[_SLICE].to_pylist(), counted["count_all"].to_pylist(), strict=True):
        newest = start - (start - window.offset_ms) % every_ms
        for begins in _starts(newest, start, size_ms, every_ms):
            span = (begins, begins + size_ms)
            found[span] = found.get(span, 0) + entries
    return found


def _starts(newest: int, slice_ms: int, size_ms: int, every_ms: int) -> Iterable[int]:
    return range(newest, slice_ms - size_ms, -every_ms)[:_MOST]


def _of_timers(table: pa.Table) -> dict[tuple[int, int], int]:
    """Where windows are by key, each has a timer at its end."""
    if not pa.types.is_struct(table["key"].type) or table["key"].type.get_field_index("end") < 0:
        return {}
    keys = table["key"].combine_chunks()
    spans = pa.table({name: pc.struct_field(keys, name) for name in ("start", "end")})
    counted = spans.group_by(["start", "end"]).aggregate([([], "count_all")])
    rows = zip(*(counted[name].to_pylist() for name in ("start", "end", "count_all")), strict=True)
    return {(start, end): number for start, end, number in rows}
