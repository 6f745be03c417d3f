from __future__ import annotations

from typing import Any

import pytest

import headwater as hw
from headwater.testing import Harness


class Count(hw.KeyedProcessFunction):
    seen = hw.ValueState("bigint", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Any:
        self.seen.set(self.seen.get() + 1)
        yield ctx.key, self.seen.get()


class Numbered(hw.ProcessFunction):
    numbers = hw.OperatorListState("bigint")

    def process(self, event: Any, ctx: hw.Context) -> Any:
        yield (event.k,)


def build(stream: hw.Stream) -> hw.Stream:
    return stream.key_by("k").process(Count(), "k string, n long")


@pytest.mark.parametrize("wrong", ["rocksdb", "", None])
def test_a_backend_that_there_is_not_is_refused(wrong: Any) -> None:
    with pytest.raises(hw.GraphError, match=r"keeps state in 'memory' or on 'disk'; got .*choose one of them"):
        hw.Environment("job", state_backend=wrong)


def test_a_missing_library_is_told_when_the_job_is_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.streams.state_backends.find_spec", lambda name: None)
    with pytest.raises(hw.GraphError, match=r"rocksdict, which is not installed.*install headwater\[disk\]"):
        hw.Environment("job", state_backend="disk")
    hw.Environment("job", state_backend="memory")


@pytest.mark.parametrize("wrong", ["", "512", "much", "-1 MB", "1 MX", 512])
def test_a_bound_that_is_no_size_is_refused(wrong: Any) -> None:
    with pytest.raises(hw.HeadwaterError, match=r"state_memory must be a size; got .*write it as '512 MB'"):
        hw.Environment("job", state_memory=wrong)


def test_explain_names_where_the_state_of_each_step_is() -> None:
    def explained(**settings: Any) -> str:
        env = hw.Environment("job", engine="local", **settings)
        counted = build(env.from_rows([], "k string"))
        counted.sink(hw.connectors.memory())
        counted.key_by("k").window(hw.count(2)).agg(m=hw.count()).sink(hw.connectors.memory())
        counted.process(Numbered(), "k string", name="numbered").sink(hw.connectors.memory())
        return env.explain()

    assert explained() == explained(state_backend="memory")
    for where in ("memory", "disk"):
        text = explained(state_backend=where)
        shown = f"state {'in' if where == 'memory' else 'on'} {where}\n"
        assert f"seen: value; {shown}" in text
        assert f"window window_agg by key_by(k); computed by count, {shown}" in text
        assert "numbered by rebalance keeps numbers: operator_list; state in memory\n" in text


@pytest.mark.parametrize(("before", "after"), [("memory", "disk"), ("disk", "memory")])
def test_a_snapshot_moves_between_backends(before: str, after: str) -> None:
    with Harness(build, "k string", state_backend=before) as harness:
        harness.push_all([("a",), ("b",), ("a",)])
        snapshot = harness.snapshot()
    with Harness.restore(build, "k string", snapshot, state_backend=after) as moved:
        assert moved.snapshot() == snapshot
        moved.push(("a",))
        assert [tuple(row) for row in moved.take()] == [("a", 3)]


def test_running_aggregates_are_kept_on_the_backend() -> None:
    def totals(backend: str) -> list[Any]:
        env = hw.Environment("job", engine="local", max_rows_per_epoch=2, state_backend=backend)
        rows = env.from_rows([(f"k{n % 3}", n) for n in range(10)], "k string, n long")
        return rows.key_by("k").agg(total=hw.sum("n"), last=hw.max("n")).collect()

    assert totals("disk") == totals("memory")
