"""What is shown of a comparison: its lines, the line over all of them, and whether each is exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwater.demo.check import Comparison, Line
from headwater.demo.limits import PartitionLine
from headwater.demo.minutes import MinutesLine


@dataclass(frozen=True)
class Proof:
    """A table; the last cell of a line says whether it is exact."""

    title: str
    columns: tuple[str, ...]
    lines: list[tuple[tuple[str, ...], bool]]
    total: tuple[tuple[str, ...], bool]

    @property
    def wrong(self) -> list[str]:
        """The first cells of lines that are not exact."""
        return [cells[0] for cells, is_exact in self.lines if not is_exact]


def of_totals(title: str, key: str, found: Comparison, value: Callable[[int], str]) -> Proof:
    """Running totals, by key."""

    def cells(line: Line) -> tuple[tuple[str, ...], bool]:
        counts = (line.events, line.rows, line.lost, line.doubled)
        return (line.key, *map("{:,}".format, counts), value(line.expected), value(line.found)), line.exact

    columns = (key, "events", "rows", "lost", "doubled", "true total", "job's total")
    return Proof(title, columns, [cells(line) for line in found.lines], cells(found.total()))


def of_minutes(title: str, lines: list[MinutesLine]) -> Proof:
    """Sales per minute, by product."""

    def cells(line: MinutesLine) -> tuple[tuple[str, ...], bool]:
        counts = (line.minutes, line.results, line.corrections)
        return (line.product, *map("{:,}".format, counts), money(line.expected), money(line.found)), line.exact

    columns = ("product", "minutes", "results", "corrected", "true total", "job's total")
    return Proof(title, columns, [cells(line) for line in lines], cells(MinutesLine.over(lines)))


def of_limits(title: str, lines: list[PartitionLine]) -> Proof:
    """Large orders, by partition of the topic of orders."""

    def cells(line: PartitionLine) -> tuple[tuple[str, ...], bool]:
        counts = (line.before, line.after, line.lost, line.doubled, line.wrong)
        return (line.partition, *map("{:,}".format, counts)), line.exact

    columns = ("partition", "by the first", "by the later", "lost", "doubled", "wrong")
    return Proof(title, columns, [cells(line) for line in lines], cells(PartitionLine.over(lines)))


def money(cents: int) -> str:
    """Cents as people write them."""
    return f"{cents / 100:,.2f}"
