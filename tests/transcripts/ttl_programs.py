"""Programs over state with a ttl."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import headwater as hw
from headwater.streams.stream import Stream
from headwater.testing.transcript import Program

OUT = "k string, what string"


class Total(hw.AggregateFunction[int, int, str]):
    def create(self) -> int:
        return 0

    def add(self, accumulator: int, value: int) -> int:
        return accumulator + value

    def result(self, accumulator: int) -> str:
        return f"total {accumulator}"


class Says(hw.KeyedProcessFunction):
    """Each row names a kind of state and an operation. A read says what it finds; a timer says all there is of values."""

    value: Any
    map: Any

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        state, operation = event.op.split(".")
        handle = getattr(self, state)
        if operation == "put":
            handle.put(event.entry, event.n)
        elif operation in ("get", "items"):
            yield ctx.key, f"{state} {handle.get(event.entry) if event.entry else getattr(handle, operation)()}"
        elif operation == "clear":
            handle.clear()
        elif operation == "timer":
            ctx.timers.event_time(event.n)
        else:
            getattr(handle, operation)(event.n)

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield ctx.key, f"at {timer.timestamp} {self.value.get()}"
        self.value.set(timer.timestamp)


class Written(Says):
    value = hw.ValueState("bigint", default=0, ttl=hw.ttl("10 ms"))
    list = hw.ListState("bigint", ttl=hw.ttl("10 ms"))
    map = hw.MapState("string", "bigint", ttl=hw.ttl("10 ms"))
    largest = hw.ReducingState("bigint", reduce=max, ttl=hw.ttl("10 ms"))
    total = hw.AggregatingState("bigint", aggregate=Total(), ttl=hw.ttl("10 ms"))
    kept = hw.ValueState("bigint", default=0)


READ = hw.ttl("10 ms", update="read_and_write")


class Read(Says):
    value = hw.ValueState("bigint", default=0, ttl=READ)
    list = hw.ListState("bigint", ttl=READ)
    map = hw.MapState("string", "bigint", ttl=READ)
    largest = hw.ReducingState("bigint", reduce=max, ttl=READ)
    total = hw.AggregatingState("bigint", aggregate=Total(), ttl=READ)
    kept = hw.ValueState("bigint", default=0)


EVENT = hw.ttl("10 ms", clock="event")


class InEventTime(Says):
    value = hw.ValueState("bigint", default=0, ttl=EVENT)
    list = hw.ListState("bigint", ttl=EVENT)
    map = hw.MapState("string", "bigint", ttl=EVENT)


def expiring(stream: Stream) -> dict[str, Stream]:
    rows = stream.key_by("k")
    return {
        "main": rows.process(Written(), OUT).with_uid("written"),
        "read": rows.process(Read(), OUT).with_uid("read"),
    }


def expiring_in_event_time(stream: Stream) -> dict[str, Stream]:
    return {"main": stream.key_by("k").process(InEventTime(), OUT)}


PROGRAMS: dict[str, Program] = {program.__name__: program for program in (expiring, expiring_in_event_time)}
