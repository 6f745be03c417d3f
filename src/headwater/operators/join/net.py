"""What a batch of a changelog comes to: which of its rows stay, and which kept ones it takes out.

Rows are a multiset: a row that takes back takes out the oldest of those that equal it in all columns. One that came
earlier in the same batch is as good as any other, so what comes and goes within a batch leaves no trace.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.operators.join.contents import first_equal
from headwater.operators.join.run import Places
from headwater.operators.join.store import RowStore

Flags = npt.NDArray[np.bool_]
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Net:
    """The effect of a batch; rows are told by their places in it, in ascending order."""

    added: Places
    """The rows that are added and stay."""
    removed: Places
    """The rows that take out a kept one."""
    ids: Places
    """For each of these, the kept one."""
    marked: Flags
    """Whether that one was marked."""
    retracted: Places
    """The rows that take out any, also one of the same batch."""
    missed: int
    """How many rows would take out one that is not there."""


def net_effect(rows: pa.Table, adds: Flags, store: RowStore) -> Net:
    """The effect of rows, of which some add and the others take back, on those that are kept."""
    if adds.all():
        return Net(np.arange(len(rows)), _NONE, _NONE, _NONE.astype(np.bool_), _NONE, 0)
    same = first_equal(rows)
    wanted = np.unique(same[~adds])
    kept = store.find_equal(rows.take(pa.array(wanted)))
    stored = np.bincount(kept.probes, minlength=len(wanted))

    slots = np.minimum(np.searchsorted(wanted, same), len(wanted) - 1)
    at = np.flatnonzero(wanted[slots] == same)
    at = at[np.argsort(slots[at], kind="stable")]
    group, is_add = slots[at], adds[at]
    takes = ~is_add & ~_misses(group, is_add, stored)

    nth_add, nth_take = _counted(group, is_add), _counted(group, takes)
    taken = np.bincount(group[takes], minlength=len(wanted))
    came_and_went = at[is_add & (nth_add < (taken - stored)[group])]
    stays = adds.copy()
    stays[came_and_went] = False

    from_kept = takes & (nth_take < stored[group])
    places = np.searchsorted(kept.probes, group[from_kept]) + nth_take[from_kept]
    order = np.argsort(at[from_kept])
    places = places[order]
    return Net(
        np.flatnonzero(stays),
        at[from_kept][order],
        kept.ids[places],
        kept.marked[places],
        np.sort(at[takes]),
        int(np.count_nonzero(~adds)) - int(np.count_nonzero(takes)),
    )


def _misses(group: Places, is_add: Flags, stored: Places) -> Flags:
    """Which rows take back when none is left. Rows come group by group; `stored` is how many each group begins with.

    The count of a group is a walk that cannot go below zero; where it would, it misses. A walk that could would be below
    zero by as many misses as there were so far.
    """
    moves = np.where(is_add, 1, -1)
    total = np.cumsum(moves)
    first = np.searchsorted(group, group)
    walk = stored[group] + total - (total - moves)[first]
    apart = int(stored.max()) + 2 * len(group) + 1  # groups so far apart do not see each other's lowest points
    lowest = np.minimum.accumulate(walk - group * apart) + group * apart
    misses = np.maximum(-lowest, 0)
    before = np.concatenate([[0], misses[:-1]])
    before[first] = 0
    is_miss: Flags = misses > before
    return is_miss


def _counted(group: Places, which: Flags) -> Places:
    """For each row, how many of these came before it in its group. Rows come group by group."""
    before: Places = np.cumsum(which) - which
    return before - before[np.searchsorted(group, group)]
