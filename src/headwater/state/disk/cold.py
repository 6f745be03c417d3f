"""Rows by key on disk, of which each key has one at most: sorted runs, looked through for many keys at once.

A row that is taken leaves a gap. Gaps go when runs are merged, and when a run has more of them than rows. What is rewritten at
a time is bounded: the runs of one merge, and for gaps about as many rows as were taken, or one run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.rows import decode
from headwater.state.keys import Hashes, hash_keys
from headwater.state.shelf import KeptArrays, KeptTable, Shelf, due_for_merge
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

    def find(self, hashes: Hashes, keys: Sequence[Any], which: Places) -> tuple[Places, Places]:
        """Which of these keys, given by hash in order, have a row here, and where."""
        known = self._hashes.arrays[0]
        begin = np.searchsorted(known, hashes)
        hits = np.flatnonzero(known[np.minimum(begin, len(known) - 1)] == hashes)
        begin = begin[hits]
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

    def rows(self, part: Slice | None = None) -> tuple[pa.Table, Hashes]:
        """The rows that are left, of keys that fall into a part, if one is given."""
        if part is None and self.left == len(self._is_gone):
            return self._rows.table, self._hashes.arrays[0]
        hashes, first, last = self._hashes.arrays[0], 0, len(self._is_gone)
        if part is not None:
            first, last = part.within(hashes)
        left = first + np.flatnonzero(~self._is_gone[first:last])
        return self._rows.table.take(pa.array(left)), hashes[left]


class ColdRows:
    """Tables with a column `key`, by key."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._runs: list[_Run] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def put(self, rows: pa.Table) -> None:
        """Keep rows of keys that have none here."""
        if not len(rows):
            return
        self._runs.append(_Run(rows, hash_keys(rows["key"]), self._shelf))

    def merge(self) -> None:
        """Have few runs. Whoever has put rows forgets them before: a disk that is full leaves all of them here."""
        if count := due_for_merge(self._runs, self._shelf):
            self._runs[-count:] = [self._rewritten(self._runs[-count:])]

    def take(self, keys: Sequence[Any], column: pa.Array) -> Iterator[tuple[Places, pa.Table]]:
        """Take the rows of keys out, given as values and as a column: which keys have some, and these."""
        hashes = hash_keys(column)
        which = np.argsort(hashes, kind="stable")
        hashes = hashes[which]
        for run in self._runs:
            at, places = run.find(hashes, keys, which)
            if len(at):
                yield which[at], run.take(places)
                hashes, which = np.delete(hashes, at), np.delete(which, at)
        self._tidy(len(keys) - len(which))

    def _tidy(self, taken: int) -> None:
        """Have few gaps. Runs have as many when they were written together; so only some are rewritten after a take."""
        kept = [run for run in self._runs if len(run)]
        for at, run in enumerate(kept):
            if taken > 0 and run.is_mostly_gaps:
                taken -= len(run)
                kept[at] = self._rewritten([run])
        self._runs = kept

    def rows(self, part: Slice | None = None) -> list[pa.Table]:
        """All rows, of keys that fall into a part, if one is given."""
        return [run.rows(part)[0] for run in self._runs]

    def clear(self) -> None:
        """Forget all rows."""
        self._runs = []

    def _rewritten(self, runs: Sequence[_Run]) -> _Run:
        """Runs as one, without gaps."""
        tables, hashes = zip(*(run.rows() for run in runs), strict=True)
        return _Run(pa.concat_tables(tables), np.concatenate(hashes), self._shelf)


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other)
