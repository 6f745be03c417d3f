"""The valve of a step with two inputs: event time is that of the slower one that is not idle, as in Flink.

An input that was idle counts again at once: event time waits for it, so that its rows are not late by themselves. Within
an input a channel that resumes counts when it has caught up with the others.
"""

from __future__ import annotations

from headwater.clock.watermark import Valve
from headwater.state.table import StateTable

_NAMES = ("left", "right")


class SidedValve:
    """A valve for the channels of each side, and one over both sides. It is used like a valve."""

    def __init__(self) -> None:
        self._sides = [Valve(), Valve()]
        self._both = Valve(is_over_sides=True)

    def tables(self) -> dict[str, StateTable]:
        sides = {f"@channels.{name}": side for name, side in zip(_NAMES, self._sides, strict=True)}
        return {"@channels": self._both, **sides}

    def clear_all(self) -> None:
        for valve in (*self._sides, self._both):
            valve.clear_all()

    def update(self, channel: str, watermark_ms: int, *, idle: bool = False, side: int = 0) -> None:
        """Take what a channel of a side says."""
        self._sides[side].update(channel, watermark_ms, idle=idle)

    def settle(self) -> int:
        """Let the watermark follow the sides, and give it."""
        for name, side in zip(_NAMES, self._sides, strict=True):
            if len(side):
                self._both.update(name, side.settle(), idle=side.is_idle())
        return self._both.settle()

    def watermark(self) -> int:
        """Where event time stood when the valve was last settled."""
        return self._both.watermark()

    def is_idle(self) -> bool:
        """Whether no side that has not ended is active."""
        return self._both.is_idle()
