"""What `explain` says of branches that meet, of long chains, and of many levels."""

from __future__ import annotations

from typing import Any

import headwater as hw


def explained(build: Any) -> list[str]:
    env = hw.Environment("explained", engine="local")
    build(env.from_rows([], "n long")).sink(hw.connectors.memory(), name="out")
    return env.explain().splitlines()


def test_what_is_behind_branches_that_meet_stands_there_once() -> None:
    def build(stream: Any, count: int) -> Any:
        for _ in range(count):
            stream = stream.where("n > 1").union(stream.where("n <= 1"))
        return stream

    few, many = (len(explained(lambda stream, count=count: build(stream, count))) for count in (4, 40))
    assert many < 12 * few
    assert any(line.endswith(", as above") for line in explained(lambda stream: build(stream, 2)))


def test_a_long_chain_is_explained() -> None:
    def build(stream: Any) -> Any:
        for _ in range(1_100):
            stream = stream.map(lambda row: row)
        return stream

    assert len(explained(build)) > 1_100


def test_what_many_levels_cost_is_said() -> None:
    def build(stream: Any, count: int) -> Any:
        for _ in range(count):
            stream = stream.rebalance().map(lambda row: row)
        return stream

    assert "on Spark each level adds" not in "".join(explained(lambda stream: build(stream, 4)))
    lines = explained(lambda stream: build(stream, 20))
    assert "on Spark each level adds about 0.2 s to an epoch and 2 s to the first: here 4 s and 40 s;" in lines[1]


def test_independent_keyed_steps_share_a_level() -> None:
    def build(stream: Any) -> Any:
        keyed = [stream.key_by("n").reduce(lambda one, other: other, name=name) for name in ("a", "b", "c")]
        return keyed[0].union(*keyed[1:])

    lines = explained(build)
    assert "1 level(s)" in lines[0]
