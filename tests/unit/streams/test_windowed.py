"""Windows that make no sense are refused while the graph is built, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

import headwater as hw
from headwater.streams.keyed import KeyedStream
from headwater.windows import evictors, triggers


@pytest.fixture
def env() -> hw.Environment:
    return hw.Environment("windowed", engine="local")


@pytest.fixture
def keyed(env: hw.Environment) -> KeyedStream:
    rows = [("ann", 1, 5), ("ann", 2, 7)]
    return env.from_rows(rows, "user string, n long, at long", hw.Watermarks.monotonous("at")).key_by("user")


class PerWindow(hw.ProcessWindowFunction):
    seen = hw.per_window(hw.ValueState("bigint"))

    def process(self, elements: list[Any], ctx: hw.WindowContext) -> list[Any]:
        return []


class LastTime(hw.Trigger):
    """Says that it merges, but keeps what cannot be combined."""

    can_merge = True
    last = hw.ValueState("bigint")


class NoMerge(hw.AggregateFunction[Any, int, int]):
    def create(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: hw.tumbling("-10 s"), "'tumbling' needs a size of more than 0; got '-10 s'"),
        (lambda: hw.tumbling("0 s"), "'tumbling' needs a size of more than 0"),
        (lambda: hw.tumbling("10 s", "10 s"), "'tumbling' needs an offset within 10000 ms; got '10 s'"),
        (lambda: hw.tumbling("10 s", "-11 s"), "'tumbling' needs an offset within 10000 ms"),
        (lambda: hw.sliding("10 s", "0 s"), "'sliding' needs a slide of more than 0"),
        (lambda: hw.sliding("10 s", "5 s", "5 s"), "'sliding' needs an offset within 5000 ms"),
        (lambda: hw.cumulate("4 s", "10 s"), "'cumulate' needs a size that is a multiple of its step; got '4 s, 10 s'"),
        (lambda: hw.cumulate("0 s", "10 s"), "'cumulate' needs a step of more than 0"),
        (lambda: hw.session("0 s"), "'session' needs a gap of more than 0"),
        (hw.session, r"'session' needs a gap or by=function"),
        (lambda: hw.session("1 s", by=lambda row: "1 s"), r"'session' needs a gap or by=function"),
        (lambda: hw.session(by="gap"), "'session' needs a function of the row for by="),
        (lambda: hw.count(0), "'count' needs a positive size; got 0"),
        (lambda: hw.count(10, -1), "'count' needs a positive slide; got -1"),
        (lambda: hw.processing_time(hw.global_window()), "'processing_time' needs windows in time"),
        (lambda: triggers.count(0), "'triggers.count' needs a positive number; got 0"),
        (lambda: triggers.continuous("0 s"), "'triggers.continuous' needs an interval of more than 0"),
        (lambda: triggers.delta(1, "n"), "'triggers.delta' needs a function of two rows"),
        (lambda: triggers.purging("count"), "'triggers.purging' needs a hw.Trigger; got 'count'"),
        (lambda: hw.either(triggers.count(1)), "'either' needs at least two triggers"),
        (lambda: hw.then(triggers.count(1), 2), "'then' needs a hw.Trigger; got 2"),
        (hw.early, "'early' needs one of every='1 min' or count=100"),
        (lambda: hw.early(every="1 s", count=1), "'early' needs one of"),
        (lambda: hw.early(count=0), "'early' needs a positive count; got 0"),
        (lambda: hw.early(count=1).late(), "'late' needs one of .* or each=True"),
        (lambda: evictors.count(0), "'evictors.count' needs a positive number"),
        (lambda: evictors.delta(1, None), "'evictors.delta' needs a function of two rows"),
    ],
)
def test_a_bad_part_is_refused(make: Any, problem: str) -> None:
    with pytest.raises(hw.GraphError, match=problem):
        make()


TENS = hw.tumbling("10 ms")
SESSIONS = hw.session("10 ms")


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda s: s.window("10 s"), "'window' needs windows; got '10 s'"),
        (
            lambda s: s.window(hw.processing_time(TENS)).late_to(hw.OutputTag("late", "n long")),
            "'late_to' needs windows in event time",
        ),
        (
            lambda s: s.window(hw.session("1 s")).aggregate(NoMerge(), accumulator="bigint", schema="n bigint"),
            "'aggregate' needs a function with merge.*'NoMerge'",
        ),
        (lambda s: s.window(TENS).agg(), "'agg' needs an aggregate"),
        (lambda s: s.window(TENS).agg(n=3), "'agg' needs an aggregate for 'n'; got 3"),
        (
            lambda s: s.window(TENS).agg(n=hw.sum("amount")),
            "'agg': there is no field 'amount'; the fields are user, n, at",
        ),
        (lambda s: s.window(TENS).agg(n=hw.sum("user")), "'agg' needs a number as 'user'"),
        (lambda s: s.window(TENS).agg(user=hw.count()), "'agg' needs other names than those of the key.*got 'user'"),
        (lambda s: s.window(TENS).agg(window_end=hw.count()), "'agg' needs other names.*got 'window_end'"),
        (
            lambda s: s.window(TENS).panes("accumulating", info=True).agg(pane_kind=hw.count()),
            "needs other names.*'pane_kind'",
        ),
        (
            lambda s: s.window(TENS).late_to(hw.OutputTag("late", "amount long")),
            "'late_to' needs a tag.*'amount int64'",
        ),
        (lambda s: s.window(TENS).late_to(hw.OutputTag("late", "n string")), "'late_to' needs a tag.*'n string'"),
        (
            lambda s: s.window(hw.processing_time(TENS)).allow_lateness("1 s"),
            r"'allow_lateness' needs windows in event time; got 'processing_time\(tumbling",
        ),
        (lambda s: s.window(hw.global_window()).agg(n=hw.count()), "'agg' needs a trigger: these windows have no end"),
        (
            lambda s: s.window(SESSIONS).process(PerWindow(), "n long"),
            "'process' cannot keep per-window state in windows that merge; got 'PerWindow'; keep it per key",
        ),
        (
            lambda s: s.window(SESSIONS).trigger(triggers.delta(1, lambda a, b: 0)),
            "'trigger' needs a trigger that can merge, for windows that do; got 'DeltaTrigger'",
        ),
        (
            lambda s: s.window(SESSIONS).trigger(hw.either(triggers.count(1), LastTime())),
            r"keeps reducing states only.*LastTime\.last is a ValueState.*hw\.ReducingState",
        ),
        (lambda s: s.window(TENS).trigger("daily"), "'trigger' needs a hw.Trigger; got 'daily'"),
        (lambda s: s.window(TENS).evict(3), "'evict' needs a hw.Evictor; got 3"),
        (lambda s: s.window(TENS).panes("all"), "'panes' needs one of accumulating, discarding, retracting"),
        (
            lambda s: s.window(TENS).panes("discarding", empty=True).reduce(lambda a, b: a),
            "'reduce' has no value for a pane without rows",
        ),
        (lambda s: s.window(TENS).reduce(None), "'reduce' needs a function of two rows"),
        (lambda s: s.window(TENS).aggregate(max, accumulator="bigint"), "'aggregate' needs a hw.AggregateFunction"),
        (
            lambda s: s.window(TENS).aggregate(hw.AggregateFunction(), accumulator="bigint"),
            "'aggregate' needs the schema of its result",
        ),
        (lambda s: s.window(TENS).process(max, "n long"), "'process' needs a hw.ProcessWindowFunction"),
        (
            lambda s: s.window(TENS).agg(n=hw.count(), process=PerWindow()),
            "'agg' needs the schema of what process gives",
        ),
    ],
)
def test_a_bad_step_is_refused(keyed: KeyedStream, build: Any, problem: str) -> None:
    with pytest.raises((hw.GraphError, hw.SchemaError), match=problem):
        build(keyed)


def test_a_negative_lateness_is_refused(keyed: KeyedStream) -> None:
    with pytest.raises(hw.DurationError, match="allowed lateness"):
        keyed.window(TENS).allow_lateness("-1 s")


@pytest.mark.parametrize(
    "trigger",
    [
        triggers.never(),
        triggers.purging(triggers.never()),
        hw.repeat(triggers.never()),
        hw.either(triggers.never(), triggers.never()),
        hw.both(triggers.never(), triggers.count(1)),
        hw.then(triggers.never(), triggers.count(1)),
    ],
)
def test_a_trigger_that_never_fires_is_refused_in_a_bounded_run(
    env: hw.Environment, keyed: KeyedStream, trigger: hw.Trigger
) -> None:
    step = keyed.window(TENS).trigger(trigger).agg(n=hw.count()).with_uid("silent")
    problem = "'silent' must give a result before a bounded run ends; got 'a trigger that never fires'"
    with pytest.raises(hw.GraphError, match=problem):
        step.collect()
    step.sink(hw.connectors.memory())
    with pytest.raises(hw.GraphError, match=problem):
        env.start(bounded=True)


@pytest.mark.parametrize(
    ("trigger", "results"),
    [
        (hw.either(triggers.never(), triggers.count(1)), [1, 2]),
        (hw.then(triggers.count(1), triggers.never()), [1]),
    ],
)
def test_a_trigger_that_fires_at_times_is_fine(keyed: KeyedStream, trigger: hw.Trigger, results: list[int]) -> None:
    assert [row.n for row in keyed.window(TENS).trigger(trigger).agg(n=hw.count()).collect()] == results


def test_a_gap_of_nothing_is_told_with_its_row(keyed: KeyedStream) -> None:
    step = keyed.window(hw.session(by=lambda row: f"{row.n - 1} ms")).agg(n=hw.count())
    with pytest.raises(hw.UserCodeError, match="a session's gap must be more than 0, got 0 ms"):
        step.collect()
