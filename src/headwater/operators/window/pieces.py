"""Runs of rows cut into pieces: what windows hold when they fire, for all runs of a batch together, by columns.

A run is what came to one window of one key, in order of arrival. Each piece of it gets an accumulator; what the window
holds at the end of a piece is that of the pieces up to it, put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.batch import Batch
from headwater.data.row_kinds import Kinds, adds
from headwater.data.rows import decode, encode_rows
from headwater.operators.aggregation import Aggregation
from headwater.operators.grouping import Codes

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Runs:
    """Places for the rows of run 0, then for those of run 1, and so on; no run is without rows."""

    rows: Codes
    """The row at each place; a row may be in several runs."""
    of: Codes
    """The run of each place."""
    count: int
    order: Codes
    """The place of each in the order of arrival."""

    @classmethod
    def by(cls, codes: Codes, count: int, rows: Codes | None = None) -> Runs:
        """Runs by their numbers, given in order of arrival."""
        order = np.argsort(codes, kind="stable")
        return cls(order if rows is None else rows[order], codes[order], count, order)

    def arrived(self, places: Codes) -> Codes:
        """Places in the order of arrival."""
        return places[np.argsort(self.order[places])]

    @cached_property
    def bounds(self) -> Codes:
        """The first place of each run, and the place behind all."""
        return np.searchsorted(self.of, np.arange(self.count + 1))

    @property
    def lasts(self) -> Codes:
        """The last place of each run."""
        return self.bounds[1:] - 1

    @cached_property
    def numbers(self) -> Codes:
        """The number of each place within its run, from 0."""
        return np.arange(len(self.of)) - self.bounds[self.of]


@dataclass(frozen=True)
class Kept:
    """The accumulators that runs hold already, in order. The first rows of a run may join the last of its own."""

    table: pa.Table
    counts: Codes
    joined: Bools

    @classmethod
    def of(cls, runs: Sequence[Sequence[Any]], joined: Bools, schema: pa.Schema, step: str) -> Kept:
        """The accumulators of each run, given as rows."""
        table = encode_rows([tuple(row) for rows in runs for row in rows], schema, step)
        return cls(table, np.array([len(rows) for rows in runs], np.int64), joined)


@dataclass(frozen=True)
class Cut:
    """Where runs are cut into pieces: behind each place where one `ends`; where one `drops` all it held is gone."""

    ends: Bools
    drops: Bools


class Pieces:
    """The accumulators of the pieces of runs, behind those that the runs held already."""

    def __init__(self, aggregation: Aggregation, batch: Batch, runs: Runs, cut: Cut, kept: Kept) -> None:
        self._aggregation, self._runs, self._cut = aggregation, runs, cut
        ends = cut.ends | cut.drops
        ends[runs.lasts] = True
        pieces: Codes = np.cumsum(ends) - ends
        lasts = np.flatnonzero(ends)
        apart = np.maximum(kept.counts - kept.joined, 0)
        at = np.arange(len(lasts)) + np.cumsum(apart)[runs.of[lasts]]
        self._at: Codes = at[pieces]
        """Where the accumulator of the piece at each place is."""
        firsts = self._at[runs.bounds[:-1]] - apart
        self._since = _since(firsts, at[cut.drops[lasts]] + 1, int(at[-1]) + 1)
        rows, of_rows, kinds = _by_row(batch, runs.rows, pieces)
        adding = None if kinds is None else adds(kinds)
        self._table = aggregation.partial(rows, of_rows, len(lasts), adding)
        if len(kept.table):
            before = np.repeat(firsts - np.cumsum(kept.counts) + kept.counts, kept.counts) + np.arange(len(kept.table))
            together = pa.concat_tables([kept.table, self._table])
            self._table = aggregation.merge(together, np.concatenate([before, at]), len(self._since))

    def held(self, places: Codes, width: int | None = None) -> pa.Table:
        """What windows hold behind these places, where pieces end: the last `width` pieces of it, if that is given."""
        if width is None:
            return self._held.take(pa.array(self._at[places]))
        return _of_last(self._aggregation, self._table, self._since, self._at[places], width)

    @cached_property
    def _held(self) -> pa.Table:
        size = len(self._since)
        return _of_last(self._aggregation, self._table, self._since, np.arange(size), size)

    def left(self) -> list[tuple[Any, ...] | None]:
        """What each run holds in the end, in one accumulator; None where all was dropped."""
        dropped = self._cut.drops[self._runs.lasts]
        rows = iter(_rows(self._aggregation.settle(self.held(self._runs.lasts[~dropped]))))
        return [None if is_dropped else next(rows) for is_dropped in dropped.tolist()]

    def left_apart(self, most: Codes) -> list[list[tuple[Any, ...]]]:
        """The last accumulators of what each run holds in the end, so many at most as is said for it."""
        lasts = self._at[self._runs.lasts]
        counts = np.minimum(most, np.where(self._cut.drops[self._runs.lasts], 0, self._since[lasts] + 1))
        ends = np.cumsum(counts)
        places = np.repeat(lasts + 1 - ends, counts) + np.arange(counts.sum())
        rows = _rows(self._table.take(pa.array(places)))
        return [rows[end - count : end] for count, end in zip(counts.tolist(), ends.tolist(), strict=True)]


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Accumulators as Python values, for the state."""
    return list(zip(*(decode(column) for column in table.columns), strict=True))


def _by_row(batch: Batch, rows: Codes, codes: Codes) -> tuple[pa.Table, Codes, Kinds | None]:
    """The rows with a code and a kind for each, or where not each row is there once, those that are there."""
    if len(rows) != len(batch) or np.bincount(rows, minlength=len(batch)).max() > 1:
        return batch.table.take(pa.array(rows)), codes, None if batch.kinds is None else batch.kinds[rows]
    of_rows = np.empty_like(codes)
    of_rows[rows] = codes
    return batch.table, of_rows, batch.kinds


def _since(firsts: Codes, after_drops: Codes, size: int) -> Codes:
    """How many accumulators before each one belong to the same window still."""
    begins = np.zeros(size + 1, np.int64)
    begins[firsts] = firsts
    begins[after_drops] = after_drops
    return np.arange(size) - np.maximum.accumulate(begins[:-1])


def _of_last(aggregation: Aggregation, table: pa.Table, since: Codes, wanted: Codes, width: int) -> pa.Table:
    """For each wanted place, the last `width` accumulators up to it in one; of those behind the beginning, all there are.

    Spans of 1, 2, 4 … accumulators are computed for all places at once, so that the number of calls is the logarithm of
    the longest.
    """
    longest = 1 << int(since.max()).bit_length()
    width = min(width, longest)
    ends, left = wanted, since[wanted]
    found: pa.Table | None = None
    span = 1
    while True:
        if width & span:
            there = np.flatnonzero(left >= 0)
            older = table.take(pa.array(ends[there]))
            found = older if found is None else _put_before(aggregation, older, found, there)
            ends, left = ends - span, left - span
        span *= 2
        if span > width:
            assert found is not None
            return found
        longer = np.flatnonzero(since >= span // 2)
        table = _put_before(aggregation, table.take(pa.array(longer - span // 2)), table, longer)


def of_ranges(aggregation: Aggregation, table: pa.Table, since: Codes, lasts: Codes, counts: Codes) -> pa.Table:
    """For each range of accumulators that belong to one run, all of it in one; it has a last one and a length."""
    found, rest, ends = table.take(pa.array(lasts)), counts - 1, lasts - 1
    longest = int(rest.max(initial=0))
    span = 1
    while span <= longest:
        there = np.flatnonzero(rest & span)
        found = _put_before(aggregation, table.take(pa.array(ends[there])), found, there)
        ends = ends - (rest & span)
        longer = np.flatnonzero(since >= span)
        table = _put_before(aggregation, table.take(pa.array(longer - span)), table, longer)
        span *= 2
    return found


def _put_before(aggregation: Aggregation, older: pa.Table, newer: pa.Table, at: Codes) -> pa.Table:
    """The newer accumulators, those at the given places together with an older one each."""
    if not len(at):
        return newer
    each = np.arange(len(at))
    pairs = pa.concat_tables([older, newer.take(pa.array(at))])
    merged = aggregation.merge(pairs, np.concatenate([each, each]), len(at))
    order = np.arange(len(newer))
    order[at] = len(newer) + each
    return pa.concat_tables([newer, merged]).take(pa.array(order))
