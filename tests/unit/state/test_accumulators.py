from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.data.schema import parse_type
from headwater.state.accumulators import Accumulators, open_accumulators
from headwater.state.backend import StateBackend
from headwater.state.columns import Places
from headwater.state.disk.accumulators import DiskAccumulators
from headwater.state.disk.backend import DiskBackend
from headwater.state.disk.bound import Bound
from headwater.state.disk.cold import ColdRows
from headwater.state.memory_backend import MEMORY

SCHEMA = pa.schema([("n.count", pa.int64()), ("last.value", pa.string())])


def opened(backend: StateBackend, key: str = "string") -> Accumulators:
    return open_accumulators("kept", SCHEMA, "step", parse_type(key), backend=backend)


def add(kept: Accumulators, keys: Sequence[Any], n: int, last: str | None) -> list[Any]:
    """Add n to each key; gives what was kept of each before."""
    before: list[Any] = [None] * len(keys)

    def fold(places: Places, table: pa.Table) -> pa.Table:
        assert table.schema == SCHEMA
        for place, row in zip(places.tolist(), table.to_pylist(), strict=True):
            before[place] = (row["n.count"], row["last.value"])
        counts = [n + (found[0] if found else 0) for found in before]
        return pa.table({"n.count": counts, "last.value": pa.array([last] * len(keys), pa.string())})

    now = kept.update(keys, fold)
    assert now["last.value"].to_pylist() == [last] * len(keys)
    return before


def test_each_key_has_its_accumulators(backend: StateBackend) -> None:
    kept = opened(backend)
    assert add(kept, ["a", "b"], 1, "x") == [None, None]
    assert add(kept, ["c", "b"], 2, None) == [None, (1, "x")]
    assert add(kept, ["a", "b", "c"], 0, "z") == [(1, "x"), (3, None), (2, None)]


def test_a_delta_has_each_key_once_in_the_order_of_its_first_write(backend: StateBackend) -> None:
    kept = opened(backend)
    assert kept.table.changes() is None
    add(kept, ["c", "a"], 1, "x")
    add(kept, ["b", "a"], 1, "y")
    changes = kept.table.changes()
    assert changes is not None
    assert changes.column("key").to_pylist() == ["c", "a", "b"]
    assert changes.column("value").to_pylist() == [{"f0": n, "f1": s} for n, s in ((1, "x"), (2, "y"), (1, "y"))]
    assert kept.table.changes() is None
    add(kept, ["a"], 1, None)
    changes = kept.table.changes()
    assert changes is not None
    assert changes.column("value").to_pylist() == [{"f0": 3, "f1": None}]
    assert len(kept.table) == 3


def test_a_copy_rebuilt_goes_on_with_the_same_bytes(backend: StateBackend) -> None:
    kept, copy, from_dump = opened(backend), opened(MEMORY), opened(MEMORY)
    for keys in (["d", "b"], ["a", "b", None], ["c"]):
        add(kept, keys, 1, "x")
        changes = kept.table.changes()
        assert changes is not None
        copy.table.apply(changes)
    from_dump.table.apply(kept.table.dump())
    assert from_dump.table.changes() is None
    for other in (copy, from_dump):
        assert other.table.dump().equals(kept.table.dump())
    add(kept, ["c", "a", "new"], 5, "y")
    changes = kept.table.changes()
    for other in (copy, from_dump):
        add(other, ["c", "a", "new"], 5, "y")
        found = other.table.changes()
        assert found is not None
        assert found.equals(changes)


def test_a_dump_is_in_the_order_of_keys(backend: StateBackend) -> None:
    kept = opened(backend)
    add(kept, ["b", None, "a"], 1, "x")
    dump = kept.table.dump()
    assert dump.column("key").to_pylist() == ["a", "b", None]
    assert set(dump.column("op").to_pylist()) == {0}


@pytest.mark.parametrize("keys", [[(1, "a"), (1, None), (2, "a")]])
def test_keys_of_several_columns(backend: StateBackend, keys: list[Any]) -> None:
    kept = opened(backend, "struct<x: bigint, y: string>")
    add(kept, keys, 1, "x")
    assert add(kept, keys, 1, "x") == [(1, "x")] * 3
    other = opened(MEMORY, "struct<x: bigint, y: string>")
    other.table.apply(kept.table.dump())
    assert add(other, keys[::-1], 1, "x") == [(2, "x")] * 3


def test_all_is_forgotten(backend: StateBackend) -> None:
    kept = opened(backend)
    add(kept, ["a"], 1, "x")
    kept.table.forget_changes()
    assert kept.table.changes() is None
    kept.table.clear_all()
    assert len(kept.table.dump()) == 0
    assert add(kept, ["a"], 1, "x") == [None]


def test_a_removed_key_is_told_and_starts_anew(backend: StateBackend) -> None:
    kept = opened(backend)
    add(kept, ["a", "b", "c"], 1, "x")
    kept.table.forget_changes()
    add(kept, ["c", "a"], 1, "y")
    kept.remove(["a"])
    changes = kept.table.changes()
    assert changes is not None
    assert changes.select(["op", "key"]).to_pylist() == [{"op": 0, "key": "c"}, {"op": 1, "key": "a"}]
    assert changes.column("value").to_pylist() == [{"f0": 2, "f1": "y"}, None]
    assert len(kept.table) == 2
    assert kept.table.dump().column("key").to_pylist() == ["b", "c"]
    assert add(kept, ["d", "a"], 1, "z") == [None, None]
    assert kept.table.dump().column("value").to_pylist() == [
        {"f0": n, "f1": s} for n, s in ((1, "z"), (1, "x"), (2, "y"), (1, "z"))
    ]


def test_a_key_that_comes_and_goes_between_two_deltas_is_not_told(backend: StateBackend) -> None:
    kept = opened(backend)
    add(kept, ["a"], 1, "x")
    kept.remove(["a"])
    assert kept.table.changes() is None
    add(kept, ["b"], 1, "x")
    kept.table.forget_changes()
    kept.remove(["b"])
    add(kept, ["c", "b"], 5, "y")
    kept.remove(["c"])
    changes = kept.table.changes()
    assert changes is not None
    assert changes.column("key").to_pylist() == ["b"]
    assert changes.column("value").to_pylist() == [{"f0": 5, "f1": "y"}]


def test_copies_of_what_comes_and_goes_stay_the_same(backend: StateBackend) -> None:
    kept, copy = opened(backend), opened(MEMORY)
    dice = random.Random(7)
    here: set[str] = set()
    for round_ in range(60):
        came = dice.sample("abcdefgh", dice.randrange(1, 6))
        add(kept, came, round_, dice.choice([None, "x", "yy"]))
        here.update(came)
        gone = dice.sample(sorted(here), dice.randrange(len(here) + 1))
        kept.remove(gone)
        here.difference_update(gone)
        if round_ % 3 == 0:
            changes = kept.table.changes()
            if changes is not None:
                copy.table.apply(changes)
            from_dump = opened(MEMORY)
            from_dump.table.apply(kept.table.dump())
            for other in (copy, from_dump):
                assert other.table.dump().equals(kept.table.dump())
                assert len(other.table) == len(here) == len(kept.table)
            kept, copy = (copy, from_dump) if backend is MEMORY else (kept, from_dump)


@pytest.mark.parametrize("dtype", [pa.int64(), pa.string()], ids=["numbers", "texts"])
def test_what_does_not_fit_memory_goes_to_disk_bit_by_bit(
    dtype: pa.DataType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema, bound = pa.schema([("n", pa.int64()), ("last", dtype)]), Bound(400_000)
    allowed, put, let_go = bound.size_bytes * bound.ENTRIES, ColdRows.put, []

    def counted(cold: ColdRows, rows: pa.Table) -> None:
        let_go.append(len(rows))
        put(cold, rows)

    monkeypatch.setattr(ColdRows, "put", counted)
    with closing(DiskBackend("step", tmp_path, bound)) as on_disk:
        kept, known = [open_accumulators("kept", schema, "step", pa.int64(), backend=one) for one in (on_disk, MEMORY)]
        chance = random.Random(1)
        for epoch in range(60):
            keys = chance.sample(range(3_000), 50)
            last = pa.array([f"{epoch}"] * 50, pa.string()).cast(dtype)

            def fold(places: Places, table: pa.Table, last: pa.Array = last) -> pa.Table:
                n = np.ones(50, np.int64)
                n[places] += table["n"].to_numpy()
                return pa.table({"n": n, "last": last})

            assert kept.update(keys, fold) == known.update(keys, fold)
            if epoch % 7 == 6:
                for one in (kept, known):
                    one.remove(keys[:20])
            assert kept.table.changes() == known.table.changes()
            assert isinstance(kept, DiskAccumulators)
            assert kept.held_bytes <= allowed
            assert len(let_go) <= epoch + 1
            assert len(kept._keys) < 1_000, "places are used again"
        assert len(let_go) > 10
        assert max(let_go) <= 100, "about what an epoch brings, not all"
        assert len(kept.table) == len(known.table)
        assert kept.table.dump() == known.table.dump()
