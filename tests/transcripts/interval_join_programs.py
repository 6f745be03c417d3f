"""The programs of transcripts about interval joins."""

from __future__ import annotations

import headwater as hw
from headwater.streams.stream import Stream
from headwater.testing.transcript import Program

ORDERS, PAYMENTS = "id bigint, item string", "of bigint, amount bigint"


def interval(orders: Stream, payments: Stream) -> dict[str, Stream]:
    tags = {
        name: hw.OutputTag(name, ORDERS if name.endswith("left") else PAYMENTS)
        for name in ("late_left", "late_right", "unmatched_left", "unmatched_right")
    }
    step = orders.key_by("id").interval_join(payments.key_by("of"), between=("-5 ms", "10 ms"), **tags)
    return {"main": step, **{name: step.side_output(tag) for name, tag in tags.items()}}


def interval_of_itself(stream: Stream) -> dict[str, Stream]:
    """A stream joined with itself, and the pairs joined again one level below."""
    keyed = stream.key_by("k")
    pairs = keyed.interval_join(keyed, between=("1 ms", "5 ms"), name="pairs")
    triples = pairs.key_by("k").interval_join(keyed, between=("1 ms", "5 ms"), suffix="_3", name="triples")
    return {"main": triples, "pairs": pairs}


def interval_by_clock(orders: Stream, payments: Stream) -> dict[str, Stream]:
    tags = {"unmatched_left": hw.OutputTag("unmatched_left", ORDERS)}
    tags["unmatched_right"] = hw.OutputTag("unmatched_right", PAYMENTS)
    step = orders.key_by("id").interval_join(
        payments.key_by("of"), between=("-5 ms", "10 ms"), time="processing", **tags
    )
    return {"main": step, **{name: step.side_output(tag) for name, tag in tags.items()}}


PROGRAMS: dict[str, Program] = {
    "interval": interval,
    "interval_of_itself": interval_of_itself,
    "interval_by_clock": interval_by_clock,
}
