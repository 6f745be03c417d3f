"""`deduplicate` with a ttl that comes, goes or changes: over a savepoint, in a job folder, and in what was stored before."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from tests.parts.halves import run_epochs
from tests.parts.places import batch_of, run_epoch

import headwater as hw
from headwater.data.schema import Schema
from headwater.plan.plan import JobPlan, plan_job
from headwater.state.changelog import MemoryRecordStore, catch_up
from headwater.state.records import pack, unpack
from headwater.task.host import LevelHost
from headwater.testing import Harness

ROWS = "k string, n long"
CHANGES = [("5 s", None), (None, "5 s"), ("1 h", "5 s"), ("5 s", "1 h"), ("5 s", "5 s")]
BACKENDS = pytest.mark.parametrize("backend", ["memory", "disk"])


def build(ttl: Any) -> Any:
    return lambda stream: stream.deduplicate("k", ttl=ttl)


def known_at(ttl: Any, since: int, at: int) -> bool:
    """Whether a key is known that became so earlier."""
    return ttl is None or at - since < {"5 s": 5_000, "1 h": 3_600_000}[ttl]


# -- over a savepoint ---------------------------------------------------------------------------------------------------


CLOCK = [1000, 2000, 10_000, 11_000, 30_000]


def env_of(ttl: Any, backend: Any = "memory") -> tuple[hw.Environment, Any]:
    env = hw.Environment("once", engine="local", max_rows_per_epoch=1, state_backend=backend)
    sink = hw.connectors.memory()
    rows = env.from_rows([("a", 1), ("b", 2), ("a", 3), ("a", 4), ("a", 5)], ROWS)
    rows.deduplicate("k", ttl=ttl).with_uid("step").sink(sink, name="out")
    return env, sink


@BACKENDS
@pytest.mark.parametrize(
    ("before", "after", "given", "told"),
    [
        ("5 s", None, [], "expires no more, was 5 s after the row that went on"),
        (None, "5 s", [5], "expires 5 s after the row that went on, counted from the start"),
        ("1 h", "5 s", [3, 5], "expires 5 s after the row that went on, was 1 h after"),
        ("5 s", "1 h", [], "expires 1 h after the row that went on, was 5 s after"),
    ],
)
def test_a_ttl_comes_goes_and_changes_over_a_savepoint(
    tmp_path: Path, *, backend: str, before: Any, after: Any, given: list[int], told: str
) -> None:
    clock = lambda n: CLOCK[max(0, min(n, 4))]  # noqa: E731
    path = run_epochs(env_of(before)[0], 2, clock=clock).savepoint(tmp_path / "saved")
    env, sink = env_of(after, backend)
    (line,) = (one for one in str(hw.savepoint.check(path, env)).splitlines() if "known_until" in one)
    assert told in line
    env.run(from_=path, bounded=True, clock=clock)
    assert [row.n for row in sink.rows] == given


# -- by either time, on either backend, at another parallelism ----------------------------------------------------------


@BACKENDS
@pytest.mark.parametrize("by_events", [True, False])
@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_keys_are_known_for_as_long_as_they_would_be_from_the_row_on(
    before: Any, after: Any, backend: Any, by_events: bool
) -> None:
    with Harness(build(before), ROWS, state_backend=backend) as harness:
        at(harness, 1000, by_events)
        push(harness, "a", 1000, by_events)
        snapshot = harness.snapshot()
    since = 1000 if before is not None else 4_000  # what had no time is known from the start on
    for then in (4_500, 7_000, 9_500, 3_610_000):
        with Harness.restore(build(after), ROWS, snapshot, parallelism=2, state_backend=backend) as harness:
            at(harness, 4_000, by_events)
            at(harness, then, by_events)
            push(harness, "a", then, by_events)
            assert [row.n for row in harness.take()] == ([] if known_at(after, since, then) else [then])
            at(harness, 100_000_000, by_events)
            assert harness.state_sizes() == ({"deduplicate": {"known_until": 1}} if after is None else {})


def at(harness: Harness, now_ms: int, by_events: bool) -> None:
    if by_events:
        harness.watermark(now_ms)
    else:
        harness.advance_to(now_ms)


def push(harness: Harness, key: str, now_ms: int, by_events: bool) -> None:
    harness.push((key, now_ms), at=now_ms if by_events else None)


@BACKENDS
def test_a_ttl_may_change_again_and_again(backend: Any) -> None:
    with Harness(build("1 h"), ROWS, state_backend=backend) as harness:
        harness.advance_to(1000)
        harness.push(("a", 1))
        snapshot = harness.snapshot()
    for ttl, then in (("10 s", 2000), ("2 h", 3000), ("30 s", 4000), ("1 min", 60_999)):
        with Harness.restore(build(ttl), ROWS, snapshot, state_backend=backend) as harness:
            harness.advance_to(then)
            harness.push_all([("a", then), (f"at {then}", then)])
            assert [row.n for row in harness.take()] == [then]  # the new key's alone
            snapshot = harness.snapshot()
    with Harness.restore(build("1 min"), ROWS, snapshot, state_backend=backend) as harness:
        harness.advance_to(61_000)
        harness.push_all([("a", 5), ("at 2000", 5), ("at 60999", 5)])
        assert [row.k for row in harness.take()] == ["a"]
        harness.advance_to(62_000)
        assert sorted(harness.state_sizes()["deduplicate"].items()) == [("@timers.processing", 4), ("known_until", 4)]


# -- in a job folder ----------------------------------------------------------------------------------------------------


def plan_of(ttl: Any, backend: str) -> JobPlan:
    env = hw.Environment("once", engine="local", parallelism=1)
    env.from_rows([], ROWS).deduplicate("k", ttl=ttl).sink(hw.connectors.memory())
    return plan_job(env.graph, 1, 128, backend)


def epoch(host: LevelHost, plan: JobPlan, store: MemoryRecordStore, now_ms: int, keys: list[str]) -> None:
    given_rows = batch_of([(key, now_ms) for key in keys], Schema.of(ROWS), [None] * len(keys))
    run_epoch(host, plan, store, now_ms, given_rows, now_ms=now_ms)


def sizes_of(host: LevelHost) -> dict[str, int]:
    return {name: size for name, size in host.sizes()["deduplicate"].items() if size}


Opened = Callable[[JobPlan], LevelHost]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Hosts of plans, which are closed in the end."""
    with ExitStack() as hosts:

        def host_of(plan: JobPlan) -> LevelHost:
            return hosts.enter_context(closing(LevelHost(plan, 1, 0, local_dir=tmp_path)))

        yield host_of


@BACKENDS
def test_in_a_job_folder_another_length_writes_nothing_anew(backend: str, opened: Opened) -> None:
    store, keys = MemoryRecordStore(), [f"key {n}" for n in range(500)]
    first = plan_of("1 h", backend)
    epoch(opened(first), first, store, 1000, keys)
    second = plan_of("5 s", backend)
    host = opened(second)
    epoch(host, second, store, 5999, [])
    assert sizes_of(host) == {"known_until": 500, "@timers.processing": 500}
    _, sections = unpack(store._records[max(store._records)][1])
    assert [name for _, name, _ in sections if name in ("known_until", "@timers.processing")] == []
    epoch(host, second, store, 6000, [])
    assert sizes_of(host) == {}
    rebuilt = opened(second)
    catch_up(rebuilt, store, "here")
    assert sizes_of(rebuilt) == {}


@BACKENDS
def test_a_copy_that_is_rebuilt_after_a_change_has_what_the_first_one_has(backend: str, opened: Opened) -> None:
    store, now_ms = MemoryRecordStore(), 0
    for ttl in (None, "5 s", None, "1 h", "10 s"):
        plan = plan_of(ttl, backend)
        host = opened(plan)
        for _ in range(3):
            now_ms += 1500
            epoch(host, plan, store, now_ms, [f"key {now_ms % 7}", f"at {now_ms}"])
            rebuilt = opened(plan)
            catch_up(rebuilt, store, "here")
            assert rebuilt.base() == host.base()


# -- what was stored before ---------------------------------------------------------------------------------------------


def without_facts(snapshot: bytes) -> bytes:
    """The snapshot as one was before `deduplicate` told for how long keys were known."""
    content = json.loads(snapshot)
    for place, record in content["hosts"].items():
        meta, sections = unpack(base64.b64decode(record))
        for facts in meta.values():
            facts.pop("known_for_ms", None)
        content["hosts"][place] = base64.b64encode(pack(meta, sections)).decode()
    return json.dumps(content).encode()


@BACKENDS
@pytest.mark.parametrize(
    ("before", "after", "given"),
    [
        ("5 s", "5 s", [3]),
        ("5 s", None, []),
        (None, "5 s", []),
        (None, None, []),
        ("5 s", "1 h", [3]),
        ("1 h", "5 s", []),
    ],
)
def test_state_that_nobody_told_the_ttl_of_keeps_its_ends(
    before: Any, after: Any, given: list[int], backend: Any
) -> None:
    with Harness(build(before), ROWS, state_backend=backend) as harness:
        harness.advance_to(1000)
        harness.push_all([("a", 1), ("b", 1)])
        snapshot = without_facts(harness.snapshot())
    with Harness.restore(build(after), ROWS, snapshot, state_backend=backend) as harness:
        harness.advance_to(4000)
        harness.push(("a", 2))
        harness.advance_to(6000)
        harness.push(("a", 3))
        assert [row.n for row in harness.take()] == given
        harness.advance_to(9_000)
        harness.push(("a", 4))
        assert harness.take() == ([("a", 4)] if (before, after) == (None, "5 s") else [])
