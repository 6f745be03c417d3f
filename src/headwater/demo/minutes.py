"""Compares the sales per minute with the truth: every window is there, and its last result has every order, late or not."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq

Window = tuple[str, datetime]
Result = tuple[int, int, int]
"""A firing of a window: its number, the orders and the cents so far."""


@dataclass(frozen=True)
class MinutesLine:
    """The minutes of one product, or of all."""

    product: str
    minutes: int
    results: int
    """How often windows fired."""
    corrections: int
    """How often they did so because of orders that came late."""
    expected: int
    found: int
    exact: bool

    @classmethod
    def over(cls, lines: list[MinutesLine]) -> MinutesLine:
        """The line over all products."""
        sums = {name: sum(getattr(line, name) for line in lines) for name in _SUMMED}
        return cls(f"all {len(lines)}", exact=all(line.exact for line in lines), **sums)


_SUMMED = ("minutes", "results", "corrections", "expected", "found")


def read_minutes(folder: Path) -> dict[Window, list[Result]]:
    """The published results of each window, in the order of their numbers."""
    names = ["product", "window_start", "pane_index", "orders", "cents"]
    table = pq.read_table(folder, columns=names)
    found: dict[Window, list[Result]] = defaultdict(list)
    for product, start, *result in zip(*(table[name].to_pylist() for name in names), strict=True):
        found[product, start].append(tuple(result))
    return {window: sorted(results) for window, results in found.items()}


def compare_minutes(found: dict[Window, list[Result]], truth: dict[Window, tuple[int, int]]) -> list[MinutesLine]:
    """A line for each product, those that are wrong first, then by how much was sold."""
    by_product: dict[str, list[Window]] = defaultdict(list)
    for window in {**truth, **found}:
        by_product[window[0]].append(window)
    lines = [_line(product, windows, found, truth) for product, windows in by_product.items()]
    return sorted(lines, key=lambda line: (line.exact, -line.expected, line.product))


def _line(
    product: str, windows: list[Window], found: dict[Window, list[Result]], truth: dict[Window, tuple[int, int]]
) -> MinutesLine:
    results = [found.get(window, []) for window in windows]
    fired = sum(map(len, results))
    return MinutesLine(
        product=product,
        minutes=len(windows),
        results=fired,
        corrections=fired - sum(map(bool, results)),
        expected=sum(truth[window][1] for window in windows if window in truth),
        found=sum(one[-1][2] for one in results if one),
        exact=all(_is_exact(one, truth.get(window)) for window, one in zip(windows, results, strict=True)),
    )


def _is_exact(results: list[Result], truth: tuple[int, int] | None) -> bool:
    """Whether they are numbered without a gap, each has more orders than the one before, and the last has all."""
    is_numbered = [number for number, _, _ in results] == list(range(len(results)))
    grows = all(before[1] < after[1] for before, after in pairwise(results))
    return is_numbered and grows and bool(results) and results[-1][1:] == truth
