"""A key with many sessions: a row finds those it touches, and costs the same however many there are."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from tests.parts.examples import examples
from tests.parts.work import calls_of

import headwater as hw
from headwater.data.batch import MIN_TIMESTAMP, Batch
from headwater.operators.contract import StepTime
from headwater.operators.window.sessions import Sessions, sessions_declaration
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor
from headwater.testing import Harness
from headwater.windows.assigners import Window

SCHEMA = "k long, v long"


def opened() -> tuple[Sessions, Cursor, Any]:
    cursor = Cursor()
    entries, tables = open_states([sessions_declaration()], "step", pa.int64(), cursor)
    return Sessions(tables["@sessions"], cursor), cursor, entries


windows = st.builds(lambda start, size: Window(start, start + size), st.integers(0, 400), st.integers(1, 9))
actions = st.one_of(st.tuples(st.just("add"), windows), st.tuples(st.sampled_from(["remove", "move"]), windows))


@examples(150)
@given(st.lists(actions, min_size=20, max_size=80))
def test_sessions_are_found_as_by_looking_at_all(actions: list[tuple[str, Window]]) -> None:
    sessions, cursor, entries = opened()
    known: set[Window] = set()
    for action, window in actions:
        cursor.entry = entries.entry(7)
        touching = sorted(one for one in known if one.touches(window))
        assert sessions.touching(window) == touching
        if action == "add":
            whole = Window(min(w.start for w in (window, *touching)), max(w.end for w in (window, *touching)))
            assert sessions.add(window, lambda *_: None) == whole
            known = known.difference(touching) | {whole}
        elif action == "remove":
            for one in touching:
                sessions.remove(one)
            known = known.difference(touching)
        else:  # another copy takes over, and is then changed from outside
            other, other_cursor, other_entries = opened()
            other.apply(sessions.dump())
            other_cursor.entry = other_entries.entry(7)
            assert other.touching(Window(-1, 500)) == sorted(known)
            cursor.entry = entries.entry(7)
            sessions.forget_changes()
            whole = sessions.add(window, lambda *_: None)
            known = known.difference(touching) | {whole}
            if (changes := sessions.changes()) is not None:
                other.apply(changes)
            sessions, cursor, entries = other, other_cursor, other_entries


class Collect(hw.ProcessWindowFunction):
    def process(self, elements: Any, ctx: Any) -> Any:
        yield (len(elements),)


STEPS: dict[str, Any] = {
    "by bursts": lambda windows: windows.agg(n=hw.count(), last=hw.last("v")),
    "by element": lambda windows: windows.process(Collect(), "n long"),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_session_costs_the_same_beside_many(step: str) -> None:
    def build(stream: Any) -> Any:
        return STEPS[step](stream.key_by("k").window(hw.session("10 ms")).allow_lateness("1 h"))

    costs = []
    for count in (200, 1_600):
        (operator,) = [e.operator for host in Harness(build, SCHEMA)._cluster.hosts.values() for e in host._entries]
        out: list[Batch] = []

        def process(times: Any, watermark_ms: int, operator: Any = operator, out: list[Batch] = out) -> None:
            zeros = np.zeros(len(times), np.int64)
            table = pa.table({"k": zeros, "v": zeros})
            operator.process(Batch(table, times), StepTime(watermark_ms, 0), lambda _, batch: out.append(batch))

        times = np.random.default_rng(1).permutation(count) * 100
        epoch = calls_of(lambda times=times, process=process: process(times, MIN_TIMESTAMP))
        operator.advance_watermark(StepTime(count * 100, 0), lambda _, batch, out=out: out.append(batch))
        assert sum(map(len, out)) == count
        late = [calls_of(lambda n=n, p=process, t=times: p(t[n : n + 1] + 3, t.max() + 100)) for n in range(3)]
        costs.append((epoch / count, sorted(late)[1]))
    (few, few_late), (many, many_late) = costs
    assert many < 1.5 * few
    assert many_late < 1.5 * few_late
