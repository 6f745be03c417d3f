"""The programs of transcripts about broadcast streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import headwater as hw
from headwater.streams.stream import Stream
from headwater.testing.transcript import Program

LIMITS = hw.MapState("limits", "string", "struct<least:bigint,says:array<string>>")
CHANGES = hw.MapState("changes", "string", "bigint")


class Watch(hw.KeyedBroadcastFunction):
    """Totals per key, against limits that can be changed: at once, and again when event time comes to a row's ten."""

    total = hw.ValueState("bigint", default=0)
    seen = hw.ListState("bigint")

    def process(self, event: Any, ctx: hw.BroadcastContext) -> Iterator[Any]:
        self.total.set(self.total.get() + event.n)
        self.seen.add(event.n)
        ctx.timers.event_time(ctx.timestamp // 10 * 10 + 9)
        yield from self._passed(ctx, "now")

    def on_timer(self, timer: hw.Timer, ctx: hw.BroadcastContext) -> Iterator[Any]:
        yield from self._passed(ctx, "then")

    def process_broadcast(self, event: Any, ctx: hw.BroadcastContext) -> Iterator[Any]:
        limits, changes = ctx.broadcast_state(LIMITS), ctx.broadcast_state("changes")
        told: list[Any] = []
        if event.do == "set":
            limits.put(event.name, {"least": event.least, "says": [event.name, str(event.least)]})
        elif event.do == "remove":
            limits.remove(event.name)
        elif event.do == "clear":
            limits.clear()
        elif event.do == "tell":
            ctx.apply_to_keyed_state(self.seen, lambda key, seen: told.append((key, "tell", str(seen.get()))))
        elif event.do == "less":
            ctx.apply_to_keyed_state(Watch.total, lambda _, total: total.set(total.get() - event.least))
        elif event.do == "forget":
            ctx.apply_to_keyed_state(self.seen, lambda _, seen: seen.clear())
            ctx.apply_to_keyed_state(self.total, lambda _, total: total.clear())
        changes.put(event.do, changes.get(event.do, 0) + 1)
        yield from told

    def _passed(self, ctx: hw.BroadcastContext, when: str) -> Iterator[Any]:
        for limit in ctx.broadcast_state("limits").values():
            if self.total.get() >= limit.least:
                yield ctx.key, when, " ".join(limit.says)


class Allow(hw.BroadcastFunction):
    """Lets rows through whose key is allowed, with the number of changes so far."""

    refused = hw.OutputTag("refused", "k string")

    def process(self, event: Any, ctx: hw.BroadcastContext) -> Iterator[Any]:
        if event.k in ctx.broadcast_state(CHANGES):
            yield event.k, event.n, ctx.broadcast_state(CHANGES).get(event.k)
        else:
            ctx.output(self.refused, (event.k,))

    def process_broadcast(self, event: Any, ctx: hw.BroadcastContext) -> None:
        allowed = ctx.broadcast_state(CHANGES)
        if event.do == "set":
            allowed.put(event.name, allowed.get(event.name, 0) + 1)
        else:
            allowed.remove(event.name)


def broadcast(data: Stream, limits: Stream) -> dict[str, Stream]:
    watch = data.key_by("k").connect(limits.broadcast(LIMITS, CHANGES)).process(Watch(), "k string, w string, x string")
    return {"main": watch}


def broadcast_without_key(data: Stream, changes: Stream) -> dict[str, Stream]:
    allow = data.connect(changes.broadcast(CHANGES)).process(Allow(), "k string, n bigint, changes bigint")
    return {"main": allow, "refused": allow.side_output(Allow.refused)}


PROGRAMS: dict[str, Program] = {
    "broadcast": broadcast,
    "broadcast_without_key": broadcast_without_key,
}
