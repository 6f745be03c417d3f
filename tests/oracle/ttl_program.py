"""Keyed state with a ttl on Headwater's harness."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import headwater as hw
from headwater.testing import Harness

ROW = "k string, n bigint, what string, entry string"
_ONE_BY_ONE = ("row by row", "on disk", "restored")


def ways(case: dict[str, Any]) -> tuple[str, ...]:
    """An epoch for all rows of a time; and one for every row: in memory, on disk, or on a copy rebuilt when time moves.

    A case takes one of these three, by its number, as they are slow.
    """
    return "by batch", _ONE_BY_ONE[int(case["id"].partition("-")[2]) % len(_ONE_BY_ONE)]


def seen(case: dict[str, Any], way: str, flink: dict[str, Any]) -> dict[str, Any]:
    """Every row gives one result, so all ways can tell the same."""
    return flink


class Total(hw.AggregateFunction[int, int, int]):
    def create(self) -> int:
        return 0

    def add(self, accumulator: int, value: int) -> int:
        return accumulator + value

    def result(self, accumulator: int) -> int:
        return accumulator * 100


def _declared(kind: str, ttl: hw.Ttl) -> Any:
    return {
        "value": lambda: hw.ValueState("it", "bigint", ttl=ttl),
        "list": lambda: hw.ListState("it", "bigint", ttl=ttl),
        "map": lambda: hw.MapState("it", "string", "bigint", ttl=ttl),
        "reducing": lambda: hw.ReducingState("it", "bigint", reduce=lambda a, b: a + b, ttl=ttl),
        "aggregating": lambda: hw.AggregatingState("it", "bigint", aggregate=Total(), ttl=ttl),
    }[kind]()


def _function(case: dict[str, Any]) -> hw.KeyedProcessFunction:
    class Says(hw.KeyedProcessFunction):
        it = _declared(case["state"], hw.ttl(f"{case['ttl']} ms", update=case["update"]))

        def process(self, row: Any, ctx: hw.Context) -> Iterator[Any]:
            yield ctx.key, json.dumps(_done(self.it, row))

    return Says()


def _done(state: Any, row: Any) -> Any:
    """What a row does to the state, and what it reads."""
    arguments = {
        "set": (row.n,),
        "add": (row.n,),
        "add_all": ([row.n, row.n + 1],),
        "update": ([row.n, row.n + 1],),
        "put": (row.entry, row.n),
        "put_all": ({"x": row.n, "y": row.n + 1},),
        "remove": (row.entry,),
        "contains": (row.entry,),
        "get": (row.entry,) if hasattr(state, "put") else (),
    }
    return getattr(state, row.what)(*arguments.get(row.what, ()))


def run_headwater(case: dict[str, Any], way: str) -> dict[str, Any]:
    """What a case emits."""

    def build(stream: hw.Stream) -> hw.Stream:
        return stream.key_by("k").process(function, "k string, found string")

    function = _function(case)
    harness = Harness(build, ROW, state_backend="disk" if way == "on disk" else "memory")
    fired = []
    for rows, some in groupby(enumerate(case["actions"]), key=lambda one: one[1][0] == "row"):
        actions = list(some)
        for batch in [actions] if rows and way == "by batch" else ([action] for action in actions):
            if rows:
                harness.push_all([(key, n, what, entry) for _, (_, key, n, _, what, entry) in batch], [0] * len(batch))
            else:
                harness.advance_to(batch[0][1][1])
            found = harness.take()
            fired += [[step, row.k, json.loads(row.found), 0] for (step, _), row in zip(batch, found, strict=rows)]
            if way == "restored" and not rows:
                harness = Harness.restore(build, ROW, harness.snapshot())
    harness.close()
    return {"id": case["id"], "fired": fired, "late": []}
