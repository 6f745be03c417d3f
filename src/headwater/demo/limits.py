"""Compares the large orders with the truth: each partition was held to the first limit up to an order, then to the later."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq


@dataclass(frozen=True)
class PartitionLine:
    """The large orders of one partition, or of all."""

    partition: str
    before: int
    """Orders above the first limit that were told of."""
    after: int
    """Those above the later one."""
    lost: int
    doubled: int
    wrong: int
    """Orders that should not have been told of, or not by this limit."""

    @property
    def exact(self) -> bool:
        """Whether all that had to be told of was, once."""
        return self.lost == self.doubled == self.wrong == 0

    @classmethod
    def over(cls, lines: list[PartitionLine]) -> PartitionLine:
        """The line over all partitions."""
        sums = {name: sum(getattr(line, name) for line in lines) for name in _SUMMED}
        return cls(f"all {len(lines)}", **sums)


_SUMMED = ("before", "after", "lost", "doubled", "wrong")


def read_large(folder: Path) -> Counter[tuple[int, int]]:
    """How often each order was told of by each limit: by its id and the limit."""
    table = pq.read_table(folder, columns=["id", "above"])
    return Counter(zip(table["id"].to_pylist(), table["above"].to_pylist(), strict=True))


def compare_limits(
    told: Counter[tuple[int, int]], partitions: list[dict[int, int]], first: int, later: int
) -> list[PartitionLine]:
    """A line for each partition.

    A limit holds for whole epochs, so it changes at one place of a partition: at the first order that was told of by the
    later limit, or at its end. Everything follows from that place.
    """
    return [_line(str(number), told, orders, first, later) for number, orders in enumerate(partitions)]


def _line(name: str, told: Counter[tuple[int, int]], orders: dict[int, int], first: int, later: int) -> PartitionLine:
    mine = {order: times for order, times in told.items() if order[0] in orders}
    change = min((number for number, above in mine if above == later), default=len(told) + max(orders, default=0) + 1)
    expected = {
        (number, limit) for number, cents in orders.items() if cents > (limit := first if number < change else later)
    }
    return PartitionLine(
        partition=name,
        before=sum(above == first for _, above in mine),
        after=sum(above == later for _, above in mine),
        lost=len(expected - mine.keys()),
        doubled=sum(times - 1 for times in mine.values()),
        wrong=len(mine.keys() - expected),
    )
