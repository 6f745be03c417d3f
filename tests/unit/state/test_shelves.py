"""Columns on a shelf: they move to files without names, the first ones first, and stay what they are."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import StateError
from headwater.operators.join.keys import keys_in
from headwater.operators.join.run import Columns, End, RowIds, Run
from headwater.operators.join.store import RowStore
from headwater.state.disk.bound import Bound
from headwater.state.disk.files import ArrowFiles
from headwater.state.disk.shelf import DiskShelf
from headwater.state.shelf import IN_MEMORY, KeptArrays, KeptTable

MIB = 1 << 20


def shelf_in(folder: Path, size_bytes: int) -> tuple[DiskShelf, Bound]:
    bound = Bound(size_bytes)
    shelf = DiskShelf(ArrowFiles("step", folder), bound)
    bound.join(shelf)
    return shelf, bound


def numbers(count: int) -> pa.Table:
    return pa.table({"n": pa.array(np.arange(count)), "s": [f"text {n}" if n % 3 else None for n in range(count)]})


def open_files(folder: Path) -> list[str]:
    """The files in a folder that this process has open or mapped; those without names are there too."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    return [line.split(maxsplit=5)[5] for line in maps if str(folder) in line]


def test_what_was_put_first_goes_first_and_no_more_than_must(tmp_path: Path) -> None:
    shelf, bound = shelf_in(tmp_path, 8 * MIB)
    kept = [KeptArrays(shelf, np.full(MIB // 8, n)) for n in range(6)]
    assert shelf.held_bytes <= bound.size_bytes * Bound.ENTRIES
    is_writable = [piece.arrays[0].flags.writeable for piece in kept]
    assert is_writable == sorted(is_writable), "the last ones are those in memory"
    assert True in is_writable
    assert [int(piece.arrays[0].sum()) for piece in kept] == [n * (MIB // 8) for n in range(6)]


def test_tables_are_the_same_from_files_and_files_have_no_names_and_go_with_their_readers(tmp_path: Path) -> None:
    shelf, _ = shelf_in(tmp_path, 0)
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    kept = [KeptTable(numbers(count), shelf) for count in (1, 1000, 7)]
    assert shelf.held_bytes == 0
    assert [one.table for one in kept] == [numbers(count) for count in (1, 1000, 7)]
    assert list(tmp_path.iterdir()) == []
    assert len(open_files(tmp_path)) == 3
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors, "a worker may have few of them"
    rows = kept[1].table.slice(500, 2)
    del kept
    gc.collect()
    assert len(open_files(tmp_path)) == 1, "the rows that are still read keep theirs"
    assert rows.column("n").to_pylist() == [500, 501]


def test_a_piece_that_nobody_has_takes_no_room(tmp_path: Path) -> None:
    shelf, _ = shelf_in(tmp_path, 64 * MIB)
    piece = KeptTable(numbers(1000), shelf)
    assert shelf.held_bytes == numbers(1000).nbytes
    del piece
    assert shelf.held_bytes == 0


def test_a_folder_that_is_gone_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    shelf, _ = shelf_in(tmp_path / "gone", 0)
    with pytest.raises(
        StateError, match=r"step 'step' cannot keep its state in .*gone.*run the job with state_backend"
    ):
        KeptTable(numbers(1), shelf)


def test_runs_on_disk_are_merged_up_to_a_size_and_rows_are_found_all_the_same(tmp_path: Path) -> None:
    shelf, _ = shelf_in(tmp_path, 0)
    shelf.most_bytes = 20_000
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    on_disk, in_memory = RowStore(schema, ["k"], shelf), RowStore(schema, ["k"], IN_MEMORY)
    chance = np.random.default_rng(1)
    for epoch in range(60):
        rows = pa.table([pa.array(chance.integers(0, 50, 40)), pa.array(np.arange(40))], schema=schema)
        keys = keys_in(rows, ["k"])
        for store in (on_disk, in_memory):
            store.add(rows, np.full(40, epoch), keys)
        found, expected = (pa.concat_tables([f.rows for f in s.find(keys)]) for s in (on_disk, in_memory))
        assert found == expected
    assert len(list(on_disk._runs)) > len(list(in_memory._runs))
    assert all(run.size_bytes <= shelf.most_bytes for run in on_disk._runs)
    assert on_disk.dump() == in_memory.dump()


def test_runs_of_a_join_lose_what_was_taken_out_one_at_a_time_where_few_rows_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema, rewritten, without_dead = pa.schema([("k", pa.int64())]), [0], Run.without_dead

    def counted(run: Run, end: End) -> Run | None:
        left = without_dead(run, end)
        rewritten[0] += 0 if left is None else len(left)
        return left

    monkeypatch.setattr(Run, "without_dead", counted)
    rows = pa.table([pa.array(np.arange(900))], schema=schema)
    keys = keys_in(rows, ["k"])
    columns = Columns(rows, np.zeros(900, np.int64), keys.hashes, np.arange(900), np.zeros(900, np.bool_))
    monkeypatch.setattr(IN_MEMORY, "most_bytes", Run.of(columns, IN_MEMORY).size_bytes)
    store = RowStore(schema, ["k"])
    for _ in range(20):
        store.add(rows, np.zeros(900, np.int64), keys)
    order = np.random.default_rng(2).permutation(18_000)
    for at in range(0, 17_000, 100):
        before = rewritten[0]
        some = order[at : at + 100]
        store.remove(RowIds(some, keys.hashes[some % 900]))
        assert rewritten[0] - before <= 500, "one run without what is gone"
    assert len(store) == 1_000
    assert sum(map(len, store._runs)) < 3_000, "most of what is gone has left"
    assert rewritten[0] <= 17_000, "a row is rewritten once for each that was taken out"
