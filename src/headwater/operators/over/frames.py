"""Aggregates over the frames of many rows at once.

Accumulators of single rows are merged pair by pair, and those again, so that what a frame holds is put together from few:
the number of merges is that of the rows, or by a logarithm more, whatever the aggregate is and however long frames are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.operators.aggregation import Aggregation
from headwater.operators.grouping import Codes
from headwater.state.columns import Places


def up_to_each(aggregation: Aggregation, rows: pa.Table, groups: Codes) -> pa.Table:
    """For each row of accumulators, those of the rows of its group up to it. Rows come group by group."""
    nth = np.arange(len(groups)) - np.searchsorted(groups, groups)
    if not nth.any():
        return rows
    is_first = nth % 2 == 0
    pair = np.cumsum(is_first) - 1
    pairs = aggregation.merge(rows, pair, int(pair[-1]) + 1)
    until = up_to_each(aggregation, pairs, groups[is_first])
    later = np.flatnonzero(is_first & (nth > 0))
    both = pa.concat_tables([until.take(pa.array(pair[later] - 1)), rows.take(pa.array(later))])
    merged = aggregation.merge(both, np.tile(np.arange(len(later)), 2), len(later))
    places = np.where(is_first, 0, len(rows) + pair)
    places[nth == 0] = np.flatnonzero(nth == 0)
    places[later] = len(rows) + len(until) + np.arange(len(later))
    return pa.concat_tables([rows, until, merged]).take(pa.array(places)).combine_chunks()


def between(aggregation: Aggregation, rows: pa.Table, groups: Codes, begin: Places, end: Places) -> pa.Table:
    """For each frame, the accumulators of the rows of accumulators from `begin` to before `end`, at least one.

    Rows come group by group, and a frame is within one.
    """
    blocks, offset = [rows], 0
    """Accumulators of one row, of two, of four, and so on, each beginning where a number of them ends."""
    lefts: list[tuple[Places, Places]] = []
    rights: list[tuple[Places, Places]] = []
    frames = np.arange(len(begin))
    while len(frames):
        for parts, is_odd, at in ((lefts, begin % 2 == 1, begin), (rights, end % 2 == 1, end - 1)):
            parts.append((frames[is_odd], offset + at[is_odd]))
        begin, end = (begin + 1) // 2, end // 2
        left = begin < end
        frames, begin, end = frames[left], begin[left], end[left]
        if len(frames):
            offset += len(blocks[-1])
            blocks.append(_pairs(aggregation, blocks[-1], groups, 1 << (len(blocks) - 1)))
    of, places = (np.concatenate(column) for column in zip(*lefts, *reversed(rights), strict=True))
    return aggregation.merge(pa.concat_tables(blocks).take(pa.array(places)), of, int(of.max()) + 1)


def _pairs(aggregation: Aggregation, blocks: pa.Table, groups: Codes, size: int) -> pa.Table:
    """Blocks of so many rows, two by two. Of two that are not within one group the second is left out: no frame has both."""
    places = np.arange(len(blocks))
    last = np.minimum((places + 1) * size, len(groups)) - 1
    merges = (places % 2 == 0) | (groups[(places - places % 2) * size] == groups[last])
    kept = np.flatnonzero(merges)
    return aggregation.merge(blocks.take(pa.array(kept)), kept // 2, (len(blocks) + 1) // 2)
