"""Programs of the transcripts in `window_joins/`: joins and co-groups over every kind of windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tests.transcripts.window_programs import in_ms

import headwater as hw
from headwater.streams.stream import Step, Stream
from headwater.streams.window_join import CoGroupedStreams, JoinedStreams, WindowedJoin
from headwater.testing.transcript import Program
from headwater.windows.triggers import EventTimeTrigger

LATE_LEFT = hw.OutputTag("late_left", "k string, n long, window_start timestamp, window_end timestamp, late_by_ms long")
LATE_RIGHT = hw.OutputTag("late_right", "id string, m long, late_by_ms long")
ALONE = hw.OutputTag("alone", "k string")


class ByElement(EventTimeTrigger):
    """The default trigger under another name, which the join by columns does not know."""


def joined(left: Stream, right: Stream) -> JoinedStreams:
    return left.join(right).where("k").equal_to("id")


def cogrouped(left: Stream, right: Stream) -> CoGroupedStreams:
    return left.cogroup(right).where("k").equal_to("id")


def both_ways(windows: WindowedJoin, **more: Step) -> dict[str, Stream]:
    """A join by columns and by element, and other steps."""
    steps = {"main": windows.apply(), "by_element": windows.trigger(ByElement()).apply(), **more}
    return {name: in_ms(step.with_uid(name)) for name, step in steps.items()}


def plus(left: Any, right: Any) -> tuple[str, int] | None:
    return None if left.n == 2 else (left.k, left.n + right.m)


def tell(lefts: list[Any], rights: list[Any], ctx: hw.WindowContext) -> Iterator[Any]:
    """What a co-group is called with."""
    if not lefts or not rights:
        ctx.output(ALONE, (ctx.key,))
    yield ctx.key, [row.n for row in lefts], [row.m for row in rights], ctx.window.start, ctx.window.end


TOLD = "k string, ns array<long>, ms array<long>, start long, end long"


def tumbling(left: Stream, right: Stream) -> dict[str, Stream]:
    windows = joined(left, right).window(hw.tumbling("10 ms"))
    return both_ways(windows, function=windows.apply(plus, "k string, total long"))


def lateness(left: Stream, right: Stream) -> dict[str, Stream]:
    windows = joined(left, right).window(hw.tumbling("10 ms")).allow_lateness("10 ms")
    windows = windows.late_left(LATE_LEFT).late_right(LATE_RIGHT)
    outputs = both_ways(windows)
    main, other = windows.apply().with_uid("columns"), windows.apply(plus, "k string, total long").with_uid("elements")
    late = {"late_left": main.side_output(LATE_LEFT), "late_right": main.side_output(LATE_RIGHT)}
    also = {"also_left": other.side_output(LATE_LEFT), "also_right": other.side_output(LATE_RIGHT)}
    return outputs | {name: in_ms(stream) for name, stream in (late | also).items()}


def sliding(left: Stream, right: Stream) -> dict[str, Stream]:
    gaps = joined(left, right).window(hw.sliding("4 ms", "10 ms"))
    return both_ways(
        joined(left, right).window(hw.sliding("10 ms", "5 ms")).allow_lateness("5 ms"),
        gaps=gaps.apply(),
        gaps_by_element=gaps.trigger(ByElement()).apply(),
    )


def cumulate(left: Stream, right: Stream) -> dict[str, Stream]:
    return both_ways(joined(left, right).window(hw.cumulate("5 ms", "15 ms")))


def session(left: Stream, right: Stream) -> dict[str, Stream]:
    main = joined(left, right).window(hw.session("10 ms")).allow_lateness("10 ms").late_right(LATE_RIGHT).apply()
    by = hw.session(by=lambda row: f"{10 if row.right is None else row.right.m} ms")
    dynamic = cogrouped(left, right).window(by).apply(tell, TOLD)
    return {
        "main": in_ms(main),
        "late_right": main.side_output(LATE_RIGHT),
        "dynamic": dynamic,
    }


def outer(left: Stream, right: Stream) -> dict[str, Stream]:
    """Every kind, by columns and by element."""
    outputs: dict[str, Stream] = {}
    for how in ("left", "right", "full", "semi", "anti"):
        windows = left.join(right, how=how).where("k").equal_to("k").window(hw.tumbling("10 ms"))
        windows = windows.allow_lateness("10 ms")
        name = "main" if how == "left" else how
        outputs[name] = in_ms(windows.apply().with_uid(f"{name}_by_columns"))
        outputs[f"{name}_by_element"] = in_ms(windows.trigger(ByElement()).apply().with_uid(f"{name}_by_element"))
    sessions = left.join(right, how="full").where("k").equal_to("k").window(hw.session("5 ms"))
    return {**outputs, "sessions": sessions.apply(either, "k string, total long").with_uid("sessions")}


def either(left: Any, right: Any) -> tuple[str, int]:
    """A row of one side or of both."""
    sides = [row for row in (left, right) if row is not None]
    return sides[0].k, sum(row.n for row in sides)


def count(left: Stream, right: Stream) -> dict[str, Stream]:
    every = joined(left, right).window(hw.global_window()).trigger(hw.triggers.count(2))
    return {
        "main": joined(left, right).window(hw.count(3)).apply(),
        "growing": every.apply().with_uid("growing"),
        "last": joined(left, right).window(hw.count(2, 1)).apply(plus, "k string, total long").with_uid("last"),
    }


def firing(left: Stream, right: Stream) -> dict[str, Stream]:
    tens = joined(left, right).window(hw.tumbling("10 ms"))
    return {
        "main": in_ms(tens.trigger(hw.early(count=2)).apply()),
        "purging": in_ms(tens.trigger(hw.triggers.purging(hw.triggers.event_time())).apply().with_uid("purging")),
        "evicting": in_ms(tens.evict(hw.evictors.count(2)).apply().with_uid("evicting")),
        "fresh": in_ms(
            tens.evict(hw.evictors.delta(5, lambda row, newest: value(newest) - value(row))).apply().with_uid("fresh")
        ),
    }


def value(row: Any) -> int:
    return int(row.left.n if row.left is not None else row.right.m)


def processing_time(left: Stream, right: Stream) -> dict[str, Stream]:
    tens = hw.processing_time(hw.tumbling("10 ms"))
    return {
        "main": in_ms(joined(left, right).window(tens).apply()),
        "groups": cogrouped(left, right).window(hw.processing_time(hw.session("10 ms"))).apply(tell, TOLD),
    }


class Halves(hw.WindowAssigner):
    """Two windows for each row: the ten of its time, and the hundred."""

    def assign(self, event: Any, timestamp: int) -> Iterable[hw.Window]:
        return [hw.Window(timestamp - timestamp % size, timestamp - timestamp % size + size) for size in (10, 100)]


def custom(left: Stream, right: Stream) -> dict[str, Stream]:
    return {"main": in_ms(joined(left, right).window(Halves()).apply())}


def cogroup(left: Stream, right: Stream) -> dict[str, Stream]:
    windows = cogrouped(left, right).window(hw.tumbling("10 ms")).allow_lateness("10 ms").late_left(LATE_LEFT)
    main = windows.apply(tell, TOLD)
    return {"main": main, "alone": main.side_output(ALONE), "late_left": in_ms(main.side_output(LATE_LEFT))}


def keys(left: Stream, right: Stream) -> dict[str, Stream]:
    tens = hw.tumbling("10 ms")
    columns = left.join(right).where("k", "n").equal_to("k", "m").window(tens)
    function = left.join(right).where(lambda row: row.n and row.n % 2, type="long").equal_to("m").window(tens)
    both = left.join(right).where(lambda row: row.k, type="string").equal_to(lambda row: row.k, type="string")
    itself = left.join(left).where("k").equal_to("k").window(tens)
    whole = left.join(right).where(lambda row: (row.k, row.n), type="struct<a:string,b:bigint>").equal_to("k", "m")
    main = both_ways(columns)
    others = {
        "function": function.apply(),
        "function_by_element": function.trigger(ByElement()).apply(),
        "both": both.window(tens).apply(suffix="_2"),
        "itself": itself.apply(),
        "itself_by_element": itself.trigger(ByElement()).apply(),
        "whole": whole.window(tens).apply(),
        "whole_by_element": whole.window(tens).trigger(ByElement()).apply(),
    }
    return main | {name: in_ms(step.with_uid(name)) for name, step in others.items()}


PROGRAMS: dict[str, Program] = {
    f"window_join.{program.__name__}": program
    for program in (
        tumbling,
        lateness,
        sliding,
        cumulate,
        session,
        outer,
        count,
        firing,
        processing_time,
        custom,
        cogroup,
        keys,
    )
}
