from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.state import slices
from headwater.state.accumulators import open_accumulators
from headwater.state.backend import StateBackend
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor
from headwater.state.slices import MAX_PARTS, Slice, first_bytes, parts_for
from headwater.state.table import KeyedLayout


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


def test_the_slices_of_keys_that_come_and_go_are_what_is_there(backend: StateBackend) -> None:
    dice, cursor, copied = random.Random(5), Cursor(), Cursor()
    declarations: list[Any] = [hw.ValueState("it", "string"), hw.ListState("listed", "int")]
    entries, handles = open_states(declarations, "step", pa.int64(), cursor, backend=backend)
    parts = [Slice(part, part + 1, 4) for part in range(4)]
    for number in range(30):
        for key in dice.sample(range(300), 40):
            cursor.entry = entries.entry(key)
            handle: Any = handles[dice.choice(["it", "listed"])]
            if dice.random() < 0.4:
                handle.clear()
            elif handle is handles["it"]:
                handle.set(f"v{number}")
            else:
                handle.add(number)
        for handle in handles.values():
            handle.changes()
        if number % 3:
            continue
        _, copies = open_states(declarations, "step", pa.int64(), copied)
        for name, kept in handles.items():
            sliced: Any = kept
            copy: Any = copies[name]
            for part in parts:
                copy.load(sliced.dump_slice(part))
            whole = kept.dump()
            assert copy.dump().equals(whole)
            assert (
                pa.concat_tables([copy.dump_slice(part) for part in parts])
                .sort_by("key")
                .equals(pa.concat_tables([sliced.dump_slice(part) for part in parts]).sort_by("key"))
            )
            assert sum(len(sliced.dump_slice(part)) for part in parts) == len(whole)


def test_the_slices_of_accumulators_that_come_and_go_are_what_is_there(backend: StateBackend) -> None:
    dice = random.Random(6)
    kept = open_accumulators("sums", pa.schema([("n", pa.int64())]), "step", pa.int64(), backend=backend)
    table: Any = kept.table
    for number in range(30):
        keys = dice.sample(range(300), 40)
        kept.update(keys, lambda _, __, number=number: pa.table({"n": [number] * 40}))
        if number % 2:
            kept.remove(keys[:25])
        table.changes()
        found = pa.concat_tables([table.dump_slice(Slice(part, part + 1, 4)) for part in range(4)])
        assert found.sort_by("key").to_pylist() == table.dump().to_pylist()


@pytest.mark.parametrize("kind", ["texts", "accumulators"])
def test_a_slice_costs_what_is_in_it_and_what_is_new(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "_PART_ENTRIES", 100)
    encoded, key_column = [0], KeyedLayout.key_column

    def counted(layout: KeyedLayout, keys: Sequence[Any]) -> pa.Array:
        encoded[0] += len(keys)
        return key_column(layout, keys)

    monkeypatch.setattr(KeyedLayout, "key_column", counted)
    cursor = Cursor()
    entries, handles = open_states([hw.ValueState("it", "string")], "step", pa.int64(), cursor)
    kept = open_accumulators("sums", pa.schema([("n", pa.int64())]), "step", pa.int64())
    table: Any = handles["it"] if kind == "texts" else kept.table

    def write(keys: Sequence[int]) -> None:
        for key in keys if kind == "texts" else ():
            cursor.entry = entries.entry(key)
            table.set("it")
        if kind == "accumulators":
            kept.update(keys, lambda *_: pa.table({"n": [1] * len(keys)}))
        table.changes()

    for start in range(0, 20_000, 1_000):
        write(range(start, start + 1_000))
    table.dump_slice(Slice(0, 1, 64))
    for part in range(1, 64):
        encoded[0] = 0
        write(range(20_000 + 10 * part, 20_010 + 10 * part))
        assert len(table.dump_slice(Slice(part, part + 1, 64))) < 500
        assert encoded[0] <= 10
