"""A ttl for all state of a job."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.parts.halves import run_epochs

import headwater as hw
from headwater.epoch import clock as epoch_clock

ROWS = [("a", 1), ("b", 2), ("a", 4), ("a", 8)]
SCHEMA = "k string, n long"
CLOCK = [1000, 2000, 10_000, 11_000]
"""The times of the four epochs: what was kept in the first two is forgotten by the third."""


class Total(hw.KeyedProcessFunction):
    total = hw.ValueState("long", default=0)
    own = hw.ValueState("long", default=0, ttl=hw.ttl("1 d"))

    def process(self, row: Any, ctx: hw.Context) -> Any:
        self.total.set(self.total.get() + row.n)
        self.own.set(self.own.get() + row.n)
        yield ctx.key, self.total.get() * 1000 + self.own.get()


def same(row: Any) -> Any:
    return row


STEPS: dict[str, tuple[Callable[[hw.Stream], Any], list[Any], list[Any]]] = {
    "process": (
        lambda s: s.key_by("k").process(Total(), SCHEMA).with_uid("step"),
        [("a", 1001), ("b", 2002), ("a", 5005), ("a", 13013)],
        [("a", 1001), ("b", 2002), ("a", 4005), ("a", 12013)],
    ),
    "reduce": (
        lambda s: s.key_by("k").reduce(lambda a, b: (a.k, a.n + b.n)).with_uid("step"),
        [("a", 1), ("b", 2), ("a", 5), ("a", 13)],
        [("a", 1), ("b", 2), ("a", 4), ("a", 12)],
    ),
    "agg": (
        lambda s: s.key_by("k").agg(n=hw.sum("n")).with_uid("step"),
        [("a", 1), ("b", 2), ("a", 5), ("a", 13)],
        [("a", 1), ("b", 2), ("a", 4), ("a", 12)],
    ),
    "deduplicate": (lambda s: s.deduplicate("k").with_uid("step"), ROWS[:2], ROWS[:3]),
}


def env_of(build: Callable[[hw.Stream], Any], ttl: Any, backend: Any = "memory") -> tuple[hw.Environment, Any]:
    env = hw.Environment("all", engine="local", max_rows_per_epoch=1, state_ttl=ttl, state_backend=backend)
    sink = hw.connectors.memory()
    build(env.from_rows(ROWS, SCHEMA)).sink(sink, name="out")
    return env, sink


@pytest.mark.parametrize("backend", ["memory", "disk"])
@pytest.mark.parametrize("step", STEPS)
def test_steps_that_say_nothing_themselves_forget(step: str, backend: str) -> None:
    build, always, forgetful = STEPS[step]
    for ttl, expected in ((None, always), ("5 s", forgetful)):
        env, sink = env_of(build, ttl, backend)
        job = env.run(bounded=True, clock=lambda n: CLOCK[max(0, min(n, 3))])
        assert [tuple(row) for row in sink.rows] == expected
        if ttl is not None and step != "deduplicate":
            assert job.status().steps["step"]["state_expired"] == 2


@pytest.mark.parametrize("step", ["process", "reduce", "agg"])
@pytest.mark.parametrize(("before", "after"), [(None, "5 s"), ("5 s", None), ("1 h", "5 s")])
def test_it_comes_and_goes_over_a_savepoint(tmp_path: Path, step: str, before: Any, after: Any) -> None:
    build, always, forgetful = STEPS[step]
    clock = lambda n: CLOCK[max(0, min(n, 3))]  # noqa: E731
    path = run_epochs(env_of(build, before)[0], 2, clock=clock).savepoint(tmp_path / "sp")
    env, sink = env_of(build, after)
    told = str(hw.savepoint.check(path, env))
    assert ("expires no more, was 5 s of" if after is None else "expires 5 s of processing time after") in told
    assert ("counted from the start" in told) == (before is None)
    assert "@" not in told.replace("@position", "")
    assert "value.f" not in told
    env.run(from_=path, bounded=True, clock=clock)
    kept = after is None or before is None  # what had no time has that of the third epoch
    assert [tuple(row) for row in sink.rows] == (always if kept else forgetful)[2:]


def test_a_ttl_of_nothing_is_refused() -> None:
    with pytest.raises(hw.GraphError, match="step 'environment' needs a ttl of more than nothing; got '0 s'"):
        hw.Environment("x", engine="local", state_ttl="0 s")


def test_a_job_that_forgets_does_not_grow() -> None:
    env, _ = env_of(lambda s: s.deduplicate("k"), "1 h")
    assert all(node.grows is None for node in env.graph)
    assert "1 h after" in env.explain("state")


TOTALS = "SELECT k, SUM(n) AS n FROM orders GROUP BY k"


def query_env(ttl: Any) -> hw.Environment:
    env = hw.Environment("query", engine="local", max_rows_per_epoch=1, state_ttl=ttl)
    env.create_view("orders", env.from_rows(ROWS, SCHEMA, name="orders"))
    return env


@pytest.mark.parametrize("ttl", ["1 h", None])
def test_a_query_is_explained_with_the_ttl_that_its_job_has(ttl: Any) -> None:
    env = query_env(ttl)
    told = [env.sql(TOTALS).explain("state"), env.execute_sql(f"EXPLAIN STATE {TOTALS}")[0].plan]
    env.sql(TOTALS).sink(hw.connectors.memory(), name="out")
    job = env.explain("state")
    until = "until never" if ttl is None else "until 1 h after the last row of its key"
    assert all(until in text for text in [*told, job])
    assert all(text.replace("query.", "out.") == job for text in told)


def test_a_query_that_is_collected_or_followed_forgets_as_its_job_does(monkeypatch: pytest.MonkeyPatch) -> None:
    hours = count()
    monkeypatch.setattr(epoch_clock, "time", SimpleNamespace(time_ns=lambda: next(hours) * 3_600_000_000_000))
    env, sink = query_env("1 min"), hw.connectors.memory()
    table, followed = env.sql(TOTALS), list[Any]()
    table.follow(followed.extend)
    collected = table.collect()
    table.to_changelog().with_row_kind().sink(sink)
    env.run(bounded=True)
    assert [row.n for row in sink.rows] == [1, 2, 4, 8]  # each epoch is an hour later
    assert [row.n for row in followed] == [row.n for row in collected] == [1, 2, 4, 8]


def test_both_sides_of_a_regular_join_forget() -> None:
    env = hw.Environment("join", engine="local", state_ttl="1 h")
    left, right = (env.from_rows(ROWS, SCHEMA, name=name).key_by("k") for name in ("left", "right"))
    left.join_regular(right, ttl=("1 d", None)).sink(hw.connectors.memory())
    assert [node.ttls_ms for node in env.graph if node.operation == "regular_join"] == [(86_400_000, 3_600_000)]


def versions_env(ttl: Any, sink: Any) -> hw.Environment:
    env = hw.Environment("versions", engine="local", max_rows_per_epoch=1)
    by_ts = hw.Watermarks.monotonous("ts")
    rows = env.from_rows([("a", ts) for ts in (5, 6, 7, 8)], "k string, ts long", by_ts, name="rows")
    versions = env.from_rows(
        [("a", 1, 1), ("b", 2, 2), ("b", 3, 3), ("b", 4, 4)], "k string, w long, ts long", by_ts, name="versions"
    )
    joined = rows.temporal_join(versions, on="k", how="left", ttl=ttl, name="step")
    joined.select("k", "w").sink(sink, name="out")
    return env


@pytest.mark.parametrize(("before", "after"), [(None, "1 h"), ("1 h", None)])
def test_a_temporal_join_forgets_versions_and_a_ttl_comes_and_goes(tmp_path: Path, before: Any, after: Any) -> None:
    clock = lambda n: 1000 * max(0, n)  # noqa: E731
    path = run_epochs(versions_env(before, hw.connectors.memory()), 2, clock=clock).savepoint(tmp_path / "sp")
    sink = hw.connectors.memory()
    told = str(hw.savepoint.check(path, versions_env(after, sink)))
    assert "can go on from the savepoint" in told.splitlines()[-1]
    assert "allow_dropped_state" not in told
    assert ("expires no more" if after is None else "expires 1 h of processing time after the last row of") in told
    versions_env(after, sink).run(from_=path, bounded=True, clock=clock)
    assert {(row.k, row.w) for row in sink.rows} == {("a", 1)}
