"""Sorted runs: nothing is lost in merges, few runs have a hash, and what is written at a time is bounded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log2

import numpy as np
import pytest

from headwater.state.keys import Hashes
from headwater.state.runs import ALL_HASHES, HashRange, Runs
from headwater.state.shelf import MemoryShelf

MOST_ROWS = 1_000


class Rows:
    """A run of bare hashes, some of them gone."""

    def __init__(self, hashes: Iterable[int]) -> None:
        self.hashes: Hashes = np.sort(np.array(list(hashes), np.uint64))
        self.is_gone = np.zeros(len(self.hashes), np.bool_)

    @property
    def size_bytes(self) -> int:
        return len(self.hashes)

    def __len__(self) -> int:
        return int(np.count_nonzero(~self.is_gone))

    @property
    def left(self) -> Hashes:
        return self.hashes[~self.is_gone]

    @property
    def is_mostly_gone(self) -> bool:
        return 2 * len(self) < len(self.hashes)


class Kept:
    """Runs of such, which count what is written."""

    def __init__(self) -> None:
        shelf = MemoryShelf()
        shelf.most_bytes = MOST_ROWS
        self.runs: Runs[Rows] = Runs(shelf)
        self.written: list[int] = []
        self.fails_after = -1

    def rewrite(self, runs: Sequence[Rows], part: HashRange) -> Rows | None:
        if self.fails_after == 0:
            raise OSError("the disk is full")
        self.fails_after -= 1
        left = np.concatenate([run.left[slice(*part.within(run.left))] for run in runs])
        self.written.append(len(left))
        return Rows(left) if len(left) else None

    def put(self, hashes: Iterable[int]) -> int:
        """Put and merge; tells how many rows were written again."""
        before = len(self.written)
        self.runs.put(Rows(hashes))
        self.runs.merge(self.rewrite)
        return sum(self.written[before:])

    def take(self, hashes: Hashes) -> None:
        """Take rows out, and rewrite what has many gaps then."""
        for run in self.runs:
            run.is_gone |= np.isin(run.hashes, hashes)
        self.runs.tidy(len(hashes), lambda run: run.is_mostly_gone, self.rewrite)

    def all(self) -> list[int]:
        return sorted(n for run in self.runs for n in run.left.tolist())

    def having(self, hashes: Hashes) -> list[int]:
        """For each hash, how many runs it must be looked for in."""
        spans = [(run.hashes[0], run.hashes[-1]) for run in self.runs]
        return [sum(first <= one <= last for first, last in spans) for one in hashes]


def some_hashes(chance: np.random.Generator, count: int) -> Hashes:
    return chance.integers(0, 1 << 64, count, np.uint64, endpoint=False)


@pytest.mark.parametrize("at_once", [30, 700, 5_000])
def test_a_hash_is_in_a_logarithm_of_runs_and_a_merge_is_bounded(at_once: int) -> None:
    kept, chance = Kept(), np.random.default_rng(1)
    rows, asked = 120_000, some_hashes(chance, 200)
    merges_of = 1 + 8 * at_once // MOST_ROWS
    for _ in range(rows // at_once):
        assert kept.put(some_hashes(chance, at_once)) <= MOST_ROWS + at_once + merges_of * 2 * MOST_ROWS
    assert max(kept.having(asked)) <= 2 * log2(rows / MOST_ROWS) + log2(MOST_ROWS / min(at_once, MOST_ROWS)) + 1
    assert all(run.size_bytes <= max(MOST_ROWS, at_once) for run in kept.runs)
    assert sum(kept.written) <= rows * (log2(rows / MOST_ROWS) + log2(MOST_ROWS / min(at_once, MOST_ROWS)) + 2)


def test_ten_times_the_rows_are_in_a_few_runs_more() -> None:
    kept, chance, asked = Kept(), np.random.default_rng(2), some_hashes(np.random.default_rng(3), 300)
    means = []
    for rows in (10_000, 90_000, 300_000):
        for _ in range(rows // 500):
            kept.put(some_hashes(chance, 500))
        means.append(float(np.mean(kept.having(asked))))
    assert means[2] <= means[0] + 3 * log2(40) / 2, "each doubling is less than two runs more"


def test_nothing_is_lost_or_doubled_while_rows_come_and_go() -> None:
    kept, chance, there = Kept(), np.random.default_rng(4), set[int]()
    for _ in range(300):
        came = set(some_hashes(chance, int(chance.integers(1, 900))).tolist())
        kept.put(came)
        there |= came
        gone = chance.permutation(np.array(sorted(there), np.uint64))[: int(chance.integers(0, 900))]
        kept.take(gone)
        there -= set(gone.tolist())
    assert kept.all() == sorted(there)
    assert sum(len(run.hashes) for run in kept.runs) < 4 * len(there), "gaps go"


def test_gaps_are_rewritten_as_rows_are_taken_not_all_at_once() -> None:
    kept, chance = Kept(), np.random.default_rng(5)
    hashes = some_hashes(chance, 18_000)
    for at in range(0, 18_000, 900):
        kept.runs.put(Rows(hashes[at : at + 900]))
    kept.runs.merge(kept.rewrite)
    for at in range(0, 17_000, 100):
        before = len(kept.written)
        kept.take(hashes[at : at + 100])
        assert sum(kept.written[before:]) <= MOST_ROWS // 2, "one run without its gaps"
    assert len(kept.all()) == 1_000
    assert sum(len(run.hashes) for run in kept.runs) < 3_000


def test_rows_of_one_hash_are_not_cut_and_not_written_again_and_again() -> None:
    kept = Kept()
    for _ in range(60):
        kept.put([7] * 400)
    assert kept.all() == [7] * 24_000
    assert sum(kept.written) <= 3 * 24_000
    assert kept.put([8]) <= 2 * MOST_ROWS


def test_a_merge_that_fails_leaves_all_rows_and_is_made_up_for() -> None:
    kept, chance, there = Kept(), np.random.default_rng(6), list[int]()
    failed = 0
    for number in range(200):
        came = some_hashes(chance, 300).tolist()
        there += came
        kept.fails_after = number % 3 if number % 2 else -1
        try:
            kept.put(came)
        except OSError:
            failed += 1
        if number % 10 < 2:
            assert kept.all() == sorted(there)
    assert failed > 20
    kept.fails_after = -1
    for _ in range(60):
        kept.put(some_hashes(chance, 300))
    assert max(kept.having(some_hashes(chance, 100))) <= 2 * log2(80) + 3


def test_runs_without_rows_go() -> None:
    kept, chance = Kept(), np.random.default_rng(7)
    hashes = some_hashes(chance, 5_000)
    for at in range(0, 5_000, 500):
        kept.put(hashes[at : at + 500])
    kept.take(hashes)
    assert list(kept.runs) == []
    kept.put(hashes[:100])
    assert kept.all() == sorted(hashes[:100].tolist())
    kept.runs.clear()
    assert list(kept.runs) == []


def test_a_range_has_its_ends() -> None:
    hashes = np.array([0, 5, 5, 9, (1 << 64) - 1], np.uint64)
    assert HashRange(5, 9).within(hashes) == (1, 4)
    assert HashRange(6, 8).within(hashes) == (3, 3)
    assert ALL_HASHES.within(hashes) == (0, 5)
