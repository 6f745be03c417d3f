"""Built-in aggregates under any built-in trigger and panes: by columns they give what they give row by row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given
from tests.parts.examples import examples
from tests.parts.work import calls_of

import headwater as hw
from headwater.data.batch import MIN_TIMESTAMP, Batch
from headwater.data.rows import encode_rows
from headwater.operators.contract import StepTime
from headwater.operators.window.counted import CountWindowOperator
from headwater.state.changelog import catch_up
from headwater.streams.stream import Stream
from headwater.task.host import LevelHost
from headwater.testing import Harness
from headwater.windows import evictors, triggers
from headwater.windows.triggers import TriggerContext, TriggerResult

SCHEMA = "k string, n long"
LATE = hw.OutputTag("late", "k string, n long, window_start timestamp, window_end timestamp, late_by_ms long")
AGGREGATES = {
    "rows": hw.count(),
    "total": hw.sum("n"),
    "mean": hw.avg("n"),
    "low": hw.min("n"),
    "first": hw.first("n"),
    "last": hw.last("n"),
    "all": hw.collect_list("n"),
    "by": hw.max_by("n", "n"),
}


class ByElement(hw.Trigger):
    """Another trigger, asked for each row."""

    def __init__(self, inner: hw.Trigger) -> None:
        self._inner = inner
        self.can_merge, self.can_fire = inner.can_merge, inner.can_fire

    def parts(self) -> tuple[hw.Trigger]:
        return (self._inner,)

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return self._inner.on_element(event, ctx)

    def on_event_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        return self._inner.on_event_time(timestamp, ctx)

    def on_processing_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        return self._inner.on_processing_time(timestamp, ctx)

    def rearm(self, ctx: TriggerContext) -> None:
        self._inner.rearm(ctx)

    def clear(self, ctx: TriggerContext) -> None:
        self._inner.clear(ctx)


# -- specs and streams ----------------------------------------------------------------------------------------------


def staged() -> st.SearchStrategy[hw.Trigger]:
    early = st.sampled_from([{"every": "7 ms"}, {"count": 1}, {"count": 3}])
    late = st.sampled_from([{"each": True}, {"every": "5 ms"}, {"count": 2}])
    return st.builds(lambda one, other: hw.early(**one).on_time().late(**other), early, late)


def simple() -> st.SearchStrategy[hw.Trigger]:
    return st.one_of(
        st.builds(triggers.count, st.integers(1, 4)),
        st.sampled_from([triggers.event_time(), triggers.processing_time(), triggers.never()]),
        st.builds(lambda n: triggers.continuous(f"{n} ms"), st.integers(1, 7)),
        st.builds(lambda n: triggers.continuous_processing_time(f"{n} ms"), st.integers(1, 7)),
        staged(),
    )


def composed(parts: st.SearchStrategy[hw.Trigger]) -> st.SearchStrategy[hw.Trigger]:
    return st.one_of(
        st.builds(triggers.purging, parts),
        st.builds(hw.repeat, parts),
        st.builds(hw.either, parts, parts),
        st.builds(hw.both, parts, parts),
        st.builds(hw.then, parts, parts),
    )


def in_time() -> st.SearchStrategy[hw.WindowAssigner]:
    sliced = [hw.tumbling("10 ms", "-3 ms"), hw.sliding("10 ms", "4 ms"), hw.sliding("4 ms", "10 ms")]
    sliced.append(hw.cumulate("5 ms", "15 ms"))
    return st.sampled_from([*sliced, *(hw.processing_time(windows) for windows in sliced)])


def panes() -> st.SearchStrategy[dict[str, Any]]:
    modes = st.sampled_from(["accumulating", "discarding", "retracting"])
    return st.fixed_dictionaries({"mode": modes, "info": st.booleans(), "empty": st.booleans()})


rows = st.tuples(st.sampled_from("abc"), st.integers(-9, 9), st.integers(-30, 60))
epochs = st.lists(
    st.one_of(
        st.tuples(st.just("rows"), st.lists(rows, min_size=1, max_size=30)),
        st.tuples(st.just("watermark"), st.integers(-30, 60)),
        st.tuples(st.just("clock"), st.integers(0, 60)),
        st.sampled_from([("restore",), ("rebuild",)]),
    ),
    max_size=8,
)


def windowed(windows: hw.WindowAssigner, trigger: hw.Trigger | None, panes: dict[str, Any], evictor: Any = None) -> Any:
    def build(stream: Stream) -> Stream:
        handle = stream.key_by("k").window(windows).panes(**panes)
        if windows.domain == "event":
            handle = handle.allow_lateness("12 ms").late_to(LATE)
        if trigger is not None:
            handle = handle.trigger(trigger)
        if evictor is not None:
            handle = handle.evict(evictor)
        return handle.agg(**AGGREGATES)

    return build


def operator(harness: Harness) -> Any:
    (found,) = [entry.operator for host in harness._cluster.hosts.values() for entry in host._entries]
    return found


def batch(rows: list[tuple[Any, ...]]) -> Batch:
    table = encode_rows([row[:2] for row in rows], hw.Schema.of(SCHEMA).arrow, "test")
    return Batch(table, np.array([row[2] for row in rows], np.int64))


def played(build: Any, script: list[Any]) -> Iterator[Any]:
    """For each epoch all that came out: by window in order, and the late rows.

    A copy may be restored from a snapshot or rebuilt from its changelog in between.
    """
    harness = Harness(build, SCHEMA)
    for action, *argument in [*script, ("watermark", 200), ("clock", 200)]:
        if action == "restore":
            harness = Harness.restore(build, SCHEMA, harness.snapshot())
        elif action == "rows":
            (rows,) = argument
            harness.push_all([row[:2] for row in rows], [row[2] for row in rows])
        elif action == "rebuild":
            cluster = harness._cluster
            cluster.hosts = {place: LevelHost(cluster.plan, *place) for place in cluster.hosts}
            for place, host in cluster.hosts.items():
                catch_up(host, cluster.stores[place], f"rebuilt {place}")
        else:
            (harness.watermark if action == "watermark" else harness.advance_to)(*argument)
        found: dict[Any, list[Any]] = {}
        for row in harness.take():
            found.setdefault((row.k, getattr(row, "window_start", None), row.timestamp), []).append(tuple(row))
        yield found, [(*row, row.timestamp) for row in harness.take(LATE)]
    yield operator(harness).counters(), sum(len(table) for table in operator(harness).tables().values())


@examples(150)
@given(windows=in_time(), trigger=st.recursive(simple(), composed, max_leaves=4), panes=panes(), script=epochs)
def test_windows_in_time(windows: hw.WindowAssigner, trigger: hw.Trigger, panes: Any, script: list[Any]) -> None:
    by_columns, by_element = (windowed(windows, one, panes) for one in (trigger, ByElement(trigger)))
    assert operator(Harness(by_columns, SCHEMA))._assignment is not None
    assert operator(Harness(by_element, SCHEMA))._assignment is None
    assert list(played(by_columns, script)) == list(played(by_element, script))


@examples(60)
@given(windows=in_time(), panes=panes(), script=epochs)
def test_the_default_trigger(windows: hw.WindowAssigner, panes: Any, script: list[Any]) -> None:
    """Several updates of a window in an epoch may come out as one; the last of them is the same."""
    default = windows.default_trigger()
    by_columns, by_element = windowed(windows, None, panes), windowed(windows, ByElement(default), panes)
    for one, other in zip(played(by_columns, script), played(by_element, script), strict=True):
        if isinstance(one[1], list):
            assert {key: rows[-1] for key, rows in one[0].items()} == {key: rows[-1] for key, rows in other[0].items()}
            assert one[1] == other[1]


@examples(150)
@given(trigger=st.recursive(simple(), composed, max_leaves=4), panes=panes(), script=epochs)
def test_global_windows(trigger: hw.Trigger, panes: Any, script: list[Any]) -> None:
    build, by_element = (windowed(hw.global_window(), one, panes) for one in (trigger, ByElement(trigger)))
    assert operator(Harness(build, SCHEMA))._assignment is not None
    assert list(played(build, script)) == list(played(by_element, script))


@examples(150)
@given(size=st.integers(1, 9), slide=st.one_of(st.none(), st.integers(1, 9)), panes=panes(), script=epochs)
def test_count_windows(size: int, slide: int | None, panes: Any, script: list[Any]) -> None:
    build = windowed(hw.count(size, slide), None, panes)
    assert isinstance(operator(Harness(build, SCHEMA)), CountWindowOperator)
    trigger = ByElement(triggers.purging(triggers.count(size)) if slide is None else triggers.count(slide))
    evictor = None if slide is None else evictors.count(size)
    by_element = windowed(hw.global_window(), trigger, panes, evictor)
    assert [one for one, _ in played(build, script)] == [one for one, _ in played(by_element, script)]


def test_a_row_of_a_long_window_stores_what_one_of_a_short_window_stores() -> None:
    sizes = []
    for size in (10, 1_000):
        harness = Harness(lambda s, size=size: s.key_by("k").window(hw.count(size, 1)).agg(n=hw.sum("n")), SCHEMA)
        harness.push_all([("a", 1)] * size)
        harness.push(("a", 1))
        assert [row.n for row in harness.take()][-2:] == [size, size]
        store = harness._cluster.stores[1, 0]
        sizes.append(len(store.read(store.head().sequence)))
    assert abs(sizes[0] - sizes[1]) < 64  # numbers of more digits


# -- sessions -------------------------------------------------------------------------------------------------------


def sessions() -> st.SearchStrategy[hw.WindowAssigner]:
    plain = [hw.session("6 ms"), hw.session(by=lambda row: f"{abs(row.n) + 1} ms")]
    return st.sampled_from([*plain, *(hw.processing_time(windows) for windows in plain)])


SESSION_TRIGGERS = [
    triggers.event_time(),
    triggers.processing_time(),
    triggers.purging(triggers.event_time()),
    hw.early(every="7 ms"),
    hw.either(hw.early(every="7 ms").late(count=2), triggers.processing_time()),
]


@examples(150)
@given(windows=sessions(), trigger=st.sampled_from(SESSION_TRIGGERS), panes=panes(), script=epochs)
@example(  # two of the rows are late, one because it came before the row whose session it would have joined
    windows=hw.session(by=lambda row: f"{abs(row.n) + 1} ms"),
    trigger=triggers.event_time(),
    panes={"mode": "accumulating", "info": False, "empty": False},
    script=[("watermark", 10), ("rows", [("a", 0, -2), ("a", 0, -4), ("a", 0, -1)])],
)
def test_sessions(windows: hw.WindowAssigner, trigger: hw.Trigger, panes: Any, script: list[Any]) -> None:
    by_columns, by_element = (windowed(windows, one, panes) for one in (trigger, ByElement(trigger)))
    assert operator(Harness(by_columns, SCHEMA))._bursts is not None
    assert operator(Harness(by_element, SCHEMA))._bursts is None
    assert list(played(by_columns, script)) == list(played(by_element, script))


@examples(100)
@given(windows=sessions(), script=epochs)
def test_plain_sessions(windows: hw.WindowAssigner, script: list[Any]) -> None:
    """Several updates in an epoch may come out as one, but what is held, what fires in time and what is late are the same."""

    def build(trigger: hw.Trigger | None) -> Any:
        def made(stream: Stream) -> Stream:
            handle = stream.key_by("k").window(windows)
            handle = handle.allow_lateness("12 ms").late_to(LATE) if windows.domain == "event" else handle
            handle = handle if trigger is None else handle.trigger(trigger)
            return handle.agg(rows=hw.count(), total=hw.sum("n"), low=hw.min("n"))

        return made

    default = ByElement(windows.default_trigger())
    for (action, *_), one, other in zip(
        [*script, ("watermark",), ("clock",)], played(build(None), script), played(build(default), script), strict=False
    ):
        assert sorted(one[1]) == sorted(other[1])
        if action != "rows":
            assert one[0] == other[0]


# -- no Python per row ----------------------------------------------------------------------------------------------

T = triggers
STEPS: dict[str, Any] = {
    "count": lambda s: s.window(hw.count(100)),
    "count, slide": lambda s: s.window(hw.count(100, 40)),
    "count, discarding": lambda s: s.window(hw.count(100, 40)).panes("discarding", info=True),
    "global": lambda s: s.window(hw.global_window()).trigger(T.count(100)),
    "purging": lambda s: s.window(hw.tumbling("1 s")).trigger(T.purging(T.count(7))),
    "early, each": lambda s: s.window(hw.tumbling("1 s")).trigger(hw.early(count=1)).panes("accumulating", info=True),
    "early, every": lambda s: s.window(hw.sliding("2 s", "1 s")).trigger(hw.early(every="1 s").late(count=3)),
    "continuous": lambda s: s.window(hw.tumbling("1 s")).trigger(T.continuous("100 ms")),
    "either": lambda s: s.window(hw.tumbling("1 s")).trigger(hw.either(T.count(5), T.event_time())),
    "discarding": lambda s: s.window(hw.tumbling("1 s")).panes("discarding"),
    "retracting": lambda s: s.window(hw.tumbling("1 s")).panes("retracting"),
    "empty": lambda s: s.window(hw.tumbling("1 s")).panes("accumulating", info=True, empty=True),
    "clock": lambda s: s.window(hw.processing_time(hw.sliding("2 s", "1 s"))),
    "sessions": lambda s: s.window(hw.session("10 ms")),
    "sessions, early": lambda s: s.window(hw.session("10 ms")).trigger(hw.early(every="1 s")).panes("retracting"),
    "sessions, clock": lambda s: s.window(hw.processing_time(hw.session("10 ms"))),
}


def calls(step: str, rows: int) -> int:
    """How many functions are called, Python's and others', to take in rows of 3 keys in a few windows."""

    def build(stream: Stream) -> Stream:
        return STEPS[step](stream.key_by("k")).agg(total=hw.sum("n"), last=hw.last("n"), mean=hw.avg("n"))

    one = operator(Harness(build, SCHEMA))
    data = batch([("abc"[n % 3], n, n * 2_000 // rows - n * 7919 % 5) for n in range(5, rows)])
    out: list[Any] = []
    return calls_of(lambda: one.process(data, StepTime(MIN_TIMESTAMP, 0), lambda tag, batch: out.append(batch)))


@pytest.mark.parametrize("step", STEPS)
def test_python_is_called_per_key_and_window_and_not_per_row(step: str) -> None:
    few, many = calls(step, 3_000), calls(step, 30_000)
    assert few < 3_000
    assert many < 2 * few
