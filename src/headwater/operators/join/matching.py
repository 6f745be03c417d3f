"""Which rows of two sides a join shows together, by codes that stand for their keys."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headwater.operators.grouping import Codes
from headwater.operators.join.run import chunks, expand

NONE = -1
"""The place of a row that is missing."""


def matches(how: str, left: Codes, right: Codes, groups: int) -> Iterator[tuple[Codes, Codes]]:
    """The places of left and right rows that a join of a kind shows together; a part at a time.

    A part is never empty, and either all of its left rows are missing or none.
    """
    if how in ("semi", "anti"):
        has_met = np.bincount(right, minlength=groups)[left] > 0
        lefts = np.flatnonzero(has_met == (how == "semi"))
        yield from alone(lefts, is_left=True)
        return
    yield from pairs(left, right, groups, shows_alone=how in ("left", "full"))
    if how in ("right", "full"):
        has_met = np.bincount(left, minlength=groups)[right] > 0
        yield from alone(np.flatnonzero(~has_met), is_left=False)


def pairs(left: Codes, right: Codes, groups: int, *, shows_alone: bool = False) -> Iterator[tuple[Codes, Codes]]:
    """The places of left and right rows that have a code in common, left rows first in order; a part at a time.

    With `shows_alone`, also the left rows that have none in common.
    """
    order = np.argsort(right, kind="stable")
    counts = np.bincount(right, minlength=groups)
    begin = (np.cumsum(counts) - counts)[left]
    end = begin + counts[left]
    if shows_alone:
        is_alone = begin == end
        begin[is_alone], end[is_alone] = len(order), len(order) + 1
        order = np.append(order, NONE)
    for first, last in chunks(end - begin):
        lefts, places = expand(begin[first:last], end[first:last])
        if len(lefts):
            yield lefts + first, order[places]


def alone(places: Codes, *, is_left: bool) -> Iterator[tuple[Codes, Codes]]:
    """Rows of one side with none of the other."""
    if len(places):
        none = np.full(len(places), NONE)
        yield (places, none) if is_left else (none, places)
