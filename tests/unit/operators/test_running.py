"""Running aggregates over changelogs: what they give is the changelog of their results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headwater as hw
from headwater.data.batch import Batch
from headwater.data.rows import encode_rows
from headwater.graph.nodes import RunningNode
from headwater.operators.contract import StepTime
from headwater.operators.running import RunningOperator
from headwater.state.backend import StateBackend
from headwater.state.disk.backend import DiskBackend
from headwater.state.disk.bound import Bound
from headwater.state.memory_backend import MEMORY
from headwater.testing import Harness
from headwater.words import StateBackendName

SCHEMA = hw.Schema.of("k string, v bigint, s string")
KINDS = ("+I", "-U", "+U", "-D")
NOW = StepTime(0, 0)

Change = tuple[str, str, int | None, str | None]
"""What a row does, and its values."""


def node_of(*, sends_before: bool = True, **aggregates: Any) -> RunningNode:
    """Aggregates over a changelog, for readers who must know what goes or not."""
    env = hw.Environment("running", engine="local")
    step = env.from_rows([], f"{SCHEMA}, row_kind string").as_changelog().key_by("k").agg(**aggregates)
    node = env.graph.node(step._flow.origin)
    assert isinstance(node, RunningNode)
    return replace(node, changelog=node.changelog.retracting()) if sends_before else node


@pytest.fixture(params=["memory", "disk"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StateBackend]:
    if request.param == "memory":
        yield MEMORY
        return
    opened = DiskBackend("step", tmp_path, Bound(1 << 20))
    yield opened
    opened.close()


def operator(backend: StateBackend = MEMORY, *, sends_before: bool = True, **aggregates: Any) -> RunningOperator:
    aggregates = aggregates or {"n": hw.count(), "total": hw.sum("v")}
    node = node_of(sends_before=sends_before, **aggregates)
    return RunningOperator(node, "agg", SCHEMA.row, backend=backend)


def batch_of(changes: list[Change], start: int = 0) -> Batch:
    table = encode_rows([change[1:] for change in changes], SCHEMA.arrow, "test")
    kinds = np.array([KINDS.index(change[0]) for change in changes], np.int8)
    return Batch(table, np.arange(start, start + len(changes)), None, kinds)


def run(running: RunningOperator, *changes: Change) -> list[tuple[Any, ...]]:
    """The changes that an epoch gives: what they do, and the result."""
    found: list[Batch] = []
    running.process(batch_of(list(changes)), NOW, lambda tag, batch: found.append(batch))
    return [row for batch in found for row in shown(batch)]


def shown(batch: Batch) -> list[tuple[Any, ...]]:
    assert batch.kinds is not None
    rows = zip(*(column.to_pylist() for column in batch.table.columns), strict=True)
    return [(KINDS[kind], *row) for kind, row in zip(batch.kinds, rows, strict=True)]


def test_a_key_that_comes_changes_and_goes(backend: StateBackend) -> None:
    running = operator(backend)
    assert run(running, ("+I", "a", 1, "x"), ("+I", "a", 2, "x")) == [("+I", "a", 2, 3)]
    assert run(running, ("-U", "a", 1, "x"), ("+U", "a", 5, "x")) == [("-U", "a", 2, 3), ("+U", "a", 2, 7)]
    assert run(running, ("-D", "a", 5, "x")) == [("-U", "a", 2, 7), ("+U", "a", 1, 2)]
    assert run(running, ("-D", "a", 2, "x")) == [("-D", "a", 1, 2)]
    assert len(running.tables()["kept"].dump()) == 0
    assert run(running, ("+I", "a", 9, "x")) == [("+I", "a", 1, 9)]


def test_updates_without_what_was_before(backend: StateBackend) -> None:
    running = operator(backend, sends_before=False)
    assert run(running, ("+I", "a", 1, "x")) == [("+I", "a", 1, 1)]
    assert run(running, ("+I", "a", 1, "x")) == [("+U", "a", 2, 2)]
    assert run(running, ("-D", "a", 1, "x"), ("-D", "a", 1, "x")) == [("-D", "a", 2, 2)]


def test_nothing_is_given_where_the_result_stays() -> None:
    running = operator(top=hw.max("v"))
    assert run(running, ("+I", "a", 3, "x")) == [("+I", "a", 3)]
    assert run(running, ("+I", "a", 2, "x"), ("-D", "a", 2, "x"), ("+I", "a", None, "x")) == []
    assert run(running, ("+I", "b", 1, "x"), ("-D", "b", 1, "x")) == []
    assert run(running, ("-D", "a", 3, "x")) == [("-U", "a", 3), ("+U", "a", None)]


def test_changes_are_in_the_order_in_which_the_last_row_of_each_key_came() -> None:
    running = operator()
    run(running, ("+I", "a", 1, "x"), ("+I", "b", 1, "x"), ("+I", "c", 1, "x"))
    changes: list[Change] = [("+I", "c", 1, "x"), ("-D", "b", 1, "x"), ("+I", "d", 1, "x"), ("+I", "c", 1, "x")]
    assert run(running, *changes) == [
        ("-D", "b", 1, 1),
        ("+I", "d", 1, 1),
        ("-U", "c", 1, 1),
        ("+U", "c", 3, 3),
    ]
    found: list[Batch] = []
    running.process(batch_of(changes, start=10), NOW, lambda tag, batch: found.append(batch))
    assert found[0].timestamps.tolist() == [12, 12, 13, 13]


def test_rows_without_kinds_all_insert() -> None:
    running = operator()
    batch = batch_of([("+I", "a", 1, "x"), ("+I", "b", None, "x")])
    batch.kinds = None
    found: list[Batch] = []
    running.process(batch, NOW, lambda tag, batch: found.append(batch))
    assert shown(found[0]) == [("+I", "a", 1, 1), ("+I", "b", 1, None)]


def test_a_row_that_is_taken_back_before_it_comes_is_owed() -> None:
    running = operator(n=hw.count(), all=hw.collect_list("v"))
    assert run(running, ("-D", "a", 1, "x")) == []
    assert run(running, ("+I", "a", 1, "x")) == []
    assert len(running.tables()["kept"].dump()) == 0
    assert run(running, ("+I", "a", 1, "x")) == [("+I", "a", 1, [1])]


def test_without_taking_back_results_roll_as_ever() -> None:
    env = hw.Environment("running", engine="local")
    step = env.from_rows([], SCHEMA).key_by("k").agg(n=hw.count(), total=hw.sum("v"))
    running: Any = RunningOperator(env.graph.node(step._flow.origin), "agg", SCHEMA.row)  # type: ignore[arg-type]
    found: list[Batch] = []
    for _ in range(2):
        batch = batch_of([("+I", "b", 1, "x"), ("+I", "a", 1, "x"), ("+I", "b", 1, "x")])
        batch.kinds = None
        running.process(batch, NOW, lambda tag, batch: found.append(batch))
    assert [batch.table.to_pylist() for batch in found] == [
        [{"k": "a", "n": 1, "total": 1}, {"k": "b", "n": 2, "total": 2}],
        [{"k": "a", "n": 2, "total": 2}, {"k": "b", "n": 4, "total": 4}],
    ]
    assert all(batch.kinds is None for batch in found)
    assert running.tables()["kept"].dump().column("value").type.num_fields == 2


ALL = {
    "n": hw.count("v"),
    "total": hw.sum("v"),
    "low": hw.min("v"),
    "first": hw.first("s"),
    "last": hw.last("s"),
    "all": hw.collect_list("s"),
    "kinds": hw.count_distinct("s"),
    "mean": hw.avg("v"),
    "spread": hw.var("v"),
}


@st.composite
def epochs(draw: st.DrawFn) -> list[list[Change]]:
    """Rows that come and go, each taken back after it came; those of a key that are equal in one column are equal."""
    values = st.sampled_from([(1, "x"), (2, "y"), (3, None), (None, "z")])
    row = st.tuples(st.sampled_from("ab"), values).map(lambda keyed: (keyed[0], *keyed[1]))
    there: list[tuple[Any, ...]] = []
    found: list[list[Change]] = []
    for _ in range(draw(st.integers(1, 5))):
        changes: list[Change] = []
        for _ in range(draw(st.integers(1, 6))):
            if there and draw(st.booleans()):
                gone = there.pop(draw(st.integers(0, len(there) - 1)))
                changes.append((draw(st.sampled_from(["-U", "-D"])), *gone))  # type: ignore[arg-type]
            else:
                there.append(draw(row))
                changes.append((draw(st.sampled_from(["+I", "+U"])), *there[-1]))  # type: ignore[arg-type]
        found.append(changes)
    return found


@settings(max_examples=60, deadline=None)
@given(script=epochs())
def test_results_are_those_of_the_rows_that_are_left(script: list[list[Change]]) -> None:
    """The same in a copy that starts from a dump at any time."""
    running, follower = operator(**ALL), operator(**ALL)
    results: Counter[str] = Counter()
    rows: list[tuple[Any, ...]] = []
    for changes in script:
        given_out = run(running, *changes)
        kept, copied = running.tables()["kept"], follower.tables()["kept"]
        assert run(follower, *changes) == given_out
        delta, other = kept.changes(), copied.changes()
        assert delta is other is None or (delta is not None and delta.equals(other))
        assert kept.dump().equals(copied.dump())
        follower = operator(**ALL)
        follower.tables()["kept"].apply(kept.dump())
        for kind, *result in given_out:
            results[repr(result)] += 1 if kind in ("+I", "+U") else -1
        for kind, *row in changes:
            if kind in ("+I", "+U"):
                rows.append(tuple(row))
            else:
                rows.remove(tuple(row))
        assert {result for result, count in results.items() if count} == set(map(repr, recomputed(rows)))
        assert set(results.values()) <= {0, 1}


def recomputed(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    if not rows:
        return []
    plain = operator(**ALL)
    return [list(result[1:]) for result in run(plain, *[("+I", *row) for row in rows])]


@pytest.mark.parametrize("state_backend", ["memory", "disk"])
def test_keys_that_were_idle_are_forgotten_so_state_does_not_grow(state_backend: StateBackendName) -> None:
    """All keys are looked at once in the time after which they are forgotten, so some stay for twice as long."""

    def build(rows: hw.Stream) -> hw.Stream:
        return rows._add(
            RunningNode.of(rows.key_by("k")._flow, aggregates={"n": hw.count()}, updates=True, ttl="10 ms")
        )

    with ExitStack() as opened:
        harness = opened.enter_context(Harness(build, "k long", state_backend=state_backend))
        sizes = []
        for now in range(1000, 1100):
            harness.advance_to(now)
            harness.push_all([(0,), (now,)])
            sizes.append(harness.state_sizes()["agg"]["kept"])
            if now == 1050:
                restored = Harness.restore(build, "k long", harness.snapshot(), state_backend=state_backend)
                harness = opened.enter_context(restored)
        assert max(sizes) <= 22
        harness.take()
        harness.push((0,))
        assert [(row.k, row.n, row.row_kind) for row in harness.take()] == [(0, 101, "+U")]
