"""Sorted runs of rows by hash: few of them have rows of a given hash, and no merge has more than a bound.

Rows come as small runs. These are merged, so that each is about twice as large as the next newer one, up to a size. Runs of
about that size settle: of those that span the same range of hashes two are merged and cut in the middle, so that each half
spans half of it. So a hash is looked for in a logarithm of what is kept, as if one run had twice as much as the next, and
still no merge has more than two such runs hold. What is due and was not done yet waits for the next rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from headwater.state.keys import Hashes
from headwater.state.shelf import Shelf

_HASH_BITS = 64
_MERGED_A_RUN = 8
"""How many merges are made for each run's worth of rows that comes: half as many as there are sizes would do."""
_SMALL = 8
"""A run that has become smaller than this part of what it may be is taken for one that has just come."""


class SortedRun(Protocol):
    """Rows in the order of hashes, at least one."""

    @property
    def hashes(self) -> Hashes:
        """Those of its rows, in order."""

    @property
    def size_bytes(self) -> int:
        """About what its rows take."""

    def __len__(self) -> int:
        """How many of them there still are."""


class Span(NamedTuple):
    """All hashes that begin with the same bits."""

    width: int
    """How many bits the others are."""
    prefix: int

    @classmethod
    def of(cls, run: SortedRun) -> Span:
        """The smallest that all hashes of a run are in."""
        first, last = int(run.hashes[0]), int(run.hashes[-1])
        width = (first ^ last).bit_length()
        return cls(width, first >> width)


class HashRange(NamedTuple):
    """The hashes from the first to the last."""

    first: int = 0
    last: int = (1 << _HASH_BITS) - 1

    def within(self, hashes: Hashes) -> tuple[int, int]:
        """Where those begin and end, of hashes in order, that are in it."""
        first = int(np.searchsorted(hashes, np.uint64(self.first)))
        return first, int(np.searchsorted(hashes, np.uint64(self.last), side="right"))


ALL_HASHES = HashRange()
Run = TypeVar("Run", bound=SortedRun)
Rewrite = Callable[[Sequence[Run], HashRange], Run | None]
"""Makes one run of what is left of some within a range, or none. It is not kept: its owner has the runs."""


class Runs(Generic[Run]):
    """Runs of one state."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.clear()

    def clear(self) -> None:
        """Have none."""
        self._recent: list[Run] = []
        """Small ones, the newest last."""
        self._settled: dict[Span, list[Run]] = {}
        self._due: dict[Span, None] = {}
        """Where several have settled."""
        self._came_bytes = 0

    def __iter__(self) -> Iterator[Run]:
        for runs in self._settled.values():
            yield from runs
        yield from self._recent

    def put(self, run: Run) -> None:
        """Have a run more."""
        self._recent.append(run)
        self._came_bytes += run.size_bytes

    def merge(self, rewrite: Rewrite[Run]) -> None:
        """Have few runs, as far as what came since the last call allows. If it fails, all runs are as they were."""
        most_bytes, came_bytes = self._shelf.most_bytes, self._came_bytes
        self._came_bytes = 0
        if count := _due_for_merge(self._recent, most_bytes):
            self._recent[-count:] = self._rewritten(self._recent[-count:], rewrite)
        large = [run for run in self._recent if 2 * run.size_bytes > most_bytes]
        for run in large:
            parts = [run] if run.size_bytes <= most_bytes else self._rewritten([run], rewrite)
            self._recent = [one for one in self._recent if one is not run]
            self._settle(parts)
        merges = 1 + _MERGED_A_RUN * came_bytes // max(most_bytes, 1)
        while self._due and merges:
            self._halve(next(iter(self._due)), rewrite)
            merges -= 1

    def tidy(self, dropped: int, is_due: Callable[[Run], bool], rewrite: Rewrite[Run]) -> None:
        """Rewrite runs that have lost most rows: about as many as were dropped, or one run.

        So a row is rewritten once for each that is dropped, and not all runs at once that were written together.
        """
        for run in list(self):
            if dropped <= 0:
                return
            if is_due(run):
                left = rewrite([run], ALL_HASHES)
                dropped -= 0 if left is None else len(left)
                self._replace(run, left)

    def _replace(self, run: Run, left: Run | None) -> None:
        """A run is this now, if there is any."""
        for at, one in enumerate(self._recent):
            if one is run:
                self._recent[at : at + 1] = [] if left is None else [left]
                return
        span = Span.of(run)
        self._leave(span, [run])
        if left is not None and _SMALL * left.size_bytes < self._shelf.most_bytes:
            self._recent.insert(0, left)
        elif left is not None:
            self._settle([left])

    def _settle(self, runs: Sequence[Run]) -> None:
        for run in runs:
            span = Span.of(run)
            there = self._settled.setdefault(span, [])
            there.append(run)
            if len(there) > 1 and span.width:  # rows of one hash cannot be cut
                self._due[span] = None

    def _leave(self, span: Span, runs: Sequence[Run]) -> None:
        left = [one for one in self._settled[span] if not any(one is run for run in runs)]
        if left:
            self._settled[span] = left
        else:
            del self._settled[span]
        if len(left) < 2:
            self._due.pop(span, None)

    def _halve(self, span: Span, rewrite: Rewrite[Run]) -> None:
        """Let two runs of a span be halves of it, or one if that is not too large."""
        runs = self._settled[span][:2]
        parts = self._rewritten(runs, rewrite)
        self._leave(span, runs)
        self._settle(parts)

    def _rewritten(self, runs: Sequence[Run], rewrite: Rewrite[Run]) -> list[Run]:
        """The rows of runs as one, or as several if that would be too large."""
        hashes = [run.hashes for run in runs]
        row_bytes = sum(run.size_bytes for run in runs) / sum(map(len, hashes))
        ranges = _ranges(hashes, ALL_HASHES, self._shelf.most_bytes / row_bytes)
        return [run for run in (rewrite(runs, one) for one in ranges) if run is not None]


def _due_for_merge(runs: Sequence[SortedRun], most_bytes: int) -> int:
    """How many of the last runs, the newest ones, should be one: each is to be twice as large as the next, or the largest.

    They are told together, so that none of their rows is written twice.
    """
    count, rows, size_bytes = 0, 0, 0
    for run in reversed(runs):
        if count and (len(run) >= 2 * rows or size_bytes + run.size_bytes > most_bytes):
            break
        count, rows, size_bytes = count + 1, rows + len(run), size_bytes + run.size_bytes
    return count if count > 1 else 0


def _ranges(hashes: Sequence[Hashes], of: HashRange, most_rows: float) -> Iterator[HashRange]:
    """A range cut until each part has so many rows at most, or rows of one hash. In each there are some."""
    parts = [one[slice(*of.within(one))] for one in hashes]
    parts = [one for one in parts if len(one)]
    first, last = min(int(one[0]) for one in parts), max(int(one[-1]) for one in parts)
    if first == last or sum(map(len, parts)) <= most_rows:
        yield of
        return
    half = (first ^ last).bit_length() - 1
    middle = last >> half << half
    yield from _ranges(parts, HashRange(of.first, middle - 1), most_rows)
    yield from _ranges(parts, HashRange(middle, of.last), most_rows)
