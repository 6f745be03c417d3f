"""Programs of the transcripts in `windows/`: assigners, what is computed, late rows and panes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

import headwater as hw
from headwater.streams.stream import Step, Stream
from headwater.testing.transcript import Program, told

LATE = hw.OutputTag("late", "k string, n long, window_start timestamp, window_end timestamp, late_by_ms long")
GONE = hw.OutputTag("gone", "k string, start long, firings long")
EDGES = ("window_start", "window_end")


def shown(late: Step | None = None, **steps: Step) -> dict[str, Stream]:
    """Outputs by name, each name being the uid of its step too; window edges are shown in milliseconds."""
    outputs = {name: step.with_uid(name) for name, step in steps.items()}
    if late is not None:
        outputs["late"] = late.side_output(LATE)
    return {name: in_ms(stream) for name, stream in outputs.items()}


def in_ms(output: Stream) -> Stream:
    stream = told(output)
    fields = [pa.field(f.name, pa.int64() if f.name in EDGES else f.type) for f in stream.schema.arrow]
    return stream.map_batches(partial(edges_in_ms, schema=pa.schema(fields)), hw.Schema(pa.schema(fields)))


def edges_in_ms(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        pa.compute.divide(table[name].cast(pa.int64()), 1000) if name in EDGES else table[name] for name in schema.names
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def plus(left: Any, right: Any) -> Any:
    return left._replace(n=left.n + right.n)


# -- assigners ------------------------------------------------------------------------------------------------------


def tumbling(stream: Stream) -> dict[str, Stream]:
    keyed = stream.key_by("k")
    return shown(
        main=keyed.window(hw.tumbling("10 ms")).agg(n=hw.sum("n")),
        offset=keyed.window(hw.tumbling("10 ms", "3 ms")).agg(n=hw.sum("n")),
        negative=keyed.window(hw.tumbling("10 ms", "-3 ms")).agg(n=hw.sum("n")),
        by_element=keyed.window(hw.tumbling("10 ms", "-3 ms")).reduce(plus),
    )


def sliding(stream: Stream) -> dict[str, Stream]:
    keyed = stream.key_by("k")
    main = keyed.window(hw.sliding("10 ms", "5 ms")).late_to(LATE).agg(n=hw.sum("n"))
    return shown(
        late=main,
        main=main,
        by_element=keyed.window(hw.sliding("10 ms", "5 ms")).reduce(plus),
        gaps=keyed.window(hw.sliding("4 ms", "10 ms")).agg(n=hw.sum("n")),
        odd=keyed.window(hw.sliding("10 ms", "4 ms")).agg(n=hw.sum("n")),
    )


def cumulate(stream: Stream) -> dict[str, Stream]:
    keyed = stream.key_by("k")
    return shown(
        main=keyed.window(hw.cumulate("5 ms", "15 ms")).agg(n=hw.sum("n")),
        by_element=keyed.window(hw.cumulate("5 ms", "15 ms")).reduce(plus),
        offset=keyed.window(hw.cumulate("5 ms", "10 ms", "3 ms")).agg(n=hw.sum("n")),
    )


def session(stream: Stream) -> dict[str, Stream]:
    main = stream.key_by("k").window(hw.session("10 ms")).late_to(LATE).agg(n=hw.sum("n"), all=hw.collect_list("n"))
    return shown(late=main, main=main)


def session_lateness(stream: Stream) -> dict[str, Stream]:
    windows = stream.key_by("k").window(hw.session("10 ms")).allow_lateness("20 ms").late_to(LATE)
    main = windows.agg(n=hw.sum("n"))
    return shown(late=main, main=main, reduced=windows.reduce(plus))


def session_by(stream: Stream) -> dict[str, Stream]:
    windows = stream.key_by("k").window(hw.session(by=lambda row: f"{row.gap} ms"))
    return shown(main=windows.agg(n=hw.sum("n")))


def global_count(stream: Stream) -> dict[str, Stream]:
    windows = stream.key_by("k").window(hw.global_window())
    return shown(
        main=windows.trigger(hw.triggers.count(2)).agg(n=hw.sum("n")),
        purging=windows.trigger(hw.triggers.purging(hw.triggers.count(2))).reduce(plus),
    )


def count(stream: Stream) -> dict[str, Stream]:
    keyed = stream.key_by("k")
    return shown(
        main=keyed.window(hw.count(3)).agg(n=hw.sum("n")),
        sliding=keyed.window(hw.count(3, 2)).agg(all=hw.collect_list("n")),
    )


def processing_time(stream: Stream) -> dict[str, Stream]:
    keyed = stream.key_by("k")
    return shown(
        main=keyed.window(hw.processing_time(hw.tumbling("10 ms"))).agg(n=hw.sum("n")),
        sessions=keyed.window(hw.processing_time(hw.session("10 ms"))).agg(n=hw.sum("n")),
        early=keyed.window(hw.processing_time(hw.tumbling("10 ms")))
        .trigger(hw.either(hw.triggers.count(2), hw.triggers.processing_time()))
        .panes("accumulating", info=True)
        .agg(n=hw.sum("n")),
    )


def keys(stream: Stream) -> dict[str, Stream]:
    windows = hw.tumbling("10 ms")
    return shown(
        main=stream.window_all(windows).agg(n=hw.sum("n")),
        reduced=stream.window_all(windows).reduce(lambda a, b: (a.k + b.k, a.n + b.n)),
        function=stream.key_by(lambda row: row.n % 2, type="int").window(windows).agg(n=hw.sum("n")),
        two=stream.key_by("k", "n").window(windows).agg(c=hw.count()),
        two_by_element=stream.key_by("k", "n").window(windows).trigger(hw.early(count=100)).agg(c=hw.count()),
    )


class Shifts(hw.WindowAssigner):
    """Tens, and for key b twenties too."""

    def assign(self, event: Any, timestamp: int) -> Iterable[hw.Window]:
        for size in (10, 20) if event.k == "b" else (10,):
            yield hw.Window(timestamp // size * size, timestamp // size * size + size)


class Blocks(Shifts):
    """Tens that become one where they touch."""

    merges = True

    def assign(self, event: Any, timestamp: int) -> Iterable[hw.Window]:
        yield hw.Window(timestamp // 10 * 10, timestamp // 10 * 10 + 10)


def custom(stream: Stream) -> dict[str, Stream]:
    keyed = stream.key_by("k")
    return shown(
        main=keyed.window(Shifts()).agg(n=hw.sum("n")),
        merging=keyed.window(Blocks()).agg(n=hw.sum("n")),
    )


# -- what is computed -----------------------------------------------------------------------------------------------


def aggregates(stream: Stream) -> dict[str, Stream]:
    keyed = stream.key_by("k")
    every = {
        "rows": hw.count(),
        "values": hw.count("n"),
        "sum": hw.sum("n"),
        "least": hw.min("n"),
        "most": hw.max("n"),
        "avg": hw.avg("n"),
        "stddev": hw.stddev("n"),
        "var": hw.var("n"),
        "first": hw.first("n"),
        "last": hw.last("s"),
        "least_by": hw.min_by("s", "n"),
        "most_by": hw.max_by("s", "n"),
        "list": hw.collect_list("n"),
        "set": hw.collect_set("n"),
        "distinct": hw.count_distinct("s"),
        "about_distinct": hw.approx_count_distinct("s"),
        "median": hw.approx_quantile("n", 0.5),
    }
    tumbling = keyed.window(hw.tumbling("100 ms"))
    steps = {
        "main": tumbling.agg(**every),
        "by_element": tumbling.trigger(hw.early(count=100)).agg(**every),
        "by_rows": tumbling.evict(hw.evictors.count(100)).agg(**every),
    }
    return {
        name: stream.map(lambda row: row._replace(stddev=round(row.stddev, 3), median=round(row.median, 1)))
        for name, stream in shown(**steps).items()
    }


class Mean(hw.AggregateFunction[Any, Any, float]):
    def create(self) -> tuple[int, int]:
        return 0, 0

    def add(self, accumulator: Any, value: Any) -> tuple[int, int]:
        return accumulator[0] + value.n, accumulator[1] + 1

    def merge(self, left: Any, right: Any) -> tuple[int, int]:
        return left[0] + right[0], left[1] + right[1]

    def result(self, accumulator: Any) -> float:
        return accumulator[0] / accumulator[1]


class Digits(hw.AggregateFunction[Any, list[int], str]):
    """Changes its accumulator in place, as many do."""

    def create(self) -> list[int]:
        return []

    def add(self, accumulator: list[int], value: Any) -> list[int]:
        accumulator.append(value.n)
        return accumulator

    def merge(self, left: list[int], right: list[int]) -> list[int]:
        return left + right

    def result(self, accumulator: list[int]) -> str:
        return "".join(map(str, accumulator))


MEAN = "struct<sum:bigint,count:bigint>"


def folds(stream: Stream) -> dict[str, Stream]:
    keyed = stream.key_by("k")
    tens, each = keyed.window(hw.tumbling("10 ms")), hw.early(count=1)
    return shown(
        main=tens.reduce(plus),
        tuples=tens.reduce(lambda a, b: (a.k, a.n + b.n)),
        dicts=tens.reduce(lambda a, b: {"k": a.k, "n": a.n + b.n}),
        means=tens.aggregate(Mean(), accumulator=MEAN, schema="mean double"),
        in_place=tens.trigger(each).aggregate(Digits(), accumulator="array<bigint>", schema="digits string"),
        sessions=keyed.window(hw.session("3 ms")).aggregate(
            Digits(), accumulator="array<bigint>", schema="digits string"
        ),
    )


class Told(hw.ProcessWindowFunction):
    """What a window function knows: rows, the window's own state, the key's state, the pane."""

    of_window = hw.per_window(hw.ValueState("bigint", default=0))
    of_key = hw.ValueState("bigint", default=0)

    def process(self, elements: list[Any], ctx: hw.WindowContext) -> Iterator[Any]:
        self.of_window.set(self.of_window.get() + 1)
        self.of_key.set(self.of_key.get() + 1)
        numbers = ",".join(str(row.n) for row in elements)
        yield ctx.key, ctx.window.start, numbers, self.of_window.get(), self.of_key.get(), ctx.pane.kind, ctx.pane.index

    def clear(self, ctx: hw.WindowContext) -> None:
        ctx.output(GONE, (ctx.key, ctx.window.start, self.of_window.get()))


class Folded(hw.ProcessWindowFunction):
    """Shows the one row that an aggregate before it gave."""

    def process(self, elements: list[Any], ctx: hw.WindowContext) -> Iterator[Any]:
        (row,) = elements
        yield ctx.key, ctx.window.end, str(row[-1])


TOLD = "k string, start long, numbers string, of_window long, of_key long, pane string, number int"
FOLDED = "k string, end long, what string"


def process(stream: Stream) -> dict[str, Stream]:
    windows = stream.key_by("k").window(hw.tumbling("10 ms")).allow_lateness("10 ms")
    main = windows.process(Told(), TOLD)
    return {
        **shown(
            main=main,
            agg=windows.agg(n=hw.sum("n"), process=Folded(), schema=FOLDED),
            reduced=windows.reduce(plus, process=Folded(), schema=FOLDED),
            aggregated=windows.aggregate(
                Mean(), accumulator=MEAN, result="mean double", process=Folded(), schema=FOLDED
            ),
        ),
        "gone": main.side_output(GONE),
    }


# -- late rows and panes --------------------------------------------------------------------------------------------


def lateness(stream: Stream) -> dict[str, Stream]:
    windows = stream.key_by("k").window(hw.tumbling("10 ms")).allow_lateness("10 ms").late_to(LATE)
    purging = hw.triggers.purging(hw.triggers.event_time())
    main = windows.agg(n=hw.sum("n"))
    return shown(late=main, main=main, reduced=windows.reduce(plus), purging=windows.trigger(purging).reduce(plus))


def sliding_lateness(stream: Stream) -> dict[str, Stream]:
    windows = stream.key_by("k").window(hw.sliding("10 ms", "5 ms")).allow_lateness("5 ms").late_to(LATE)
    main = windows.agg(n=hw.sum("n"))
    return shown(late=main, main=main, reduced=windows.reduce(plus))


def panes(stream: Stream) -> dict[str, Stream]:
    trigger = hw.early(count=2).on_time().late(each=True)
    windows = stream.key_by("k").window(hw.tumbling("10 ms")).allow_lateness("10 ms").trigger(trigger)
    return shown(
        main=windows.panes("accumulating", info=True).agg(n=hw.sum("n")),
        discarding=windows.panes("discarding", info=True).agg(n=hw.sum("n")),
        empty=windows.panes("discarding", info=True, empty=True).agg(n=hw.sum("n"), c=hw.count()),
        retracting=windows.panes("retracting", info=True).agg(n=hw.sum("n")),
        reduced=windows.panes("retracting").reduce(plus),
        process=windows.panes("discarding", empty=True).process(Told(), TOLD),
    )


def retracting_sessions(stream: Stream) -> dict[str, Stream]:
    windows = stream.key_by("k").window(hw.session("10 ms")).allow_lateness("100 ms").panes("retracting", info=True)
    return shown(main=windows.agg(n=hw.sum("n")), process=windows.process(Numbers(), "numbers string"))


class Numbers(hw.ProcessWindowFunction):
    def process(self, elements: list[Any], ctx: hw.WindowContext) -> Iterator[Any]:
        yield (f"{ctx.window.start} {[row.n for row in elements]} {ctx.pane.kind} {ctx.pane.index}",)


def running(stream: Stream) -> dict[str, Stream]:
    keyed = stream.key_by("k")
    by_half = stream.key_by(lambda r: (r.n or 0) // 2, type="bigint")
    return {
        "main": keyed.agg(n=hw.count(), total=hw.sum("n"), last=hw.last("n")).with_uid("all"),
        "halves": by_half.agg(seen=hw.collect_list("n")).with_uid("halves"),
    }


PROGRAMS: dict[str, Program] = {
    f"windows.{program.__name__}": program
    for program in (
        tumbling,
        sliding,
        cumulate,
        session,
        session_lateness,
        session_by,
        global_count,
        count,
        processing_time,
        keys,
        custom,
        aggregates,
        folds,
        process,
        lateness,
        running,
        sliding_lateness,
        panes,
        retracting_sessions,
    )
}
