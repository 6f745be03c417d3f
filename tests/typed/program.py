"""A user's program, as a type checker sees it. It is never run.

A comment behind `reveal_type` says what the checker must say there; one that begins with `error` that it must refuse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, reveal_type

import headwater as hw


class Mean(hw.AggregateFunction[float, tuple[int, float], float]):
    pass


class Totals(hw.KeyedProcessFunction):
    total = hw.ValueState("double", default=0.0)
    last = hw.ValueState("long")
    named = hw.ValueState("how_many", "long")
    given = hw.ValueState[int]("long")
    nested: hw.ValueState[list[int]] = hw.ValueState("array<long>")
    recent = hw.ListState("timestamp")
    by_shop = hw.MapState("string", "long")
    largest = hw.ReducingState("long", reduce=max)
    mean = hw.AggregatingState("struct<n: long, sum: double>", aggregate=Mean())

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        reveal_type(self.total.get())  # float
        reveal_type(self.last.get())  # int | None
        reveal_type(self.named.get())  # Any
        reveal_type(self.given.get())  # int | None
        reveal_type(self.nested.get())  # list[int]
        reveal_type(self.recent.get())  # list[datetime.datetime]
        reveal_type(self.by_shop.get("books"))  # int | None
        reveal_type(self.by_shop.get("books", 0))  # int
        reveal_type(self.by_shop.items())  # list[tuple[str, int]]
        reveal_type(self.largest.get())  # int | None
        reveal_type(self.mean.get())  # float | None
        reveal_type(ctx.timestamp)  # int | None
        self.total.set("much")  # error: arg-type
        self.last.set(None)
        self.mean.add(2.5)
        yield {"total": self.total.get() + 1}

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> None:
        reveal_type(timer.domain)  # Literal['event'] | Literal['processing']


env = hw.Environment("typed", engine="local", state_backend="disk", checkpointing="at_least_once")
hw.Environment("typed", engine="flink")  # error: arg-type
hw.Environment("typed", state_backend="rocksdb")  # error: arg-type
orders = env.from_rows([("ann", 1)], "user string, n long")
reveal_type(orders)  # headwater.streams.stream.Step
reveal_type(orders.key_by("user"))  # headwater.streams.keyed.KeyedStream
orders.join_regular(orders, on="user", how="outer")  # error: arg-type
orders.lookup_join({}, on="user", how="left")
orders.key_by("user").window(hw.tumbling("1 s")).panes("discard")  # error: arg-type
hw.connectors.files("out", format="orc")  # error: arg-type
hw.connectors.kafka("t", "host", format="json", start="latest", bad_records="dead_letters")
hw.connectors.kafka("t", "host", bad_records="skip")  # error: arg-type
reveal_type(env.start())  # headwater.job.engine.Job
