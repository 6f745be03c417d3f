"""A function that shows what event time does to its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import headwater as hw

OUT = "k string, what string, at long, now long"


class Watch(hw.KeyedProcessFunction):
    """Shows each row, whether it was late, and a timer 10 ms of event time after it."""

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        ctx.timers.event_time(event.ts + 10)
        yield ctx.key, "late" if event.ts <= ctx.watermark else "row", event.ts, ctx.now

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield ctx.key, "timer", timer.timestamp, ctx.now
