"""Windows that have fired and fire again for late rows: what they hold of the keys that came, for all of them together.

The cost is that of the rows that came, times the windows they are in, and not that of what the windows hold: in large
tables the rows of a key are found by its hash.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from headwater.data.batch import MIN_TIMESTAMP, Timestamps, flat
from headwater.operators.aggregation import Aggregation
from headwater.operators.grouping import Codes, group, stacked
from headwater.operators.keys import hash_columns
from headwater.operators.window.pieces import of_ranges
from headwater.operators.window.schedule import SliceSchedule
from headwater.operators.window.slices import SliceTable
from headwater.state.keys import Hashes
from headwater.state.shelf import KeptArrays, KeptTable, Shelf
from headwater.windows.assigners import Window

_SMALL_ROWS = 512
"""A table of so many rows is looked through whole, which takes less than looking a key up in it."""
AT_ONCE = 1 << 18
"""About so many results are computed at a time; bounds memory when many windows fire."""


@dataclass(frozen=True)
class Came:
    """Late rows of a slice, and the windows that have to fire for them."""

    rows: pa.Table
    windows: Sequence[Window]


@dataclass(frozen=True)
class _Indexed:
    """The hashes of a table's keys in order, and the row of each."""

    kept: KeptTable
    _in_order: KeptArrays

    @classmethod
    def of(cls, kept: KeptTable, width: int, shelf: Shelf) -> _Indexed:
        hashes = hash_columns([flat(column) for column in kept.table.columns[:width]])
        order = np.argsort(hashes, kind="stable")
        return cls(kept, KeptArrays(shelf, hashes[order], order))

    def find(self, hashes: Hashes) -> Codes:
        """The rows whose keys have one of these hashes, given in order."""
        known, rows = self._in_order.arrays
        starts = np.searchsorted(known, hashes)
        counts = np.searchsorted(known, hashes, "right") - starts
        ends = np.cumsum(counts)
        return np.sort(rows[np.repeat(starts - ends + counts, counts) + np.arange(ends[-1])])


class _Held:
    """The accumulators of some keys, by key and then by slice."""

    def __init__(self, accumulators: pa.Table, codes: Codes, starts: Timestamps) -> None:
        self.accumulators = accumulators
        self.since = np.arange(len(codes)) - np.searchsorted(codes, codes)
        """How many of its key are before each."""
        self._slices, ranks = np.unique(starts, return_inverse=True)
        self._order = codes * (len(self._slices) + 1) + ranks

    def places(self, codes: Codes, times: Timestamps) -> Codes:
        """For each key and time, the first place of the key that is of this time or later."""
        return np.searchsorted(self._order, codes * (len(self._slices) + 1) + np.searchsorted(self._slices, times))


class Updates:
    """Computes the updates of a step's windows."""

    def __init__(
        self, aggregation: Aggregation, width: int, schedule: SliceSchedule, slices: SliceTable, shelf: Shelf
    ) -> None:
        """The first columns of the slices' tables, `width` of them, are the key."""
        self._aggregation, self._width = aggregation, width
        self._schedule, self._slices, self._shelf = schedule, slices, shelf
        self.reset()

    def reset(self) -> None:
        """Forget what is known of the slices."""
        self._indexed: dict[int, dict[int, _Indexed]] = {}
        """For each slice its large tables, by place."""

    def forget(self, start: int) -> None:
        """A slice is gone."""
        self._indexed.pop(start, None)

    def of(self, came: Sequence[Came]) -> Iterator[list[tuple[Window, pa.Table]]]:
        """Windows by their end, each with the accumulators of the keys that came for it; so many that memory is bounded."""
        together = pa.concat_tables([one.rows for one in came]).combine_chunks()
        groups = group(together.columns[: self._width], len(together))
        keys = together.select(range(self._width)).take(pa.array(groups.first))
        windows = sorted({window for one in came for window in one.windows}, key=lambda w: (w.end, w.start))
        places = {window: place for place, window in enumerate(windows)}
        pairs, begin = [], 0
        for one in came:
            of_keys = np.unique(groups.codes[begin : begin + len(one.rows)])
            of_windows = np.array([places[window] for window in one.windows], np.int64)
            pairs.append((of_windows[:, None] * len(groups) + of_keys).ravel())
            begin += len(one.rows)
        wanted = np.unique(np.concatenate(pairs))
        held = self._held(windows, keys, len(groups))
        for start in range(0, len(wanted), AT_ONCE):
            yield self._merged(held, windows, keys, *np.divmod(wanted[start : start + AT_ONCE], len(groups)))

    def _merged(
        self, held: _Held, windows: Sequence[Window], keys: pa.Table, of_windows: Codes, of_keys: Codes
    ) -> list[tuple[Window, pa.Table]]:
        edges = np.array(windows, np.int64)[of_windows]
        begins, ends = (held.places(of_keys, edges[:, side]) for side in (0, 1))
        accumulators = of_ranges(self._aggregation, held.accumulators, held.since, ends - 1, ends - begins)
        columns = [*keys.take(pa.array(of_keys)).columns, *accumulators.columns]
        table = pa.Table.from_arrays(columns, schema=self._slices.schema)
        firsts = [*np.flatnonzero(np.diff(of_windows, prepend=-1)).tolist(), len(of_windows)]
        return [(windows[of_windows[a]], table.slice(a, b - a)) for a, b in pairwise(firsts)]

    def _held(self, windows: Sequence[Window], keys: pa.Table, count: int) -> _Held:
        hashes = np.unique(hash_columns([flat(column) for column in keys.columns])) if self._width else None
        tables, starts = [], []
        for start in self._slices_of(windows):
            for place, kept in enumerate(self._slices.kept(start)):
                found = kept.table
                if hashes is not None and len(found) > _SMALL_ROWS:
                    found = found.take(pa.array(self._index(start, place, kept).find(hashes)))
                tables.append(found)
                starts.append(np.full(len(found), start, np.int64))
        rows, at = pa.concat_tables(tables).combine_chunks(), np.concatenate(starts)
        codes = self._codes(keys, rows)
        there = np.flatnonzero(codes < count)
        order = there[np.lexsort((at[there], codes[there]))]
        accumulators = rows.select(range(self._width, len(rows.columns))).take(pa.array(order))
        return _Held(accumulators, codes[order], at[order])

    def _codes(self, keys: pa.Table, rows: pa.Table) -> Codes:
        """The place of each row's key among the keys; their number where it is not there."""
        if not self._width:
            return np.zeros(len(rows), np.int64)
        both = stacked([keys.columns, rows.columns[: self._width]])
        groups = group(both, len(keys) + len(rows))
        places = np.full(len(groups), len(keys), np.int64)
        places[groups.codes[: len(keys)]] = np.arange(len(keys))
        return places[groups.codes[len(keys) :]]

    def _slices_of(self, windows: Sequence[Window]) -> Iterator[int]:
        """Where the slices of windows start, each once, in order."""
        behind = MIN_TIMESTAMP
        for window in sorted(windows):
            yield from self._schedule.slices_within(max(behind, window.start), window.end)
            behind = max(behind, window.end)

    def _index(self, start: int, place: int, kept: KeptTable) -> _Indexed:
        of_slice = self._indexed.setdefault(start, {})
        known = of_slice.get(place)
        if known is None or known.kept is not kept:
            known = of_slice[place] = _Indexed.of(kept, self._width, self._shelf)
        return known
