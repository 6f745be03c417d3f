"""Programs of the transcripts in `windows/`: triggers, their compositions, evictors, and the figures of the Dataflow model."""

from __future__ import annotations

import operator
from typing import Any

from tests.transcripts.window_programs import LATE, plus, shown

import headwater as hw
from headwater.streams.stream import Stream
from headwater.testing.transcript import Program
from headwater.windows import evictors, triggers

# -- triggers -------------------------------------------------------------------------------------------------------


def event_time(stream: Stream) -> dict[str, Stream]:
    windows = stream.key_by("k").window(hw.tumbling("30 ms")).allow_lateness("10 ms")
    return shown(
        main=windows.trigger(triggers.event_time()).reduce(plus),
        continuous=windows.trigger(triggers.continuous("10 ms")).agg(n=hw.sum("n")),
        whole=stream.key_by("k").window(hw.global_window()).trigger(triggers.continuous("10 ms")).agg(n=hw.sum("n")),
    )


def clock(stream: Stream) -> dict[str, Stream]:
    windows = stream.key_by("k").window(hw.tumbling("10 ms")).panes("accumulating", info=True)
    return shown(
        main=windows.trigger(triggers.processing_time()).agg(n=hw.sum("n")),
        continuous=windows.trigger(triggers.continuous_processing_time("10 ms")).agg(n=hw.sum("n")),
        in_processing_time=stream.key_by("k")
        .window(hw.processing_time(hw.tumbling("30 ms")))
        .panes("accumulating", info=True)
        .trigger(triggers.continuous_processing_time("20 ms"))
        .agg(n=hw.sum("n")),
    )


def rise(last: Any, row: Any) -> int:
    return int(row.n - last.n)


class Enough(hw.Trigger):
    """Fires when the numbers since it fired last add up to ten."""

    can_merge = True
    sum = hw.ReducingState("bigint", reduce=operator.add)

    def on_element(self, event: Any, ctx: hw.TriggerContext) -> hw.TriggerResult:
        self.sum.add(event.n)
        if self.sum.get() < 10:
            return hw.TriggerResult.CONTINUE
        self.sum.clear()
        return hw.TriggerResult.FIRE


class Sweep(hw.Trigger):
    """Purges without firing for a negative number, and fires at the end; so a purge leaves its timer."""

    def on_element(self, event: Any, ctx: hw.TriggerContext) -> hw.TriggerResult:
        ctx.timers.event_time(ctx.window.last)
        return hw.TriggerResult.PURGE if event.n < 0 else hw.TriggerResult.CONTINUE

    def on_event_time(self, timestamp: int, ctx: hw.TriggerContext) -> hw.TriggerResult:
        return hw.TriggerResult.FIRE

    def clear(self, ctx: hw.TriggerContext) -> None:
        ctx.timers.delete_event_time(ctx.window.last)


def rows(stream: Stream) -> dict[str, Stream]:
    windows = stream.key_by("k").window(hw.tumbling("10 ms"))
    return shown(
        main=windows.trigger(triggers.count(2)).agg(n=hw.sum("n")),
        purging=windows.trigger(triggers.purging(triggers.count(2))).agg(n=hw.sum("n")),
        delta=windows.trigger(triggers.delta(5, rise)).agg(n=hw.sum("n")),
        custom=windows.trigger(Enough()).agg(n=hw.sum("n")),
    )


def purging(stream: Stream) -> dict[str, Stream]:
    windows = stream.key_by("k").window(hw.tumbling("10 ms"))
    either = hw.either(triggers.purging(triggers.count(3)), triggers.event_time())
    return shown(
        main=windows.trigger(Sweep()).agg(n=hw.sum("n")),
        delta=windows.trigger(triggers.purging(triggers.delta(5, rise))).agg(n=hw.sum("n")),
        either=windows.trigger(either).reduce(plus),
    )


def merging(stream: Stream) -> dict[str, Stream]:
    windows = stream.key_by("k").window(hw.session("10 ms"))
    return shown(
        main=windows.trigger(triggers.count(3)).agg(n=hw.sum("n")),
        custom=windows.trigger(Enough()).agg(n=hw.sum("n")),
        continuous=windows.trigger(triggers.continuous("20 ms")).agg(n=hw.sum("n")),
        early=windows.trigger(hw.early(count=3)).reduce(plus),
    )


def compositions(stream: Stream) -> dict[str, Stream]:
    windows = stream.key_by("k").window(hw.tumbling("10 ms"))
    three, end = triggers.count(3), triggers.event_time()
    return shown(
        main=windows.trigger(hw.either(three, end)).agg(n=hw.sum("n")),
        both=windows.trigger(hw.both(three, end)).agg(n=hw.sum("n")),
        then=windows.trigger(hw.then(three, end)).agg(n=hw.sum("n")),
        once=windows.trigger(hw.then(three, triggers.never())).agg(n=hw.sum("n")),
        repeat=windows.trigger(hw.repeat(triggers.delta(5, rise))).agg(n=hw.sum("n")),
        again=windows.trigger(hw.repeat(hw.both(triggers.count(2), three))).agg(n=hw.sum("n")),
    )


def early(stream: Stream) -> dict[str, Stream]:
    windows = stream.key_by("k").window(hw.tumbling("10 ms")).allow_lateness("100 ms").panes("accumulating", info=True)
    timed, counted = hw.early(every="10 ms").late(every="10 ms"), hw.early(count=2).on_time().late(count=2)
    return shown(
        main=windows.trigger(timed).agg(n=hw.sum("n")),
        counted=windows.trigger(counted).agg(n=hw.sum("n")),
    )


def timeout(stream: Stream) -> dict[str, Stream]:
    windows = stream.key_by("k").window(hw.tumbling("100 ms")).allow_lateness("100 ms")
    three, end = triggers.count(3), triggers.event_time()
    sessions = stream.key_by("k").window(hw.session("100 ms"))
    return shown(
        main=windows.trigger(triggers.timeout(three, "10 ms")).agg(n=hw.sum("n")),
        by_element=windows.trigger(triggers.timeout(three, "10 ms")).reduce(plus),
        last=windows.trigger(triggers.timeout(three, "10 ms", reset_on_new_record=True)).agg(n=hw.sum("n")),
        once=windows.trigger(triggers.timeout(three, "10 ms", clear_on_timeout=False)).agg(n=hw.sum("n")),
        end=windows.trigger(triggers.timeout(end, "10 ms")).agg(n=hw.sum("n")),
        purging=windows.trigger(triggers.purging(triggers.timeout(three, "10 ms"))).agg(n=hw.sum("n")),
        sessions=sessions.trigger(triggers.timeout(end, "10 ms")).agg(n=hw.sum("n")),
    )


# -- evictors -------------------------------------------------------------------------------------------------------


class Even(hw.Evictor):
    def keep(self, elements: list[hw.Element]) -> list[hw.Element]:
        return [element for element in elements if element.row.n % 2 == 0]


class Nothing(hw.Evictor):
    def keep(self, elements: list[hw.Element]) -> list[hw.Element]:
        return []


def evicting(stream: Stream) -> dict[str, Stream]:
    windows = stream.key_by("k").window(hw.tumbling("10 ms"))
    numbers = {"all": hw.collect_list("n")}
    pairs = windows.trigger(triggers.count(2))
    return shown(
        main=windows.evict(evictors.count(2)).agg(**numbers),
        time=windows.evict(evictors.time("3 ms")).agg(**numbers),
        delta=windows.evict(evictors.delta(3, lambda row, last: last.n - row.n)).agg(**numbers),
        custom=windows.evict(Even()).agg(**numbers),
        nothing=windows.evict(Nothing()).reduce(plus),
        nothing_after=windows.evict(Nothing(), after=True).reduce(plus),
        before=pairs.evict(evictors.count(3)).agg(**numbers),
        after=pairs.evict(evictors.count(1), after=True).agg(**numbers),
        reduced=windows.evict(evictors.count(2)).reduce(plus),
        aggregated=windows.evict(evictors.count(2)).aggregate(Sum(), accumulator="bigint", schema="n long"),
    )


# -- the figures of the Dataflow model ------------------------------------------------------------------------------


class Sum(hw.AggregateFunction[Any, int, int]):
    """A sum that is 0 for nothing."""

    def create(self) -> int:
        return 0

    def add(self, accumulator: int, value: Any) -> int:
        return int(accumulator + value.n)

    def merge(self, left: int, right: int) -> int:
        return left + right

    def result(self, accumulator: int) -> int:
        return accumulator


STAGED = hw.early(every="60 ms").on_time().late(each=True)


def two_minutes(stream: Stream) -> hw.WindowedStream:
    """A millisecond stands for a second."""
    return stream.key_by("k").window(hw.tumbling("120 ms"))


def dataflow_batch(stream: Stream) -> dict[str, Stream]:
    whole = stream.key_by("k").window(hw.global_window()).trigger(triggers.event_time())
    per_record = two_minutes(stream).trigger(triggers.count(1))
    return shown(
        main=two_minutes(stream).agg(n=hw.sum("n")),
        whole=whole.agg(n=hw.sum("n")),
        per_record=per_record.agg(n=hw.sum("n")),
    )


def dataflow_watermark(stream: Stream) -> dict[str, Stream]:
    main = two_minutes(stream).late_to(LATE).agg(n=hw.sum("n"))
    return shown(late=main, main=main)


def dataflow_staged(stream: Stream) -> dict[str, Stream]:
    windows = two_minutes(stream).trigger(STAGED).allow_lateness("1 h").panes("accumulating", info=True)
    return shown(main=windows.agg(n=hw.sum("n")))


def dataflow_lateness(stream: Stream) -> dict[str, Stream]:
    windows = two_minutes(stream).trigger(STAGED).allow_lateness("120 ms").late_to(LATE)
    main = windows.panes("accumulating", info=True).agg(n=hw.sum("n"))
    return shown(late=main, main=main)


def dataflow_discarding(stream: Stream) -> dict[str, Stream]:
    windows = two_minutes(stream).trigger(STAGED).allow_lateness("1 h").panes("discarding", info=True, empty=True)
    return shown(main=windows.aggregate(Sum(), accumulator="bigint", schema="n long"))


def dataflow_modes(stream: Stream) -> dict[str, Stream]:
    windows = two_minutes(stream).trigger(STAGED)
    return shown(
        main=windows.panes("discarding").agg(n=hw.sum("n")),
        accumulating=windows.panes("accumulating").agg(n=hw.sum("n")),
        retracting=windows.panes("retracting").agg(n=hw.sum("n")),
    )


PROGRAMS: dict[str, Program] = {
    f"triggers.{program.__name__}": program
    for program in (
        event_time,
        clock,
        rows,
        purging,
        merging,
        compositions,
        early,
        timeout,
        evicting,
        dataflow_batch,
        dataflow_watermark,
        dataflow_staged,
        dataflow_lateness,
        dataflow_discarding,
        dataflow_modes,
    )
}
