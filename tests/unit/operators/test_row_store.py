"""What is found of the rows of a join does not depend on the runs that they are kept in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

from headwater.operators.join.keys import JoinKeys, keys_in
from headwater.operators.join.run import RowIds
from headwater.operators.join.store import Found, RowStore
from headwater.state.disk.bound import Bound
from headwater.state.disk.files import ArrowFiles
from headwater.state.disk.shelf import DiskShelf
from headwater.state.shelf import MemoryShelf
from headwater.state.slices import Slice

SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64())])
RUN_BYTES = 1_500
"""About 25 rows, so that runs settle and are cut."""


def shelves(folder: Path) -> list[Any]:
    """Large runs, small ones in memory, and small ones in files."""
    small, bound = MemoryShelf(), Bound(0)
    small.most_bytes = RUN_BYTES
    on_disk = DiskShelf(ArrowFiles("step", folder), bound)
    bound.join(on_disk)
    on_disk.most_bytes = RUN_BYTES
    return [MemoryShelf(), small, on_disk]


def shown(found: Found) -> list[Any]:
    facts = (found.probes, found.times, found.ids, found.hashes, found.marked)
    return [*(one.tolist() for one in facts), found.rows.to_pylist()]


class Same:
    """Stores with other runs each, of which all is the same."""

    def __init__(self, folder: Path) -> None:
        self.stores = [RowStore(SCHEMA, ["k"], shelf) for shelf in shelves(folder)]
        self.keys: list[str] = []

    def all(self, ask: Callable[[RowStore], Any]) -> Any:
        first, *others = [ask(store) for store in self.stores]
        for other in others:
            assert other == first
        return first

    def find(self, keys: JoinKeys, low: Any = None, high: Any = None) -> RowIds:
        """Find rows in all, which are the same; gives the names of them."""
        self.all(lambda store: [shown(part) for part in store.find(keys, low, high)])
        return RowIds.together([part.named for part in self.stores[0].find(keys, low, high)])

    def change(self, change: Callable[[RowStore], Any]) -> None:
        for store in self.stores:
            change(store)
        self.all(len)

    def rebuilt(self, folder: Path) -> None:
        """Have copies that were made from what the first has stored, slice by slice."""
        parts = [self.stores[0].dump_slice(Slice(at, at + 1, 4)) for at in range(4)]
        meta = self.stores[0].meta()
        self.stores = [RowStore(SCHEMA, ["k"], shelf) for shelf in shelves(folder)]
        for part in filter(len, parts):  # as the changelog does
            self.change(lambda store, part=part: store.load(part))
        self.change(lambda store: store.set_meta(meta))


def some_rows(chance: np.random.Generator, count: int, keys: int) -> tuple[pa.Table, JoinKeys]:
    names = [f"key {n}" if n else None for n in chance.integers(0, keys, count).tolist()]
    rows = pa.table([pa.array(names, pa.string()), pa.array(chance.integers(0, 4, count))], schema=SCHEMA)
    return rows, keys_in(rows, ["k"])


@pytest.mark.parametrize("keys", [2, 6, 300])
@examples(40)
@given(
    actions=st.lists(
        st.sampled_from(
            [
                "add",
                "add",
                "add",
                "find",
                "between",
                "latest",
                "equal",
                "remove",
                "mark",
                "expire",
                "changes",
                "rebuild",
            ]
        ),
        min_size=30,
        max_size=80,
    ),
    seed=st.integers(0, 1 << 30),
)
def test_rows_are_the_same_whatever_the_runs(
    keys: int, actions: list[str], seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    chance = np.random.default_rng(seed)
    same, folder = Same(tmp_path_factory.mktemp("rows")), tmp_path_factory.mktemp("again")
    for now, action in enumerate(actions):
        rows, asked = some_rows(chance, int(chance.integers(1, 40)), keys)
        times: npt.NDArray[np.int64] = chance.integers(now - 5, now + 5, len(rows))
        match action:
            case "add":
                marked = chance.random(len(rows)) < 0.3
                same.change(lambda store, add=(rows, times, asked, marked): store.add(*add))
            case "find":
                same.find(asked)
                same.all(lambda store, asked=asked: store.has(asked).tolist())
            case "between":
                same.find(asked, times - 3, times)
            case "latest":
                same.all(lambda store, asked=asked, times=times: shown(store.latest(asked, times)))
            case "equal":
                same.all(lambda store, rows=rows: shown(store.find_equal(rows)))
            case "remove" | "mark":
                named = same.find(asked).distinct()
                named = named.take(chance.random(len(named.ids)) < 0.7)
                if action == "remove":
                    same.change(lambda store, named=named: store.remove(named))
                else:
                    on = bool(chance.integers(0, 2))
                    same.change(lambda store, named=named, on=on: store.mark(named, on=on))
            case "expire":
                until = now - int(chance.integers(0, 8))
                died = [store.expire(until, unmarked=True) for store in same.stores]
                assert all(rows == died[0][0] and times.tolist() == died[0][1].tolist() for rows, times in died)
            case "changes":
                same.all(lambda store: store.changes())
            case "rebuild":
                same.change(lambda store: store.forget_changes())
                same.rebuilt(folder)
        same.all(lambda store: store.dump())
    assert [same.all(lambda store, at=at: store.dump_slice(Slice(at, at + 1, 4))) for at in range(4)]
