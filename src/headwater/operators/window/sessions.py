"""Windows that merge: which there are of each key, and under which window the state of each is kept.

State stays where it is when a window grows, so that a row of a long session costs no more than one of a short. The
sessions of a key that has many are held in the order of time, so that a row finds those it touches by bisection.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from headwater.descriptors import MapState
from headwater.state.handles.maps import MapHandle
from headwater.state.memory import Cursor
from headwater.state.slices import Slice
from headwater.state.spread import Spread
from headwater.windows.assigners import Window

Merge = Callable[[Window, list[Window], Window, list[Window]], None]
"""Gets the merged window, the windows it is made of, the window whose state stays, and those whose state goes into it."""
_FEW = 8
"""Sessions of a key that are sorted anew each time."""


def sessions_declaration() -> MapState[Any, Any]:
    """From a window's start to its end and to the window of its state."""
    state = MapState("@sessions", "bigint", "struct<end: bigint, state_start: bigint, state_end: bigint>")
    state.attribute = "@sessions"
    return state


class Sessions:
    """The merging windows of the key that the cursor points at; they never touch. It is a state table, of all keys."""

    cut_since = 4

    def __init__(self, state: Any, cursor: Cursor) -> None:
        self._state: MapHandle = state
        self._cursor = cursor
        self._starts: dict[Any, list[int]] = {}
        """For each key with many, where they start, in order."""

    def add(self, window: Window, merge: Merge) -> Window:
        """Put a window in, merging it with those it touches; gives the window it has become."""
        touching = self.touching(window)
        if not touching:
            self._put(window, window)
            return window
        merged = Window(min(w.start for w in (window, *touching)), max(w.end for w in (window, *touching)))
        if touching == [merged]:
            return merged
        kept, *absorbed = [self.state_window(w) for w in touching]
        assert kept is not None
        for w in touching:
            self.remove(w)
        self._put(merged, kept)
        merge(merged, touching, kept, [w for w in absorbed if w is not None])
        return merged

    def touching(self, window: Window) -> list[Window]:
        """Those that touch a window, in order of time."""
        starts = self._sorted()
        found = []
        for place in range(bisect_right(starts, window.end) - 1, -1, -1):
            session = Window(starts[place], self._state.get(starts[place]).end)
            if session.end < window.start:
                break
            found.append(session)
        return found[::-1]

    def state_window(self, window: Window) -> Window | None:
        """Under which window the state of a window is kept; None when there is no such window."""
        found = self._state.get(window.start)
        if found is None or found.end != window.end:
            return None
        return Window(found.state_start, found.state_end)

    def remove(self, window: Window) -> None:
        self._state.remove(window.start)
        starts = self._starts.get(key := self._cursor.key)
        if starts is not None:
            place = bisect_left(starts, window.start)
            if starts[place : place + 1] == [window.start]:
                del starts[place]
            if len(starts) <= _FEW:
                del self._starts[key]

    def _put(self, window: Window, state: Window) -> None:
        starts = self._starts.get(self._cursor.key)
        if starts is not None:
            insort(starts, window.start)
        self._state.put(window.start, (window.end, state.start, state.end))

    def _sorted(self) -> list[int]:
        starts = self._starts.get(key := self._cursor.key)
        if starts is None:
            starts = sorted(self._state.keys())
            if len(starts) > _FEW:
                self._starts[key] = starts
        return starts

    # -- as a table -------------------------------------------------------------------------------------------------

    @property
    def spread(self) -> Spread:
        return self._state.spread

    @property
    def elements(self) -> int:
        return self._state.elements

    def changes(self) -> pa.Table | None:
        return self._state.changes()

    def forget_changes(self) -> None:
        self._state.forget_changes()

    def dump(self) -> pa.Table:
        return self._state.dump()

    def dump_slice(self, part: Slice) -> pa.Table:
        return self._state.dump_slice(part)

    def load(self, dumped: pa.Table) -> None:
        self._starts = {}
        self._state.load(dumped)

    def apply(self, changes: pa.Table) -> None:
        self._starts = {}
        self._state.apply(changes)

    def clear_all(self) -> None:
        self._starts = {}
        self._state.clear_all()

    def __len__(self) -> int:
        return len(self._state)
