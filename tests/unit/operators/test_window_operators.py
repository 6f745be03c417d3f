"""Windows by slices against windows by element, what is left of windows that are over, and what is counted."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

import headwater as hw
from headwater.local.cluster import LocalCluster
from headwater.operators.window.operator import WindowOperator
from headwater.operators.window.sliced import SlicedWindowOperator
from headwater.state.changelog import catch_up
from headwater.streams.stream import Stream
from headwater.task.host import LevelHost
from headwater.testing import Harness
from headwater.windows import evictors, triggers
from headwater.windows.triggers import EventTimeTrigger

SCHEMA = "k string, n long"
LATE = hw.OutputTag("late", "k string, n long, window_start timestamp, window_end timestamp, late_by_ms long")
WINDOWS = {
    "tumbling": hw.tumbling("10 ms", "-3 ms"),
    "sliding": hw.sliding("10 ms", "5 ms", "2 ms"),
    "sliding with gaps": hw.sliding("4 ms", "10 ms"),
    "sliding, undivided": hw.sliding("10 ms", "4 ms"),
    "cumulating": hw.cumulate("5 ms", "15 ms", "1 ms"),
}
SLICED = {"total": hw.sum("n"), "rows": hw.count(), "least": hw.min("n"), "distinct": hw.count_distinct("n")}
ORDERED = {"first": hw.first("n"), "last": hw.last("n"), "all": hw.collect_list("n"), "by": hw.min_by("n", "k")}


class ByElement(EventTimeTrigger):
    """The default trigger under another name, which the operator by slices does not know."""


def windowed(windows: hw.WindowAssigner, lateness: int, aggregates: dict[str, Any], by_element: bool = False) -> Any:
    def build(stream: Stream) -> Stream:
        handle = stream.key_by("k").window(windows).allow_lateness(f"{lateness} ms").late_to(LATE)
        if by_element:
            handle = handle.trigger(ByElement())
        return handle.agg(**aggregates)

    return build


def operators(harness: Harness) -> list[Any]:
    return [entry.operator for host in harness._cluster.hosts.values() for entry in host._entries]


def entries(harness: Harness) -> dict[str, int]:
    """How much is left of each state, without what is empty."""
    found = {name: len(table) for operator in operators(harness) for name, table in operator.tables().items()}
    return {name: count for name, count in found.items() if count}


def play(harness: Harness, action: tuple[Any, ...]) -> Any:
    """One action as an epoch; what came out, in an order that does not depend on the operator."""
    if action[0] == "watermark":
        harness.watermark(action[1])
    else:
        harness.push(action[1:3], at=action[3])
    return [sorted((*row, row.timestamp) for row in harness.take(tag)) for tag in (None, LATE)]


actions = st.lists(
    st.one_of(
        st.tuples(st.just("row"), st.sampled_from("ab"), st.integers(-9, 9), st.integers(-30, 60)),
        st.tuples(st.just("watermark"), st.integers(-30, 60)),
    ),
    max_size=25,
)


@pytest.mark.parametrize("aggregates", [SLICED, ORDERED], ids=["sliced", "ordered"])
@pytest.mark.parametrize("windows", WINDOWS)
@examples(50)
@given(script=actions, lateness=st.sampled_from([0, 3, 10, 25]))
def test_windows_by_slices_give_what_windows_by_element_give(
    windows: str, aggregates: dict[str, Any], script: list[Any], lateness: int
) -> None:
    sliced = Harness(windowed(WINDOWS[windows], lateness, aggregates), SCHEMA)
    plain = Harness(windowed(WINDOWS[windows], lateness, aggregates, by_element=True), SCHEMA)
    assert any(isinstance(operator, WindowOperator) for operator in operators(plain))
    for action in [*script, ("watermark", 200)]:
        assert play(sliced, action) == play(plain, action)
    assert entries(sliced) == entries(plain) == {}


def test_order_keeps_aggregates_from_slices_of_time() -> None:
    cases = [("tumbling", SLICED), ("tumbling", ORDERED), ("sliding", SLICED), ("sliding", ORDERED)]
    found = [
        isinstance(operators(Harness(windowed(WINDOWS[windows], 0, aggregates), SCHEMA))[0], SlicedWindowOperator)
        for windows, aggregates in cases
    ]
    assert found == [True, True, True, False]


class Player(Harness):
    """A harness that shows its deltas and can lose its working copies."""

    @property
    def cluster(self) -> LocalCluster:
        return self._cluster

    def last_records(self) -> list[bytes]:
        """The newest record of every place."""
        found = []
        for store in self.cluster.stores.values():
            head = store.head()
            assert head is not None
            found.append(store.read(head.sequence))
        return found

    def rebuild(self) -> None:
        """Get every working copy back from its changelog."""
        self.cluster.hosts = {place: LevelHost(self.cluster.plan, *place) for place in self.cluster.hosts}
        for place, host in self.cluster.hosts.items():
            catch_up(host, self.cluster.stores[place], f"rebuilt {place}")


@pytest.mark.parametrize("by_element", [False, True])
@examples(40)
@given(script=actions, again=st.lists(st.booleans(), min_size=26, max_size=26))
def test_state_that_was_rebuilt_goes_on_with_the_same_bytes(
    by_element: bool, script: list[Any], again: list[bool]
) -> None:
    build = windowed(WINDOWS["sliding"], 10, SLICED, by_element)
    live, rebuilt = Player(build, SCHEMA), Player(build, SCHEMA)
    for action, is_rebuilt in zip([*script, ("watermark", 200)], again, strict=False):
        if is_rebuilt:
            rebuilt.rebuild()
        assert play(live, action) == play(rebuilt, action)
        assert live.last_records() == rebuilt.last_records()


@pytest.mark.parametrize("by_element", [False, True])
@examples(40)
@given(script=actions, place=st.integers(1, 25))
def test_state_that_was_restored_from_a_base_goes_on_with_the_same_bytes(
    by_element: bool, script: list[Any], place: int
) -> None:
    build = windowed(WINDOWS["cumulating"], 10, SLICED, by_element)
    live, restored = Player(build, SCHEMA), Player(build, SCHEMA)
    for number, action in enumerate([*script, ("watermark", 200)]):
        if number == place:
            restored = Player.restore(build, SCHEMA, live.snapshot())
        assert play(live, action) == play(restored, action)
        assert live.last_records() == restored.last_records()
    assert live.snapshot() == restored.snapshot()


# -- what is left, and what is counted -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "handle",
    [
        lambda s: s.window(hw.tumbling("10 ms")).agg(n=hw.sum("n")),
        lambda s: s.window(hw.tumbling("10 ms")).reduce(lambda a, b: a),
        lambda s: s.window(hw.session("2 ms")).agg(n=hw.sum("n")),
        lambda s: s.window(hw.tumbling("10 ms")).evict(hw.evictors.count(1)).agg(n=hw.sum("n")),
        lambda s: s.window(hw.tumbling("10 ms")).trigger(hw.early(every="1 h")).panes("retracting").agg(n=hw.sum("n")),
        lambda s: s.window(hw.session("2 ms")).trigger(hw.early(count=2)).panes("retracting").agg(n=hw.sum("n")),
        lambda s: s.window(hw.tumbling("10 ms")).trigger(triggers.delta(1, lambda a, b: 2)).agg(n=hw.sum("n")),
        lambda s: s.window(hw.session("2 ms")).trigger(triggers.continuous("3 ms")).agg(n=hw.sum("n")),
        lambda s: (
            s.window(hw.tumbling("10 ms")).trigger(hw.then(triggers.count(2), triggers.never())).agg(n=hw.count())
        ),
    ],
)
def test_nothing_is_left_of_a_window_after_end_and_lateness(handle: Any) -> None:
    def build(stream: Stream) -> Stream:
        return handle(_Lately(stream.key_by("k"), 13))

    harness = Harness(build, SCHEMA)
    for at in (1, 3, 8):
        harness.push(("a", at), at=at)
    harness.watermark(9)
    assert entries(harness) != {}
    harness.push(("a", 1), at=2)
    harness.watermark(21)
    assert entries(harness) != {}
    harness.watermark(22)
    assert entries(harness) == {}


class _Lately:
    """A keyed stream whose windows are all kept for a while."""

    def __init__(self, stream: Any, lateness: int) -> None:
        self._stream, self._lateness = stream, lateness

    def window(self, windows: hw.WindowAssigner) -> Any:
        return self._stream.window(windows).allow_lateness(f"{self._lateness} ms")


def test_a_trigger_that_starts_over_does_not_keep_its_window_for_ever() -> None:
    once = hw.then(hw.either(triggers.event_time(), triggers.continuous_processing_time("10 ms")), triggers.never())
    harness = Harness(
        lambda s: s.key_by("k").window(hw.tumbling("10 ms")).trigger(once).agg(n=hw.count()), schema=SCHEMA
    )
    harness.push(("a", 1), at=1)
    harness.advance_to(10)
    assert [row.n for row in harness.take()] == [1]
    harness.watermark(9)
    assert (harness.take(), entries(harness)) == ([], {})


@pytest.mark.parametrize("trigger", [EventTimeTrigger(), ByElement()])
def test_late_rows_that_go_nowhere_are_counted(trigger: hw.Trigger) -> None:
    env = hw.Environment("late", engine="local", max_rows_per_epoch=1)
    rows = [("a", 5), ("a", 30), ("a", 7), ("b", 29), ("a", 1)]
    stream = env.from_rows(rows, "k string, at long", hw.Watermarks.monotonous("at"))
    windows = stream.key_by("k").window(hw.tumbling("10 ms")).trigger(trigger)
    step = windows.agg(n=hw.count()).with_uid("tens")
    sink = hw.connectors.memory()
    step.sink(sink)
    status = env.run().status()
    assert status.steps["tens"]["late_dropped"] == 3
    assert set(status.steps["tens"]["state"].values()) <= {0, 1}  # the channel of the input
    assert sorted((row.k, row.n) for row in sink.rows) == [("a", 1), ("a", 1)]


def test_a_window_that_never_was_leaves_nothing() -> None:
    harness = Harness(windowed(hw.session("10 ms"), 0, SLICED), SCHEMA)
    harness.watermark(100)
    harness.push(("a", 1), at=1)
    assert len(harness.take(LATE)) == 1
    assert entries(harness) == {}


def test_a_row_without_event_time_is_told() -> None:
    for by_element in (False, True):
        harness = Harness(windowed(WINDOWS["tumbling"], 0, SLICED, by_element), SCHEMA)
        with pytest.raises(hw.RowError, match="event time"):
            harness.push(("a", 1))


# -- slicing into epochs --------------------------------------------------------------------------------------------


class Seen(hw.ProcessWindowFunction):
    def process(self, elements: list[Any], ctx: hw.WindowContext) -> list[Any]:
        return [(f"{ctx.key} {ctx.window} {[row.n for row in elements]} {ctx.pane}",)]


STAGED = hw.early(count=3).on_time().late(count=2)
PER_ELEMENT = {
    "retracted sessions": lambda s: s.window(hw.session("5 ms")).panes("retracting", info=True).agg(**ORDERED),
    "sessions in stages": lambda s: s.window(hw.session("5 ms")).trigger(STAGED).process(Seen(), "what string"),
    "sliding in stages": lambda s: (
        s.window(hw.sliding("10 ms", "4 ms")).trigger(STAGED).panes("discarding", info=True).agg(**SLICED)
    ),
    "continuous sessions": lambda s: (
        s.window(hw.session("5 ms")).trigger(triggers.continuous("3 ms")).panes("retracting").agg(**ORDERED)
    ),
    "evicted": lambda s: (
        s.window(hw.tumbling("10 ms")).evict(evictors.count(2), after=True).process(Seen(), "w string")
    ),
    "counted": lambda s: s.window(hw.count(3, 2)).agg(**ORDERED),
    "one after the other": lambda s: (
        s.window(hw.session("5 ms"))
        .trigger(hw.then(triggers.count(2), hw.repeat(hw.both(triggers.count(2), triggers.event_time()))))
        .agg(**ORDERED)
    ),
}


@pytest.mark.parametrize("steps", PER_ELEMENT)
@examples(60)
@given(script=actions, lateness=st.sampled_from([0, 10, 40]))
def test_windows_by_element_do_not_depend_on_epochs(steps: str, script: list[Any], lateness: int) -> None:
    def build(stream: Stream) -> Stream:
        return PER_ELEMENT[steps](_Lately(stream.key_by("k"), lateness))

    one_by_one, together = Harness(build, SCHEMA), Harness(build, SCHEMA)
    for kind, group in itertools.groupby([*script, ("watermark", 200)], key=lambda action: action[0]):
        acts = list(group)
        if kind == "row":
            together.push_all([row[1:3] for row in acts], [row[3] for row in acts])
        for action in acts:
            if kind == "row":
                one_by_one.push(action[1:3], at=action[3])
            else:
                one_by_one.watermark(action[1])
                together.watermark(action[1])
        found, expected = (
            sorted([(*row, row.timestamp) for row in harness.take()], key=lambda row: row[0][0])
            for harness in (together, one_by_one)
        )
        assert found == expected  # the same for each key, in the same order
    assert entries(together) == entries(one_by_one)


def test_columns_may_have_any_name() -> None:
    def build(stream: Stream) -> Stream:
        return stream.key_by("op", "slice").window(hw.tumbling("10 ms")).agg(run=hw.count())

    harness = Harness(build, "op string, slice long")
    for _ in range(2):
        harness.push(("a", 1), at=3)
        harness = Harness.restore(build, "op string, slice long", harness.snapshot())
    harness.end()
    assert [(row.op, row.slice, row.run) for row in harness.take()] == [("a", 1, 2)]
