"""Windows that merge: which there are of each key, and under which window the state of each is kept.

State stays where it is when a window grows, so that a row of a long session costs no more than one of a short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.descriptors import MapState
from headwater.windows.assigners import Window

Merge = Callable[[Window, list[Window], Window, list[Window]], None]
"""Gets the merged window, the windows it is made of, the window whose state stays, and those whose state goes into it."""


def sessions_declaration() -> MapState[Any, Any]:
    """From a window's start to its end and to the window of its state."""
    state = MapState("@sessions", "bigint", "struct<end: bigint, state_start: bigint, state_end: bigint>")
    state.attribute = "@sessions"
    return state


class Sessions:
    """The merging windows of the current key; they never touch."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def add(self, window: Window, merge: Merge) -> Window:
        """Put a window in, merging it with those it touches; gives the window it has become."""
        touching = [w for w in self.windows() if w.touches(window)]
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

    def state_window(self, window: Window) -> Window | None:
        """Under which window the state of a window is kept; None when there is no such window."""
        found = self._state.get(window.start)
        if found is None or found.end != window.end:
            return None
        return Window(found.state_start, found.state_end)

    def remove(self, window: Window) -> None:
        self._state.remove(window.start)

    def windows(self) -> list[Window]:
        """All there are, in order of time."""
        return sorted(Window(start, kept.end) for start, kept in self._state.items())

    def _put(self, window: Window, state: Window) -> None:
        self._state.put(window.start, (window.end, state.start, state.end))
