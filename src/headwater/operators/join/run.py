"""A run: rows in the order of their key's hash, then of time, then of arrival; found by binary search, many at once."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.batch import MIN_TIMESTAMP, Timestamps
from headwater.state.keys import Hashes

Places = npt.NDArray[np.int64]


class End(NamedTuple):
    """Until when rows are dead: those of an earlier time, and of those of the same time the ones that had arrived."""

    until_ms: int = MIN_TIMESTAMP
    before_id: int = 0


class Run:
    """Rows with their times, hashes and ids (the numbers of their arrival). Only `marked` and `gone` ever change."""

    def __init__(
        self, rows: pa.Table, times: Timestamps, hashes: Hashes, ids: Places, marked: npt.NDArray[np.bool_]
    ) -> None:
        order = np.lexsort((times, hashes))
        self.rows = rows.take(pa.array(order)).combine_chunks()
        self.times, self.hashes, self.ids, self.marked = times[order], hashes[order], ids[order], marked[order]
        self.gone: npt.NDArray[np.bool_] | None = None
        """Which rows were taken out, once any was."""

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def by_time(self) -> Places:
        """The places of rows in the order of time, then of arrival."""
        return np.lexsort((self.ids, self.times))

    @cached_property
    def sorted_times(self) -> Timestamps:
        return self.times[self.by_time]

    @cached_property
    def by_id(self) -> Places:
        """The places of rows in the order of their ids."""
        return np.argsort(self.ids, kind="stable")

    @cached_property
    def _keys(self) -> tuple[Hashes, npt.NDArray[np.int64]]:
        """The distinct hashes, and for each row one number that orders rows as (hash, time) does."""
        is_first = np.concatenate([[True], self.hashes[1:] != self.hashes[:-1]])
        ranks = np.cumsum(is_first) - 1
        earlier = np.searchsorted(self.sorted_times, self.times)
        return self.hashes[is_first], ranks * (len(self) + 1) + earlier

    def of_keys(self, hashes: Hashes) -> tuple[Places, Places]:
        """For each hash, the places from and to which its rows are."""
        return np.searchsorted(self.hashes, hashes), np.searchsorted(self.hashes, hashes, side="right")

    def between(self, hashes: Hashes, low: Timestamps, high: Timestamps) -> tuple[Places, Places]:
        """For each hash, the places from and to which its rows of the times from `low` to `high` are."""
        known, numbers = self._keys
        rank = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
        first = rank * (len(self) + 1)
        begin = np.searchsorted(numbers, first + np.searchsorted(self.sorted_times, low))
        end = np.searchsorted(numbers, first + np.searchsorted(self.sorted_times, high, side="right"))
        is_known = known[rank] == hashes
        return np.where(is_known, begin, 0), np.where(is_known, np.maximum(begin, end), 0)

    def places_of(self, ids: Places) -> Places:
        """The places of those ids that are here."""
        order = self.ids[self.by_id]
        at = np.minimum(np.searchsorted(order, ids), len(order) - 1)
        places: Places = self.by_id[at[order[at] == ids]]
        return places

    def died(self, end: End) -> int:
        """How many rows are dead: those that come first by time."""
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
        kept = np.flatnonzero(self.alive(np.arange(len(self)), end))
        if not len(kept):
            return None
        return Run(
            self.rows.take(pa.array(kept)), self.times[kept], self.hashes[kept], self.ids[kept], self.marked[kept]
        )


def merged(runs: list[Run]) -> Run:
    """Runs, in the order of arrival, as one. None of them may have rows that are gone."""
    return Run(
        pa.concat_tables([run.rows for run in runs]),
        *(np.concatenate([getattr(run, name) for run in runs]) for name in ("times", "hashes", "ids", "marked")),
    )


def expand(begin: Places, end: Places) -> tuple[Places, Places]:
    """For ranges of places, one for each probe: every (probe, place)."""
    counts = end - begin
    probes = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    return probes, np.arange(int(counts.sum())) + np.repeat(begin - before, counts)
