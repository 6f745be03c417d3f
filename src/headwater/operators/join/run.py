"""A run: rows in the order of their key's hash, then of time, then of arrival; found by binary search, many at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.batch import MIN_TIMESTAMP, Timestamps
from headwater.operators.join.contents import hash_rows
from headwater.state.keys import Hashes
from headwater.state.runs import HashRange
from headwater.state.shelf import KeptArrays, KeptTable, Shelf
from headwater.state.slices import Slice

Places = npt.NDArray[np.int64]
CHUNK_PAIRS = 1 << 18
"""About so many pairs are made at a time; bounds memory when a key has many rows."""


class End(NamedTuple):
    """Until when rows are dead: those of an earlier time, and of those of the same time the ones that had arrived."""

    until_ms: int = MIN_TIMESTAMP
    before_id: int = 0


class Columns(NamedTuple):
    """Rows, and for each its time, the hash of its key, its id (the number of its arrival) and whether it is marked."""

    rows: pa.Table
    times: Timestamps
    hashes: Hashes
    ids: Places
    marked: npt.NDArray[np.bool_]


class RowIds(NamedTuple):
    """Rows by their ids, and the hashes of their keys, which tell where they are."""

    ids: Places
    hashes: Hashes

    @classmethod
    def together(cls, parts: Sequence[RowIds]) -> RowIds:
        """Those of all parts."""
        nothing = cls(np.empty(0, np.int64), np.empty(0, np.uint64))
        return cls(*map(np.concatenate, zip(nothing, *parts, strict=True)))

    def take(self, which: Places | npt.NDArray[np.bool_]) -> RowIds:
        """Some of them."""
        return RowIds(self.ids[which], self.hashes[which])

    def distinct(self) -> RowIds:
        """Each once, in order."""
        return self.take(np.unique(self.ids, return_index=True)[1])


class Probes:
    """The hashes of keys that are looked for, in order: searching in order is several times faster."""

    def __init__(self, hashes: Hashes) -> None:
        self.order = np.argsort(hashes, kind="stable")
        self.sorted_hashes = hashes[self.order]

    def within(self, hashes: Hashes) -> slice:
        """Which of them, in order, are not before or behind all of these, which are in order too."""
        first = int(np.searchsorted(self.sorted_hashes, hashes[0]))
        return slice(first, int(np.searchsorted(self.sorted_hashes, hashes[-1], side="right")))


class Ranges(NamedTuple):
    """Which probes have rows, in order, and from and to which places each has them."""

    probes: Places
    begin: Places
    end: Places

    def of_probes(self, first: int, last: int) -> Ranges:
        """Those of the probes from the first up to the last."""
        begin, end = np.searchsorted(self.probes, [first, last])
        return Ranges(self.probes[begin:end], self.begin[begin:end], self.end[begin:end])

    def in_order(self) -> Ranges:
        """Where probes are not in order yet."""
        order = np.argsort(self.probes)
        return Ranges(self.probes[order], self.begin[order], self.end[order])


class Run:
    """Rows in that order. Only `marked` and `gone` ever change."""

    def __init__(self, columns: Columns, order: Places, by_time: Places, shelf: Shelf) -> None:
        """`by_time` has the places of rows, as they are here, in the order of time, then of arrival."""
        self._shelf = shelf
        times = columns.times[order]
        together = columns.rows.combine_chunks()  # from several chunks rows are taken far more slowly
        self._rows = KeptTable(together.take(pa.array(order)).combine_chunks(), shelf)
        self._columns = KeptArrays(shelf, times, columns.hashes[order], columns.ids[order], by_time)
        self.marked = columns.marked[order] if columns.marked.any() else np.zeros(len(order), np.bool_)
        """Which rows are marked. It stays in memory, where an array that nobody has written to takes none."""
        self.gone: npt.NDArray[np.bool_] | None = None
        """Which rows were taken out, once any was."""
        self.gone_count = 0
        self._earliest_ms = int(times[by_time[0]])

    @classmethod
    def of(cls, columns: Columns, shelf: Shelf) -> Run:
        """The run of rows that come in any order."""
        early = _by_time(columns.times, columns.ids)
        order = early[np.argsort(columns.hashes[early], kind="stable")]
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return cls(columns, order, place[early], shelf)

    def __len__(self) -> int:
        return len(self.marked)

    @property
    def size_bytes(self) -> int:
        return int(self.rows.nbytes) + sum(array.nbytes for array in self._columns.arrays)

    @property
    def rows(self) -> pa.Table:
        return self._rows.table

    @property
    def times(self) -> Timestamps:
        return self._columns.arrays[0]

    @property
    def hashes(self) -> Hashes:
        return self._columns.arrays[1]

    @property
    def ids(self) -> Places:
        return self._columns.arrays[2]

    @property
    def by_time(self) -> Places:
        """The places of rows in the order of time, then of arrival."""
        return self._columns.arrays[3]

    @cached_property
    def _sorted_times(self) -> KeptArrays:
        return KeptArrays(self._shelf, self.times[self.by_time])

    @property
    def sorted_times(self) -> Timestamps:
        return self._sorted_times.arrays[0]

    @cached_property
    def _by_id(self) -> KeptArrays:
        """The ids in order, and the places they are of."""
        order = np.argsort(self.ids, kind="stable")
        return KeptArrays(self._shelf, self.ids[order], order)

    @cached_property
    def _by_content(self) -> KeptArrays:
        """The hashes of whole rows in order, and the places they are of."""
        hashes = hash_rows(self.rows)
        order = np.argsort(hashes, kind="stable")
        return KeptArrays(self._shelf, hashes[order], order)

    @cached_property
    def _keys(self) -> KeptArrays:
        """The distinct hashes, and for each row one number that orders rows as (hash, time) does."""
        is_first = np.concatenate([[True], self.hashes[1:] != self.hashes[:-1]])
        ranks = np.cumsum(is_first) - 1
        is_later = np.concatenate([[False], self.sorted_times[1:] != self.sorted_times[:-1]])
        earlier = np.empty(len(self), np.int64)
        earlier[self.by_time] = np.maximum.accumulate(np.where(is_later, np.arange(len(self)), 0))
        return KeptArrays(self._shelf, self.hashes[is_first], ranks * (len(self) + 1) + earlier)

    def of_keys(self, probes: Probes) -> Ranges:
        """The rows of each probe."""
        near = probes.within(self.hashes)
        asked, hashes = probes.order[near], probes.sorted_hashes[near]
        begin = np.searchsorted(self.hashes, hashes)
        hits = np.flatnonzero(self.hashes[begin] == hashes)
        return Ranges(asked[hits], begin[hits], np.searchsorted(self.hashes, hashes[hits], side="right")).in_order()

    def between(self, probes: Probes, low: Timestamps, high: Timestamps) -> Ranges:
        """The rows of each probe that have times from `low` to `high`."""
        known, numbers = self._keys.arrays
        near = probes.within(known)
        asked, hashes = probes.order[near], probes.sorted_hashes[near]
        rank = np.searchsorted(known, hashes)
        hits = np.flatnonzero(known[rank] == hashes)
        asked, first = asked[hits], rank[hits] * (len(self) + 1)
        lowest = np.searchsorted(self.sorted_times, low[asked])
        highest = np.searchsorted(self.sorted_times, high[asked], side="right")
        begin, end = np.searchsorted(numbers, first + lowest), np.searchsorted(numbers, first + highest)
        some = end > begin
        return Ranges(asked[some], begin[some], end[some]).in_order()

    def places_of(self, ids: Places) -> Places:
        """The places of those ids that are here."""
        known, order = self._by_id.arrays
        at = np.minimum(np.searchsorted(known, ids), len(self) - 1)
        places: Places = order[at[known[at] == ids]]
        return places

    def like(self, hashes: Hashes) -> tuple[Places, Places]:
        """Every (probe, place) where the hash of the whole row is the probe's."""
        known, order = self._by_content.arrays
        probes, at = expand(np.searchsorted(known, hashes), np.searchsorted(known, hashes, side="right"))
        return probes, order[at]

    def take_out(self, places: Places) -> None:
        """Let rows that are alive be gone."""
        if self.gone is None:
            self.gone = np.zeros(len(self), np.bool_)
        self.gone[places] = True
        self.gone_count += len(places)

    def died(self, end: End) -> int:
        """How many rows are dead: those that come first by time."""
        if end.until_ms < self._earliest_ms:
            return 0
        first, last = (int(np.searchsorted(self.sorted_times, end.until_ms, side=side)) for side in ("left", "right"))
        return first + int(np.searchsorted(self.ids[self.by_time[first:last]], end.before_id))

    def alive(self, places: Places, end: End) -> npt.NDArray[np.bool_]:
        """Which of the rows at these places are neither dead nor gone."""
        times = self.times[places]
        alive: npt.NDArray[np.bool_] = (times > end.until_ms) | (
            (times == end.until_ms) & (self.ids[places] >= end.before_id)
        )
        return alive if self.gone is None else alive & ~self.gone[places]

    def without_dead(self, end: End) -> Run | None:
        """The rows that are neither dead nor gone; None when there are none."""
        alive = self.alive(np.arange(len(self)), end)
        if not alive.any():
            return None
        place = np.cumsum(alive) - 1
        columns = Columns(self.rows, self.times, self.hashes, self.ids, self.marked)
        return Run(columns, np.flatnonzero(alive), place[self.by_time[alive[self.by_time]]], self._shelf)

    def columns(self, part: Slice | HashRange, end: End) -> Columns:
        """The rows whose hashes fall into a part and that are neither dead nor gone, with what belongs to them."""
        first, last = part.within(self.hashes)
        if self.gone is None and not self.died(end):
            at = slice(first, last)
            rows = self.rows.slice(first, last - first)
            return Columns(rows, self.times[at], self.hashes[at], self.ids[at], self.marked[at])
        places = np.arange(first, last)
        places = places[self.alive(places, end)]
        rows = self.rows.take(pa.array(places))
        return Columns(rows, self.times[places], self.hashes[places], self.ids[places], self.marked[places])


def _by_time(times: Timestamps, ids: Places) -> Places:
    """The order of time, then of arrival; rows that have just arrived are nearly in it."""
    if (ids[1:] > ids[:-1]).all():
        return np.argsort(times, kind="stable")
    return np.lexsort((ids, times))


def merged(parts: Sequence[Columns]) -> Columns:
    """Rows together."""
    rows, *others = zip(*parts, strict=True)
    return Columns(pa.concat_tables(rows), *(np.concatenate(arrays) for arrays in others))


def expand(begin: Places, end: Places) -> tuple[Places, Places]:
    """For ranges of places, one for each probe: every (probe, place)."""
    counts = end - begin
    probes = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    return probes, np.arange(int(counts.sum())) + np.repeat(begin - before, counts)


def chunks(counts: Places) -> Iterator[tuple[int, int]]:
    """Ranges of probes with about so many pairs each; a single probe is not divided."""
    total = np.cumsum(counts)
    first = 0
    while first < len(counts):
        before = int(total[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(total, before + CHUNK_PAIRS, side="right")))
        yield first, last
        first = last
