"""What state is said to take: by what was written of it, and the same on a copy."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater.descriptors import StateDeclaration
from headwater.state.backend import StateBackend
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor
from headwater.state.sampled_weight import SampledWeight, sizes_of
from headwater.state.table import CLEAR, PUT, REMOVE, rows_of
from headwater.state.weight import MeanWeight, Weight, weight_of


def written(values: list[str | None], keys: list[int] | None = None) -> pa.Table:
    """A change table: texts are put, None is removed."""
    ops = pa.array([REMOVE if value is None else PUT for value in values], pa.int8())
    keys = list(range(len(values))) if keys is None else keys
    return pa.table({"op": ops, "key": pa.array(keys, pa.int64()), "value": pa.array(values, pa.string())})


def weight_of_texts() -> Weight:
    found = weight_of(written([]).schema, 16)
    assert isinstance(found, SampledWeight)
    return found


def text_bytes(*lengths: int) -> int:
    """What rows with texts of these lengths take."""
    return sum(8 + 4 + length for length in lengths)


def test_before_anything_was_written_a_row_takes_what_types_tell() -> None:
    assert weight_of_texts().of(10) == 160


def test_few_rows_are_all_counted() -> None:
    weight = weight_of_texts()
    weight.see(written(["x" * 100] * 50), 50)
    weight.see(written(["x" * 10, None], keys=[7, 8]), 49)
    assert weight.of(49) == text_bytes(*[100] * 48, 10)


def test_keys_that_are_written_again_and_again_count_as_often_as_they_are_kept() -> None:
    weight = weight_of_texts()
    weight.see(written(["x" * 10] * 20_000), 20_000)
    for _ in range(200):
        weight.see(written(["x" * 10_000] * 20), 20_000)
    true = text_bytes(*[10] * 19_980, *[10_000] * 20)
    assert weight.of(20_000) == pytest.approx(true, rel=0.01)
    for _ in range(200):
        weight.see(written([""] * 20), 20_000)
    assert weight.of(20_000) == pytest.approx(text_bytes(*[10] * 19_980, *[0] * 20), rel=0.01)


@pytest.mark.parametrize("seed", range(4))
def test_a_few_huge_rows_are_not_left_to_chance(seed: int) -> None:
    dice = random.Random(seed)
    lengths = [min(int(10 * dice.paretovariate(0.8)), 1_000_000) for _ in range(50_000)]
    weight = weight_of_texts()
    for start in range(0, len(lengths), 10_000):
        part = range(start, start + 10_000)
        weight.see(written(["x" * lengths[key] for key in part], list(part)), start + 10_000)
    assert weight.of(len(lengths)) == pytest.approx(text_bytes(*lengths), rel=0.1)
    gone = [key for key in range(len(lengths)) if key % 5]
    weight.see(written([None] * len(gone), gone), 10_000)
    assert weight.of(10_000) == pytest.approx(text_bytes(*lengths[::5]), rel=0.25)


def test_a_sample_has_no_more_rows_than_it_may_whatever_is_written() -> None:
    weight = weight_of_texts()
    assert isinstance(weight, SampledWeight)
    for start in range(0, 60_000, 6_000):
        weight.see(written(["x" * 10] * 6_000, list(range(start, start + 6_000))), start + 6_000)
        assert len(weight) <= 2_048
    assert weight.of(60_000) == text_bytes(*[10] * 60_000)


def test_elements_that_leave_a_list_at_the_front_leave_the_sample() -> None:
    columns = [("op", pa.int8()), ("key", pa.int64()), ("index", pa.int64()), ("value", pa.string())]
    weight, held = weight_of(pa.schema(columns), 16), 8_000
    texts = ["x" * (at % 50 + (9_000 if at % 1_000 == 0 else 0)) for at in range(5 * held)]

    def tell(op: int, places: list[int], values: list[str | None], kept: int) -> None:
        ops, keys = [op] * len(places), [7] * len(places)
        weight.see(pa.table([ops, keys, places, values], schema=pa.schema(columns)), kept)

    tell(PUT, list(range(held)), list(texts[:held]), held)
    for start in range(held, len(texts), 500):
        tell(REMOVE, [500], [None], held - 500)
        tell(PUT, list(range(held - 500, held)), list(texts[start : start + 500]), held)
        true = sum(8 + 8 + 4 + len(text) for text in texts[start + 500 - held : start + 500])
        assert weight.of(held) == pytest.approx(true, rel=0.1)
    tell(CLEAR, [0], [None], 0)
    assert (weight.of(0), len(weight)) == (0, 0)  # type: ignore[arg-type]


def test_rows_of_one_size_and_rows_without_a_key_need_no_sample() -> None:
    numbers = pa.schema([("op", pa.int8()), ("key", pa.int64()), ("value", pa.float64())])
    of_joins = pa.schema([("@op", pa.int8()), ("@id", pa.int64()), ("key", pa.string())])
    assert [type(weight_of(schema, 16)) for schema in (numbers, of_joins)] == [MeanWeight, MeanWeight]


def test_what_is_removed_says_nothing_of_the_size_of_what_stays() -> None:
    weight = MeanWeight(16)
    weight.see(written(["x" * 100, *[None] * 99]), 1)
    assert weight.of(1) == pytest.approx(112, abs=16)
    weight.see(written([None] * 5), 1)
    assert weight.of(1) == pytest.approx(112, abs=16)


def test_newer_rows_take_the_place_of_older_ones_as_far_as_so_many_are_kept() -> None:
    weight = MeanWeight(16)
    for size in [100] * 5 + [1000] * 5:
        weight.see(written(["x" * size] * 2000), 2000)
    assert weight.of(1) > 900


@pytest.mark.parametrize(
    ("values", "dtype", "sizes"),
    [
        ([1, None], pa.int32(), [4, 4]),
        ([True, False], pa.bool_(), [1, 1]),
        (["ab", None, ""], pa.string(), [6, 4, 4]),
        ([["a", "bcd"], [], None], pa.list_(pa.string()), [4 + 5 + 7, 4, 4]),
        ([{"n": 1, "t": "ab"}, None], pa.struct([("n", pa.int64()), ("t", pa.string())]), [14, 12]),
        ([[("a", 1)], [("bc", 2), ("", 3)]], pa.map_(pa.string(), pa.int64()), [4 + 13, 4 + 14 + 12]),
    ],
)
def test_a_value_takes_what_its_columns_take(values: Any, dtype: pa.DataType, sizes: list[int]) -> None:
    column = pa.array(values, dtype)
    assert sizes_of(column).tolist() == sizes
    assert sizes_of(column.slice(1)).tolist() == sizes[1:]


def turn(table: Any, entries: Any, cursor: Cursor, step: int) -> None:
    """Change the state of some keys, in all ways there are."""
    for number in range(12):
        cursor.entry = entries.entry(f"key {number % 5}")
        if isinstance(table_kind(table), hw.MapState):
            table.put(f"entry {(number * step) % 7}", "x" * number)
            if number % 4 == step % 4:
                table.remove(f"entry {number % 7}")
        else:
            table.add_all("x" * length for length in range(number % 3 + 1))
            if number % 6 == step:
                table.update(["a", "bc"])
        if number % 11 == step:
            table.clear()


def bytes_of_rows(dump: pa.Table) -> int:
    return int(sum(np.sum(sizes_of(dump[name].combine_chunks())) for name in dump.column_names[1:]))


def table_kind(table: Any) -> StateDeclaration:
    return hw.MapState("it", "string", "string") if hasattr(table, "put") else hw.ListState("it", "string")


@pytest.mark.parametrize("ttl", [None, hw.ttl("10 ms")])
@pytest.mark.parametrize("kind", ["map", "list"])
def test_the_elements_of_all_entries_are_counted_and_weighed(kind: str, ttl: Any, backend: StateBackend) -> None:
    declaration: StateDeclaration = (
        hw.MapState("it", "string", "string", ttl=ttl) if kind == "map" else hw.ListState("it", "string", ttl=ttl)
    )
    cursor = Cursor()
    entries, tables = open_states([declaration], "step", pa.string(), cursor, backend=backend)
    table: Any = tables["it"]
    copied = open_states([declaration], "step", pa.string(), Cursor())[1]
    weight = weight_of(table.dump().schema, 16)
    for step in range(6):
        if ttl is not None:
            table.advance(4 * step)
        turn(table, entries, cursor, step)
        changes = table.changes()
        if changes is not None:
            copied["it"].apply(changes)
            weight.see(changes, rows_of(table))
        assert rows_of(table) == len(table.dump()) == rows_of(copied["it"])
        assert weight.of(rows_of(table)) == bytes_of_rows(table.dump())
    table.clear_all()
    assert rows_of(table) == 0
