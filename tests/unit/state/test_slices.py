from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.state.accumulators import open_accumulators
from headwater.state.backend import StateBackend
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor
from headwater.state.slices import MAX_PARTS, Slice, first_bytes, parts_for


@pytest.mark.parametrize(("entries", "parts"), [(0, 1), (65_536, 1), (65_537, 2), (1_000_000, 16), (10**9, MAX_PARTS)])
def test_the_number_of_parts_goes_by_the_entries(entries: int, parts: int) -> None:
    assert parts_for(entries) == parts


@pytest.mark.parametrize("count", [1, 2, 64, MAX_PARTS])
def test_each_key_falls_into_one_part(count: int) -> None:
    keys = pa.array([None, *map(str, range(2_000))])
    found = sum(Slice(part, part + 1, count).has(keys).astype(int) for part in range(count))
    assert set(found.tolist()) == {1}
    assert Slice(0, count, count).has(keys).all()


def test_the_part_of_a_key_is_part_of_the_format() -> None:
    assert first_bytes(pa.array([1, 2, 3, 42])).tolist() == [156, 211, 215, 220]
    assert first_bytes(pa.array(["a", "b", None])).tolist() == [102, 230, 88]


def test_the_slices_of_a_state_are_its_dump(backend: StateBackend) -> None:
    cursor = Cursor()
    declarations: list[Any] = [hw.ValueState("it", "string"), hw.ListState("listed", "int")]
    entries, handles = open_states(declarations, "step", pa.int64(), cursor, backend=backend)
    for key in range(500):
        cursor.entry = entries.entry(key)
        handles["it"].set(f"v{key}")  # type: ignore[attr-defined]
        handles["listed"].add_all([key, key + 1])  # type: ignore[attr-defined]
    for handle in handles.values():
        handle.forget_changes()
    parts = [Slice(0, 3, 16), Slice(3, 4, 16), Slice(4, 16, 16)]
    for handle in handles.values():
        found = [handle.dump_slice(part) for part in parts]  # type: ignore[attr-defined]
        assert all(len(one) for one in found)
        whole = pa.concat_tables(found).sort_by("key")
        assert whole.to_pylist() == handle.dump().to_pylist()


def test_the_slices_of_accumulators_are_their_dump() -> None:
    kept = open_accumulators("sums", pa.schema([("n", pa.int64())]), "step", pa.int64())
    kept.update(list(range(500)), lambda known, rows: pa.table({"n": pa.array(range(500))}))
    table: Any = kept.table
    found = [table.dump_slice(Slice(part, part + 1, 4)) for part in range(4)]
    assert pa.concat_tables(found).sort_by("key").to_pylist() == table.dump().to_pylist()
