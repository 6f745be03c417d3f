"""What state is said to take: by what was written of it, and the same on a copy."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.descriptors import StateDeclaration
from headwater.state.backend import StateBackend
from headwater.state.handles.opening import open_states
from headwater.state.memory import Cursor
from headwater.state.table import PUT, REMOVE, rows_of
from headwater.state.weight import Weight


def written(values: list[str | None]) -> pa.Table:
    """A change table: texts are put, None is removed."""
    ops = pa.array([REMOVE if value is None else PUT for value in values], pa.int8())
    return pa.table(
        {"op": ops, "key": pa.array(range(len(values)), pa.int64()), "value": pa.array(values, pa.string())}
    )


def test_a_row_takes_what_rows_that_were_written_took() -> None:
    weight = Weight(16)
    assert weight.of(10) == 160  # what types tell, before anything was written
    weight.see(written(["x" * 100] * 50), 50)
    assert weight.of(50) == pytest.approx(50 * (100 + 8 + 4), abs=64)


def test_what_is_removed_says_nothing_of_the_size_of_what_stays() -> None:
    weight = Weight(16)
    weight.see(written(["x" * 100, *[None] * 99]), 1)
    assert weight.of(1) == pytest.approx(112, abs=16)
    weight.see(written([None] * 5), 1)
    assert weight.of(1) == pytest.approx(112, abs=16)


def test_newer_rows_take_the_place_of_older_ones_as_far_as_so_many_are_kept() -> None:
    weight = Weight(16)
    for size in [100] * 5 + [1000] * 5:
        weight.see(written(["x" * size] * 2000), 2000)
    assert weight.of(1) > 900


def turn(table: Any, entries: Any, cursor: Cursor, step: int) -> None:
    """Change the state of some keys, in all ways there are."""
    for number in range(12):
        cursor.entry = entries.entry(f"key {number % 5}")
        if isinstance(table_kind(table), hw.MapState):
            table.put(f"entry {(number * step) % 7}", number)
            if number % 4 == step % 4:
                table.remove(f"entry {number % 7}")
        else:
            table.add_all(range(number % 3 + 1))
            if number % 6 == step:
                table.update([1, 2])
        if number % 11 == step:
            table.clear()


def table_kind(table: Any) -> StateDeclaration:
    return hw.MapState("it", "string", "bigint") if hasattr(table, "put") else hw.ListState("it", "bigint")


@pytest.mark.parametrize("ttl", [None, hw.ttl("10 ms")])
@pytest.mark.parametrize("kind", ["map", "list"])
def test_the_elements_of_all_entries_are_counted(kind: str, ttl: Any, backend: StateBackend) -> None:
    declaration: StateDeclaration = (
        hw.MapState("it", "string", "bigint", ttl=ttl) if kind == "map" else hw.ListState("it", "bigint", ttl=ttl)
    )
    cursor = Cursor()
    entries, tables = open_states([declaration], "step", pa.string(), cursor, backend=backend)
    table: Any = tables["it"]
    copied = open_states([declaration], "step", pa.string(), Cursor())[1]
    for step in range(6):
        if ttl is not None:
            table.advance(4 * step)
        turn(table, entries, cursor, step)
        changes = table.changes()
        if changes is not None:
            copied["it"].apply(changes)
        assert rows_of(table) == len(table.dump()) == rows_of(copied["it"])
    table.clear_all()
    assert rows_of(table) == 0
