"""Rows by key on disk, of which each key has one at most: sorted runs, looked through for many keys at once.

A row that is taken leaves a gap. Gaps go when runs are merged, and when a run has more of them than rows. What is rewritten at
a time is bounded, as `state/runs.py` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.rows import decode
from headwater.state.keys import Hashes, hash_keys
from headwater.state.runs import ALL_HASHES, HashRange, Runs
from headwater.state.shelf import KeptArrays, KeptTable, Shelf
from headwater.state.slices import Slice

Places = npt.NDArray[np.int64]


class _Run:
    """Rows in the order of the hashes of their keys."""

    def __init__(self, rows: pa.Table, hashes: Hashes, shelf: Shelf) -> None:
        order = np.argsort(hashes, kind="stable")
        together = rows.combine_chunks()  # from several chunks rows are taken far more slowly
        self._rows = KeptTable(together.take(pa.array(order)), shelf)
        self._hashes = KeptArrays(shelf, hashes[order])
        self._is_gone = np.zeros(len(order), np.bool_)
        """Which were taken. It stays in memory, a byte a row."""
        self.left = len(order)

    def __len__(self) -> int:
        return self.left

    @property
    def size_bytes(self) -> int:
        return int(self._rows.table.nbytes) + len(self._is_gone) * 8

    @property
    def is_mostly_gaps(self) -> bool:
        return 2 * self.left < len(self._is_gone)

    @property
    def hashes(self) -> Hashes:
        return self._hashes.arrays[0]

    def find(self, hashes: Hashes, keys: Sequence[Any], which: Places) -> tuple[Places, Places]:
        """Which of these keys, given by hash in order, have a row here, and where."""
        known = self.hashes
        first, last = HashRange(int(known[0]), int(known[-1])).within(hashes)
        begin = np.searchsorted(known, hashes[first:last])
        hits = np.flatnonzero(known[begin] == hashes[first:last])
        begin, hits = begin[hits], first + hits
        counts = np.searchsorted(known, hashes[hits], side="right") - begin
        asked = np.repeat(hits, counts)
        places = np.arange(len(asked)) + np.repeat(begin - np.cumsum(counts) + counts, counts)
        there = ~self._is_gone[places]
        asked, places = asked[there], places[there]
        found = decode(self._rows.table["key"].take(pa.array(places)))
        same = np.fromiter(map(_equal, found, map(keys.__getitem__, which[asked].tolist())), np.bool_, len(found))
        return asked[same], places[same]

    def take(self, places: Places) -> pa.Table:
        """Take rows out."""
        self._is_gone[places] = True
        self.left -= len(places)
        return self._rows.table.take(pa.array(places))

    def rows(self, part: Slice | HashRange) -> tuple[pa.Table, Hashes]:
        """The rows that are left, of keys that fall into a part."""
        first, last = part.within(self.hashes)
        if self.left == len(self._is_gone):
            return self._rows.table.slice(first, last - first), self.hashes[first:last]
        left = first + np.flatnonzero(~self._is_gone[first:last])
        return self._rows.table.take(pa.array(left)), self.hashes[left]


class ColdRows:
    """Tables with a column `key`, by key."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._runs: Runs[_Run] = Runs(shelf)

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def put(self, rows: pa.Table) -> None:
        """Keep rows of keys that have none here."""
        if not len(rows):
            return
        self._runs.put(_Run(rows, hash_keys(rows["key"]), self._shelf))

    def merge(self) -> None:
        """Have few runs. Whoever has put rows forgets them before: a disk that is full leaves all of them here."""
        self._runs.merge(self._rewritten)

    def take(self, keys: Sequence[Any], column: pa.Array) -> Iterator[tuple[Places, pa.Table]]:
        """Take the rows of keys out, given as values and as a column: which keys have some, and these."""
        hashes = hash_keys(column)
        which = np.argsort(hashes, kind="stable")
        hashes = hashes[which]
        for run in list(self._runs):
            at, places = run.find(hashes, keys, which)
            if len(at):
                yield which[at], run.take(places)
                hashes, which = np.delete(hashes, at), np.delete(which, at)
        self._runs.tidy(len(keys) - len(which), lambda run: run.is_mostly_gaps, self._rewritten)

    def rows(self, part: Slice | None = None) -> list[pa.Table]:
        """All rows, of keys that fall into a part, if one is given."""
        return [run.rows(ALL_HASHES if part is None else part)[0] for run in self._runs]

    def clear(self) -> None:
        """Forget all rows."""
        self._runs.clear()

    def _rewritten(self, runs: Sequence[_Run], part: HashRange) -> _Run | None:
        """What is left of runs within a range as one, without gaps."""
        tables, hashes = zip(*(run.rows(part) for run in runs), strict=True)
        rows = pa.concat_tables(tables)
        return _Run(rows, np.concatenate(hashes), self._shelf) if len(rows) else None


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other)
