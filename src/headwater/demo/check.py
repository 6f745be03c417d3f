"""Compares what the job wrote with the truth: every event once, numbered without a gap, and the right totals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.demo.events import KeyTruth, Truth

_NOTHING = KeyTruth(frozenset(), 0)


@dataclass(frozen=True)
class Line:
    """One key, or all of them: what went in, what came out."""

    key: str
    events: int
    rows: int
    lost: int
    """Events that are in no row."""
    doubled: int
    """Rows beyond one for each event."""
    numbered: bool
    """Whether the rows count 1, 2, … up to the number of events, each once."""
    expected: int
    found: int

    @property
    def exact(self) -> bool:
        """Whether nothing is lost, nothing doubled, and the total is right."""
        return self.lost == self.doubled == 0 and self.numbered and self.found == self.expected


@dataclass(frozen=True)
class Comparison:
    """All keys of one output, busiest first, but those that are wrong before the others."""

    lines: list[Line]

    @property
    def exact(self) -> bool:
        """Whether every key is."""
        return all(line.exact for line in self.lines)

    def total(self) -> Line:
        """The line over all keys."""
        sums = {name: sum(getattr(line, name) for line in self.lines) for name in _SUMMED}
        return Line(f"all {len(self.lines)}", numbered=all(line.numbered for line in self.lines), **sums)


_SUMMED = ("events", "rows", "lost", "doubled", "expected", "found")


def compare_clicks(folder: Path, truth: Truth) -> Comparison:
    """The running clicks per user."""
    return compare(read(folder, ["user", "id", "clicks", "clicks"]), truth.clicks)


def compare_sales(folder: Path, truth: Truth) -> Comparison:
    """The running orders and cents per product."""
    return compare(read(folder, ["product", "id", "orders", "cents"]), truth.sales)


Output = Iterable[tuple[str, int, int, int]]
"""Rows of a job's output: key, id of the event, running number, running total."""


def read(folder: Path, columns: list[str]) -> Output:
    """All published rows of an output folder; files that are only staged lie in a folder that readers pass over."""
    table: pa.Table = pq.read_table(folder)
    return zip(*(table[name].to_pylist() for name in columns), strict=True)


def compare(output: Output, truth: dict[str, KeyTruth]) -> Comparison:
    """Compare key by key; a key that only one side knows is a difference too."""
    by_key: dict[str, list[tuple[int, int, int]]] = {key: [] for key in truth}
    for key, event, number, total in output:
        by_key.setdefault(key, []).append((number, total, event))
    lines = [_line(key, sorted(rows), truth.get(key, _NOTHING)) for key, rows in by_key.items()]
    return Comparison(sorted(lines, key=lambda line: (line.exact, -line.events, line.key)))


def _line(key: str, rows: list[tuple[int, int, int]], truth: KeyTruth) -> Line:
    seen = {event for _, _, event in rows} & truth.ids
    return Line(
        key=key,
        events=len(truth.ids),
        rows=len(rows),
        lost=len(truth.ids) - len(seen),
        doubled=len(rows) - len(seen),
        numbered=[number for number, _, _ in rows] == list(range(1, len(truth.ids) + 1)),
        expected=truth.total,
        found=rows[-1][1] if rows else 0,
    )
