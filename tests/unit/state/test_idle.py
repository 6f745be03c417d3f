"""Accumulators that are forgotten when their key is idle."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.parts.examples import examples

from headwater.descriptors import ValueState
from headwater.state import idle
from headwater.state.accumulators import open_accumulators
from headwater.state.backend import StateBackend
from headwater.state.idle import WRITTEN, IdleAccumulators
from headwater.state.memory_backend import MEMORY
from headwater.state.records import pack
from headwater.state.table import KeyedLayout

SUM = pa.schema([("sum", pa.int64())])
TTL = 10


def opened(backend: StateBackend = MEMORY, now_ms: int = 0) -> IdleAccumulators:
    kept = open_accumulators("kept", SUM.append(WRITTEN), "step", pa.string(), backend=backend)
    times = backend.times(ValueState("kept", "boolean"), pa.string())
    found = IdleAccumulators(kept, TTL, KeyedLayout("step", "kept", pa.string(), []), times)
    found.at(now_ms)
    return found


def add(kept: IdleAccumulators, keys: list[str], number: int) -> list[int]:
    """Add a number to the sums of keys; the sums."""

    def fold(places: Any, before: pa.Table) -> pa.Table:
        sums = [number] * len(keys)
        for place, was in zip(places.tolist(), before["sum"].to_pylist(), strict=True):
            sums[place] += was
        return pa.table([sums], schema=SUM)

    return kept.update(keys, fold)["sum"].to_pylist()  # type: ignore[no-any-return]


def packed(changes: pa.Table | None) -> bytes:
    return b"" if changes is None else pack({}, [("step", "kept", changes)])


def test_a_key_is_forgotten_when_it_was_idle_for_as_long_as_it_may(backend: StateBackend) -> None:
    kept = opened(backend)
    add(kept, ["a", "b"], 1)
    assert kept.at(5) == []
    add(kept, ["b"], 1)
    assert (kept.at(9), kept.at(10), kept.has(["a", "b"]).tolist()) == ([], ["a"], [False, True])
    assert (kept.at(14), kept.at(15)) == ([], ["b"])


def test_keys_without_times_are_idle_from_the_first_epoch_on(backend: StateBackend) -> None:
    kept = opened(backend)
    value = pa.array([(1, None), (2, 995)], kept.dump().schema.field("value").type)
    again = IdleAccumulators(kept._kept, TTL, kept._keys, kept._times)
    again.apply(pa.table([pa.array([0, 0], pa.int8()), ["a", "b"], value], schema=kept.dump().schema))
    assert [again.at(now) for now in (1000, 1005, 1009, 1010)] == [[], ["b"], [], ["a"]]


def test_the_index_does_not_grow_with_keys_that_come_and_go(
    backend: StateBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle, "_DEAD", 10)
    kept = opened(backend)
    monkeypatch.setattr(kept, "_ttl_ms", 1_000_000)
    for epoch in range(200):
        kept.at(epoch)
        add(kept, ["a", "b"], 1)
        kept.remove(["a"])
        kept.changes()
    assert len(kept._times) < 60


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["advance", "delta", "add", "add", "remove"]),
        st.integers(0, 6),
        st.sets(st.sampled_from("abcd"), min_size=1),
    ),
    max_size=50,
)


@settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps=STEPS)
def test_what_is_forgotten_does_not_depend_on_how_a_copy_came_to_be(backend: StateBackend, steps: list[Any]) -> None:
    kept, rebuilt, behind, now = opened(backend), opened(), opened(backend), 0
    model: dict[str, tuple[int, int]] = {}
    for what, number, some in steps:
        keys = sorted(some)
        if what == "advance":
            now += number
            gone = [key for key, (_, at) in model.items() if at + TTL <= now]
            model = {key: one for key, one in model.items() if key not in gone}
            assert kept.at(now) == rebuilt.at(now) == sorted(gone)
        elif what == "add":
            sums = [model.get(key, (0, 0))[0] + number for key in keys]
            model |= {key: (total, now) for key, total in zip(keys, sums, strict=True)}
            assert add(kept, keys, number) == add(rebuilt, keys, number) == sums
        elif what == "remove":
            known = [key for key in keys if key in model]
            model = {key: one for key, one in model.items() if key not in known}
            for one in (kept, rebuilt):
                one.remove(known)
        else:
            told = kept.changes()
            assert told == rebuilt.changes()
            if told is not None:
                behind.apply(told)
            rebuilt = opened()
            rebuilt.apply(kept.dump())
            rebuilt.at(now)
            rebuilt.forget_changes()
            assert packed(behind.dump()) == packed(kept.dump())
            assert {row["key"]: row["value"]["f0"] for row in kept.dump().to_pylist()} == {
                k: v for k, (v, _) in model.items()
            }
    for one in (kept, behind):
        one.clear_all()
