"""What windows in event time can be: such as the columns that show them can hold, and made as `hw.Window`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from headwater.data.batch import FURTHEST_MS, MIN_TIMESTAMP, Batch
from headwater.errors import RowError
from headwater.windows.assigners import Global, InProcessingTime, Session, SlicedAssigner, Window, WindowAssigner
from headwater.windows.errors import WindowError

Assign = Callable[[Any, int], Iterable[Window]]
"""Gives the windows of a row at a time."""


def reach_of(assigner: WindowAssigner) -> int:
    """How far from a row's time its windows begin and end at most, as far as that is known before they are assigned."""
    if isinstance(assigner, SlicedAssigner):
        return assigner.size_ms  # a row is in all of its windows, and none is larger
    return assigner.gap_ms or 0 if isinstance(assigner, Session) else 0


def check_reach(batch: Batch, reach_ms: int, step: str) -> None:
    """Refuse a row without event time, and one so near the ends of time that its windows, within this reach, lie beyond."""
    times = batch.timestamps
    if not len(times):
        return
    low, high = int(times.min()), int(times.max())
    if low == MIN_TIMESTAMP:
        raise RowError.no_event_time(step)
    furthest = FURTHEST_MS - reach_ms
    if low < -furthest or high > furthest:
        at = int(np.argmax((times < -furthest) | (times > furthest)))
        raise WindowError.beyond_time(step, int(times[at]), batch.table.slice(at, 1).to_pylist()[0])


def assigned_by(assigner: WindowAssigner, step: str) -> Assign:
    """What assigns windows; what a user's function has a part in is looked at, window by window."""
    inner = assigner.inner if isinstance(assigner, InProcessingTime) else assigner
    is_fixed = type(inner).assign in (SlicedAssigner.assign, Global.assign)
    if is_fixed or (type(inner).assign is Session.assign and isinstance(inner, Session) and inner.gap_ms is not None):
        return assigner.assign
    return partial(_looked_at, assigner, step)


def _looked_at(assigner: WindowAssigner, step: str, event: Any, timestamp: int) -> Iterable[Window]:
    windows: Any = assigner.assign(event, timestamp)
    if not isinstance(windows, Iterable) or isinstance(windows, Window):
        raise WindowError.not_windows(step, assigner.describe(), windows)
    found = list(windows)
    if not all(isinstance(window, Window) for window in found):
        raise WindowError.not_windows(step, assigner.describe(), windows)
    for window in found if assigner.is_bounded else ():
        if not -FURTHEST_MS <= window.start < window.end <= FURTHEST_MS:
            raise WindowError.bad_window(step, assigner.describe(), window, event)
    return found
