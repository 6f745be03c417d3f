"""What `ttl=` takes, and where state cannot expire."""

from __future__ import annotations

from typing import Any

import pytest

import headwater as hw

SHORT = hw.ttl("1 s")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: hw.ttl("0 s"), "step 'ttl' needs more than nothing; got '0 s'"),
        (lambda: hw.ttl("-1 s"), "a ttl must not be negative"),
        (lambda: hw.ttl("soon"), "a ttl"),
        (lambda: hw.ttl(5), "a ttl"),
        (lambda: hw.ttl("1 s", update="read"), "lasts from the last update='write' or 'read_and_write'; got 'read'"),
        (lambda: hw.ttl("1 s", clock="wall"), "goes by clock='event' or 'processing'; got 'wall'"),
        (lambda: hw.ValueState("int", ttl="1 s"), r"takes a hw.ttl\(...\); got '1 s'; write ttl=hw.ttl\('1 h'\)"),
    ],
)
def test_nonsense_is_refused_where_it_is_written(make: Any, problem: str) -> None:
    with pytest.raises((hw.GraphError, hw.DurationError), match=problem):
        make()


class Operator(hw.ProcessFunction):
    held = hw.OperatorListState("int", ttl=SHORT)

    def process(self, row: Any, ctx: hw.Context) -> Any: ...


class InWindows(hw.ProcessWindowFunction):
    seen = hw.ValueState("int", ttl=SHORT)

    def process(self, key: Any, window: Any, rows: Any, ctx: Any) -> Any: ...


class InEventTime(hw.KeyedProcessFunction):
    seen = hw.ValueState("int", ttl=hw.ttl("1 s", clock="event"))

    def process(self, row: Any, ctx: hw.Context) -> Any: ...


ROWS = "k string, n long"
RULES = hw.MapState("rules", "string", "int")


class Seen(hw.KeyedProcessFunction):
    last = hw.ValueState("long", default=0, ttl=hw.ttl("1 s", clock="event"))

    def process(self, row: Any, ctx: hw.Context) -> Any:
        yield row.k, self.last.get()
        self.last.set(row.n)


class Connected(hw.CoProcessFunction):
    seen = hw.ValueState("int", ttl=hw.ttl("1 s", clock="event"))

    def process_left(self, row: Any, ctx: hw.Context) -> Any: ...

    def process_right(self, row: Any, ctx: hw.Context) -> Any: ...


class BesideRules(hw.KeyedBroadcastFunction):
    seen = hw.ValueState("int", ttl=hw.ttl("1 s", clock="event"))

    def process(self, row: Any, ctx: hw.Context) -> Any: ...

    def process_broadcast(self, row: Any, ctx: Any) -> Any: ...


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda s: s.process(Operator(), ROWS), "operator state, which belongs to no key and cannot expire; got 'held"),
        (
            lambda s: s.broadcast(hw.MapState("rules", "string", "int", ttl=SHORT)),
            "the same on every subtask and belongs to no key, so it cannot expire; got 'rules with a ttl'",
        ),
        (
            lambda s: s.key_by("k").window(hw.tumbling("1 s")).process(InWindows(), ROWS),
            "keeps state beside windows, which cannot expire; got 'seen with a ttl'",
        ),
        (
            lambda s: s.key_by("k").process(InEventTime(), ROWS),
            "whose ttl goes by event time, which must move; got \"source 'live' without watermarks\"",
        ),
    ],
)
def test_state_that_cannot_expire_is_refused(build: Any, problem: str) -> None:
    env = hw.Environment("refused", engine="local")
    live = env.source(hw.connectors.generator(lambda n: ("a", n), rate=1), ROWS, name="live")
    with pytest.raises(hw.GraphError, match=problem):
        build(live)


BESIDE: dict[str, Any] = {
    "connected": lambda data, other: data.connect(other.key_by("k")).process(Connected(), ROWS),
    "broadcast": lambda data, other: data.connect(other.broadcast(RULES)).process(BesideRules(), ROWS),
}


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("how", BESIDE)
def test_event_time_must_move_on_both_sides_of_two(how: str, is_first: bool) -> None:
    env = hw.Environment("refused", engine="local")
    timed = env.from_rows([], ROWS, hw.Watermarks.monotonous("n"), name="timed")
    live = env.source(hw.connectors.generator(lambda n: ("a", n), rate=1), ROWS, name="live")
    data, other = (live, timed) if is_first else (timed, live)
    with pytest.raises(hw.GraphError, match="which must move; got \"source 'live' without watermarks\""):
        BESIDE[how](data.key_by("k"), other)


@pytest.mark.parametrize("backend", ["memory", "disk"])
def test_in_input_that_ends_and_has_no_watermarks_no_event_time_passes(backend: Any) -> None:
    env = hw.Environment("ends", engine="local", max_rows_per_epoch=1, state_backend=backend)
    sink = hw.connectors.memory()
    env.from_rows([("a", 1), ("a", 1_000_000), ("a", 9)], ROWS).key_by("k").process(Seen(), ROWS).sink(sink)
    job = env.run(clock=lambda number: 1_000_000 * (number + 2))
    assert [row.n for row in sink.rows] == [0, 1, 1_000_000]
    assert job.status().steps["seen"]["state_expired"] == 0
