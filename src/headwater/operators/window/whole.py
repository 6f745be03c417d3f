"""Windows of many slices as they were stored before they were computed by slices: one accumulator for each key and window.

They are read, fire and go in their time. New rows go into slices, and a window holds what both have.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from headwater.data.batch import MAX_TIMESTAMP
from headwater.data.rows import encode_rows
from headwater.graph.nodes import WindowNode
from headwater.operators.timers import StepTimers
from headwater.operators.window.contents import contents_of
from headwater.operators.window.schedule import SliceSchedule
from headwater.operators.window.scope import scope_of, scope_spread, scope_type
from headwater.state.backend import StateBackend
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor
from headwater.state.table import StateTable
from headwater.windows.assigners import Window


class WholeWindows:
    """The tables of such windows."""

    def __init__(self, node: WindowNode, step: str, schema: pa.Schema, *, backend: StateBackend) -> None:
        self._key, self._step, self._schema = node.key, step, schema
        scope, spread = scope_type(node.key.type), scope_spread(node.key)
        self._cursor = Cursor()
        self._entries, self._states = open_states(
            contents_of(node, step).declarations(), step, scope, self._cursor, spread, backend=backend
        )
        self._timers = StepTimers(step, scope, Cursor(), spread, backend=backend)
        self._kept: Any = self._states["kept"]
        self.reset()

    def reset(self) -> None:
        """Become as new."""
        for table in self.tables().values():
            table.clear_all()
        self.look_again()

    def look_again(self) -> None:
        """What is stored has changed from outside."""
        self._windows: dict[Window, list[Any]] | None = None
        """The keys of each, once it is known which there are."""

    def tables(self) -> dict[str, StateTable]:
        """What is stored, under its old names."""
        return {**self._states, **self._timers.tables()}

    def settle(self, schedule: SliceSchedule, fired_ms: int) -> None:
        """Put the windows that were read on the schedule, once. Of those that had not fired the timers for it are read too."""
        if self._windows is not None:
            return
        self._windows = {}
        timers = list(self._timers.event.due(MAX_TIMESTAMP))
        waiting = {scope for at, scope in timers if at == Window(*scope[1:]).last}
        for scope, _ in self._entries.scan(0):
            self._windows.setdefault(Window(*scope[1:]), []).append(scope[0])
            if timers and scope not in waiting:
                fired_ms = max(fired_ms, scope[2] - 1)
        schedule.watermark_ms = max(schedule.watermark_ms, fired_ms)
        for window in self._windows:
            schedule.expect_window(window)

    def __contains__(self, window: Window) -> bool:
        return self._windows is not None and window in self._windows

    def table(self, window: Window) -> pa.Table:
        """What a window holds, by key."""
        assert self._windows is not None
        rows = []
        for key in self._windows[window]:
            self._cursor.entry = self._entries.entry(scope_of(key, window))
            own = () if self._key.is_nothing else tuple(key) if len(self._key.columns) > 1 else (key,)
            rows.append((*own, *self._kept.get()))
        return encode_rows(rows, self._schema, self._step)

    def drop(self, schedule: SliceSchedule, watermark_ms: int) -> None:
        """Forget the windows that are gone."""
        gone = [window for window in self._windows or () if schedule.cleanup_time(window) <= watermark_ms]
        for window in gone:
            assert self._windows is not None
            for key in self._windows.pop(window):
                self._cursor.entry = self._entries.entry(scope_of(key, window))
                self._kept.clear()
