"""What all handles on windows have in common: what fires them, what leaves them, and how long they are kept."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from headwater.durations import Duration
from headwater.graph.flow import Flow
from headwater.graph.windowed import Windowing
from headwater.windows.evictors import Evictor
from headwater.windows.triggers import Trigger

if TYPE_CHECKING:
    from headwater.streams.environment import Environment
    from headwater.streams.stream import Step

W = TypeVar("W", bound=Windowing)


class WindowingStream(Generic[W]):
    """The windows of one stream or of two. Each call gives a new handle."""

    def __init__(self, env: Environment, windows: W) -> None:
        self._env, self._windows = env, windows

    def __repr__(self) -> str:
        """Which windows, over rows of what."""
        return f"<{type(self).__name__} {self._windows.assigner.describe()}: {self._windows.rows}>"

    def trigger(self, trigger: Trigger) -> Self:
        """Fire as the trigger says instead of at the window's end."""
        return self._with(trigger=trigger)

    def evict(self, evictor: Evictor, *, after: bool = False) -> Self:
        """Let elements leave when the window fires, before or after the function sees them."""
        return self._with(evictor=evictor, evicts_after=after)

    def allow_lateness(self, lateness: Duration) -> Self:
        """Keep windows for so long after their end: late rows update them, and each update fires."""
        return self._with(lateness=lateness)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _with(self, **settings: Any) -> Self:
        return self.__class__(self._env, dataclasses.replace(self._windows, **settings))

    def _step(self, flow: Flow) -> Step:
        from headwater.streams.stream import Step  # which can be windowed itself

        return Step(self._env, flow)
