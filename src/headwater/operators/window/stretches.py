"""Stretches of time of many keys, put together where they touch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headwater.data.batch import Timestamps
from headwater.operators.grouping import Codes


@dataclass(frozen=True)
class Stretches:
    """Stretches put together, by keys and then by time."""

    of: Codes
    """Into which each went."""
    keys: Codes
    starts: Timestamps
    ends: Timestamps

    def __len__(self) -> int:
        return len(self.starts)


def put_together(starts: Timestamps, ends: Timestamps, codes: Codes) -> Stretches:
    """Those of one code that touch are one; those that go from one moment to the next touch."""
    order = np.lexsort((starts, codes))
    keys, begun = codes[order], starts[order]
    reached = highest(ends[order], keys)
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (keys[1:] != keys[:-1]) | (begun[1:] > reached[:-1])
    of = np.empty_like(order)
    of[order] = np.cumsum(begins) - 1
    places = np.flatnonzero(begins)
    lasts = np.append(places[1:], len(order)) - 1
    return Stretches(of, keys[places], begun[places], reached[lasts])


def highest(values: Timestamps, codes: Codes) -> Timestamps:
    """The highest value up to each one among those with its code; codes are in order."""
    if not len(values):
        return values
    ordered = np.sort(values)
    words = codes * len(values) + np.searchsorted(ordered, values)
    found: Timestamps = ordered[np.maximum.accumulate(words) % len(values)]
    return found
