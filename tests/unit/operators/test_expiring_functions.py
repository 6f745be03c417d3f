"""State with a ttl in functions over two streams, where keys are met in other ways than by their rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import headwater as hw
from headwater.testing import Harness
from headwater.words import StateBackendName

ROW = "k string, n long"
TTL = hw.ttl("10 ms")


class Both(hw.CoProcessFunction):
    """The left side writes, the right one reads."""

    last = hw.ValueState("long", ttl=TTL)

    def process_left(self, row: Any, ctx: hw.Context) -> None:
        self.last.set(row.n)

    def process_right(self, row: Any, ctx: hw.Context) -> Iterator[Any]:
        yield ctx.key, self.last.get()


class Beside(hw.KeyedBroadcastFunction):
    """Rows write; a broadcast row asks every key that has something."""

    last = hw.ValueState("long", ttl=TTL)

    def process(self, row: Any, ctx: Any) -> None:
        self.last.set(row.n)

    def process_broadcast(self, row: Any, ctx: Any) -> Iterator[Any]:
        found: list[Any] = []
        ctx.apply_to_keyed_state(self.last, lambda key, state: found.append((key, state.get())))
        yield from found


@pytest.fixture(params=["memory", "disk"])
def state_backend(request: pytest.FixtureRequest) -> StateBackendName:
    return request.param  # type: ignore[no-any-return]


def test_the_other_stream_finds_nothing_that_has_expired(state_backend: StateBackendName) -> None:
    def build(left: hw.Stream, right: hw.Stream) -> hw.Stream:
        return left.key_by("k").connect(right.key_by("k")).process(Both(), ROW)

    with Harness(build, {"left": ROW, "right": ROW}, state_backend=state_backend) as harness:
        harness.push(("a", 1), to="left")
        for now in (9, 10):
            harness.advance_to(now)
            harness.push(("a", 0), to="right")
        assert harness.take() == [("a", 1), ("a", None)]
        assert harness.state_sizes() == {}


def test_all_keys_are_those_that_have_not_expired(state_backend: StateBackendName) -> None:
    def build(rows: hw.Stream, rules: hw.Stream) -> hw.Stream:
        told = rules.broadcast(hw.MapState("rules", "string", "long"))
        return rows.key_by("k").connect(told).process(Beside(), ROW)

    with Harness(build, {"rows": ROW, "rules": ROW}, state_backend=state_backend) as harness:
        harness.push(("a", 1), to="rows")
        harness.advance_to(5)
        harness.push(("b", 2), to="rows")
        for now in (9, 10, 15):
            harness.advance_to(now)
            harness.push(("ask", 0), to="rules")
        assert harness.take() == [("a", 1), ("b", 2), ("b", 2)]
