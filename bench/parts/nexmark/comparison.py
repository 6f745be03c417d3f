"""Whether both sides come to the same table of a query: in all that the query and the events determine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

Row = tuple[str | None, ...]
Table = Mapping[Row, int]
"""Rows, as texts, and how often each is there."""

DIFFERENT: Final = "DIFFERENT"
BY_THE_CLOCK: Final = "q12"
"""Its windows are of processing time, and differ in any two runs. A window that is open at the end is not given."""
TIES: Final = {"q18": (0, 1, 5), "q19": (0, 2, 7)}
"""Queries that choose among bids with the same time, or the same price, by which came first, and the columns in which such
bids are the same. Bids of different splits come in any order, in Flink too."""
BID_COLUMNS: Final = 7
_WINDOW_MS: Final = 10_000


def compared(query: str, ours: Table, theirs: Table, bids: Table) -> str:
    """What was compared and found the same, or `DIFFERENT` and in what."""
    if query == BY_THE_CLOCK:
        wrong = [
            f"{side}: {problem}" for side, table in _sides(ours, theirs) if (problem := _by_the_clock(table, bids))
        ]
        says = "by the clock: windows of 10 s, each bidder once in each, and no bid counted twice; not what is in which"
        return f"{DIFFERENT}: {'; '.join(wrong)}" if wrong else says
    if query not in TIES:
        return (
            f"equal, {_size(ours):,} rows" if dict(ours) == dict(theirs) else f"{DIFFERENT} in {_apart(ours, theirs)}"
        )
    columns = TIES[query]
    settled, other = _of_columns(ours, columns), _of_columns(theirs, columns)
    if settled != other:
        return f"{DIFFERENT} in {_apart(settled, other)}, by columns that ties do not change"
    for side, table in _sides(ours, theirs):
        if _of_columns(table, tuple(range(BID_COLUMNS))) - Counter(bids):
            return f"{DIFFERENT}: {side} gives rows that are no bids, or more often than they came"
    ties = _size(Counter(ours) - Counter(theirs))
    return f"equal, {_size(ours):,} rows, but for which bid of a tie, {ties:,} rows, each of them a bid that came"


def _sides(ours: Table, theirs: Table) -> tuple[tuple[str, Table], tuple[str, Table]]:
    return ("headwater", ours), ("flink", theirs)


def _by_the_clock(table: Table, bids: Table) -> str | None:
    """What is wrong with counts of bids in windows of processing time, if something is."""
    came, counted, windows = _of_columns(bids, (1,)), Counter[Row](), Counter[Row]()
    for (bidder, count, start, end), times in table.items():
        windows[bidder, start] += times
        counted[(bidder,)] += int(count or 0) * times
        if int(count or 0) < 1 or int(start or 1) % _WINDOW_MS or int(end or 0) - int(start or 0) != _WINDOW_MS:
            return f"no window of 10 s with bids is from {start} to {end} with {count}"
    if windows and max(windows.values()) > 1:
        return "a bidder is more than once in a window"
    return f"{_size(counted - came):,} bids are counted that did not come" if counted - came else None


def _of_columns(table: Table, columns: tuple[int, ...]) -> Counter[Row]:
    counts: Counter[Row] = Counter()
    for row, count in table.items():
        counts[tuple(row[at] for at in columns)] += count
    return counts


def _apart(ours: Table, theirs: Table) -> str:
    more, fewer = Counter(ours) - Counter(theirs), Counter(theirs) - Counter(ours)
    return f"{_size(more):,} rows that only headwater has, {_size(fewer):,} that only flink has"


def _size(table: Table) -> int:
    return sum(table.values())
