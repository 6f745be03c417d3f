"""Rows in sorted runs on disk: found by key whatever the runs are, and rewritten a bounded part at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.state.disk import cold
from headwater.state.disk.bound import Bound
from headwater.state.disk.cold import ColdRows
from headwater.state.disk.files import ArrowFiles
from headwater.state.disk.shelf import DiskShelf

ROW_BYTES = 24
"""A key, a value and a hash."""


def rows_of(keys: Any) -> pa.Table:
    return pa.table({"key": pa.array(keys, pa.int64()), "v0": pa.array(np.asarray(keys) * 2, pa.int64())})


def taken(rows: ColdRows, keys: list[int]) -> dict[int, int]:
    """What keys have, which do not have it any more then."""
    found: dict[int, int] = {}
    for places, some in rows.take(keys, pa.array(keys, pa.int64())):
        assert [keys[place] for place in places.tolist()] == some["key"].to_pylist()
        found.update(zip(some["key"].to_pylist(), some["v0"].to_pylist(), strict=True))
    return found


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each run had that was written."""
    sizes: list[int] = []

    class Counted(cold._Run):
        def __init__(self, rows: pa.Table, *args: Any) -> None:
            sizes.append(len(rows))
            super().__init__(rows, *args)

    monkeypatch.setattr(cold, "_Run", Counted)
    return sizes


@pytest.fixture
def shelf(tmp_path: Path) -> DiskShelf:
    """On which runs have 1,000 rows at most."""
    bound = Bound(0)
    shelf = DiskShelf(ArrowFiles("step", tmp_path), bound)
    bound.join(shelf)
    shelf.most_bytes = 1_000 * ROW_BYTES
    return shelf


def test_keys_have_what_was_put_whatever_runs_there_are(shelf: DiskShelf) -> None:
    rows, chance, known = ColdRows(shelf), np.random.default_rng(1), dict[int, int]()
    for _ in range(60):
        new = [key for key in chance.choice(5_000, 100, replace=False).tolist() if key not in known]
        rows.put(rows_of(new))
        rows.merge()
        known.update((key, 2 * key) for key in new)
        asked = chance.choice(5_000, 80, replace=False).tolist()
        assert taken(rows, asked) == {key: known.pop(key) for key in asked if key in known}
        assert len(rows) == len(known)
    left = pa.concat_tables(rows.rows()).sort_by("key")
    assert left["key"].to_pylist() == sorted(known)


def test_gaps_of_many_runs_go_one_run_at_a_time_where_few_rows_are_taken(shelf: DiskShelf, written: list[int]) -> None:
    rows = ColdRows(shelf)
    for number in range(20):
        rows.put(rows_of(range(number * 900, number * 900 + 900)))
    order = np.random.default_rng(2).permutation(18_000).tolist()
    for at in range(0, 17_000, 100):
        before = len(written)
        assert len(taken(rows, order[at : at + 100])) == 100
        assert sum(written[before:]) <= 500, "one run without its gaps"
    assert len(rows) == 1_000
    assert sum(len(run._is_gone) for run in rows._runs) < 2_500, "most gaps are gone"
    assert sum(written[20:]) <= 17_000, "a row is rewritten once for each that was taken"
