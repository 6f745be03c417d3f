"""The programs of transcripts about connected streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import headwater as hw
from headwater.streams.stream import Stream
from headwater.testing.transcript import Program


class Enrich(hw.CoProcessFunction):
    """Orders wait for their customer for at most 100 ms; both sides share the state of a key."""

    customer = hw.ValueState("string")
    waiting = hw.MapState("bigint", "bigint")
    lost = hw.OutputTag("lost", "id bigint, k string")

    def process_left(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        if self.customer.get() is not None:
            yield event.id, ctx.key, self.customer.get()
        else:
            self.waiting.put(event.id, ctx.timestamp + 100)
            ctx.timers.event_time(ctx.timestamp + 100)

    def process_right(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.customer.set(event.name)
        for order in self.waiting:
            yield order, ctx.key, event.name
        self.waiting.clear()

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> None:
        for order, deadline in self.waiting.items():
            if deadline <= timer.timestamp:
                ctx.output(self.lost, (order, ctx.key))
                self.waiting.remove(order)


class Tell(hw.CoProcessFunction):
    """Says which side a row came from."""

    def process_left(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        yield f"left {event.id}", ctx.timestamp

    def process_right(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        yield f"right {event.name}", ctx.timestamp


def connected(orders: Stream, customers: Stream) -> dict[str, Stream]:
    step = (
        orders.key_by("k").connect(customers.key_by("customer")).process(Enrich(), "id bigint, k string, name string")
    )
    return {"main": step, "lost": step.side_output(Enrich.lost)}


def connected_without_key(orders: Stream, customers: Stream) -> dict[str, Stream]:
    return {"main": orders.connect(customers).process(Tell(), "said string, time bigint")}


PROGRAMS: dict[str, Program] = {
    "connected": connected,
    "connected_without_key": connected_without_key,
}
