"""The comparison of Nexmark's tables with Flink's: all that is determined counts, and nothing else."""

from __future__ import annotations

from collections import Counter

import pytest
from bench.parts.nexmark.comparison import DIFFERENT, Row, compared


def bid(auction: int, bidder: int, price: int, url: str = "u", at: int = 5) -> Row:
    return (str(auction), str(bidder), str(price), "c", url, str(at), "e")


BIDS = Counter([bid(1, 7, 100, "x"), bid(1, 7, 100, "y"), bid(1, 8, 50), bid(2, 8, 40)])


def test_tables_without_ties_are_equal_row_by_row() -> None:
    one, other = Counter([("1", "a"), ("2", "b")]), Counter([("1", "a"), ("2", "c")])
    assert compared("q0", one, one, BIDS) == "equal, 2 rows"
    assert compared("q0", one, other, BIDS).startswith(f"{DIFFERENT} in 1 rows that only headwater has, 1 that only")


def test_any_bid_of_a_tie_may_be_given_and_nothing_but_a_bid() -> None:
    ours, theirs = (Counter([bid(1, 7, 100, url), bid(2, 8, 40)]) for url in "xy")
    assert compared("q18", ours, theirs, BIDS) == (
        "equal, 2 rows, but for which bid of a tie, 1 rows, each of them a bid that came"
    )
    assert compared("q18", ours, Counter([bid(1, 7, 100, "z"), bid(2, 8, 40)]), BIDS).startswith(
        f"{DIFFERENT}: flink gives rows that are no bids"
    )
    assert compared("q18", ours, Counter([bid(1, 7, 100), bid(1, 8, 50)]), BIDS).startswith(f"{DIFFERENT} in 1 rows")


def test_a_bid_has_one_place_among_the_first() -> None:
    ours = Counter([(*bid(1, 7, 100, "x"), "1"), (*bid(1, 7, 100, "y"), "2"), (*bid(1, 8, 50), "3")])
    theirs = Counter([(*bid(1, 7, 100, "y"), "1"), (*bid(1, 7, 100, "x"), "2"), (*bid(1, 8, 50), "3")])
    twice = Counter([(*bid(1, 7, 100, "x"), "1"), (*bid(1, 7, 100, "x"), "2"), (*bid(1, 8, 50), "3")])
    assert compared("q19", ours, theirs, BIDS).startswith("equal, 3 rows, but for which bid of a tie, 2 rows")
    assert compared("q19", ours, twice, BIDS).startswith(
        f"{DIFFERENT}: flink gives rows that are no bids, or more often"
    )


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (("7", "3", "10000", "20000"), "1 bids are counted that did not come"),
        (("9", "1", "10000", "20000"), "1 bids are counted that did not come"),
        (("7", "1", "10001", "20001"), "no window of 10 s"),
        (("7", "0", "10000", "20000"), "no window of 10 s"),
    ],
)
def test_windows_by_the_clock_count_bids_that_came(row: Row, problem: str) -> None:
    good = Counter([("7", "1", "0", "10000"), ("7", "1", "10000", "20000"), ("8", "1", "0", "10000")])
    assert compared("q12", good, Counter(), BIDS).startswith("by the clock: windows of 10 s")
    assert problem in compared("q12", Counter([row]), good, BIDS)
    again = Counter({("7", "1", "10000", "20000"): 2})
    assert "a bidder is more than once in a window" in compared("q12", good, again, BIDS)
